"""Single messages by the time at which each is due.

Those that are due soon stand apart, sorted, and stay in memory. The others are only told apart by
the second in which they are due, and may leave memory until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from ..block import Block, Span

AHEAD_MS = 1_000
LET_GO_AT_ONCE = 100
"""What is due within this time is soon; also the length of a bucket."""
_FRESH_MIN = 512

_Entry = tuple[int, int, Span]
"""When it is due, its number, and a span of one message."""


class Due:
    """Spans of one message each, earliest first, and in the order of their numbers where times are
    equal. One that was emptied elsewhere is passed over."""

    __slots__ = ("_buckets", "_far", "_far_count", "_fresh", "_near")

    def __init__(self) -> None:
        self._near: list[_Entry] = []
        self._far: dict[int, list[_Entry]] = {}
        self._buckets: list[int] = []
        """The keys of `_far`, as a heap: times divided by `AHEAD_MS`."""
        self._far_count = 0
        self._fresh: list[_Entry] = []
        """Of the far ones, at least those that are in memory, as they came."""

    def __len__(self) -> int:
        return len(self._near) + self._far_count

    def add(self, due_ms: int, span: Span, now_ms: int) -> None:
        entry = (due_ms, span.sequence, span)
        if due_ms <= now_ms + AHEAD_MS:
            heappush(self._near, entry)
            return
        key = due_ms // AHEAD_MS
        bucket = self._far.get(key)
        if bucket is None:
            self._far[key] = [entry]
            heappush(self._buckets, key)
        else:
            bucket.append(entry)
        self._far_count += 1
        self._fresh.append(entry)
        if len(self._fresh) > max(_FRESH_MIN, 2 * self._far_count):
            self._fresh = [entry for entry in self._fresh if entry[2].count]

    def draw_near(self, now_ms: int, limit: int) -> tuple[list[Block], bool]:
        """Looks at up to `limit` messages that are due soon now.

        Gives the blocks of those that have to be read, and whether there are more.
        """
        missing: list[Block] = []
        while self._buckets and self._far_from_ms <= now_ms + AHEAD_MS:
            if not limit:
                return missing, True
            bucket = self._far[self._buckets[0]]
            some = bucket[-limit:]
            del bucket[-limit:]
            for entry in some:
                heappush(self._near, entry)
            blocks = (entry[2].run.block for entry in some if entry[2].count)
            missing += [block for block in blocks if not block.resident]
            limit -= len(some)
            self._far_count -= len(some)
            if not bucket:
                del self._far[heappop(self._buckets)]
        return missing, False

    @property
    def _far_from_ms(self) -> int:
        """No far one is due before this time."""
        return self._buckets[0] * AHEAD_MS

    def take(self, now_ms: int) -> Span | None:
        """The next message that is due, None if there is none."""
        near = self._near
        if self._buckets:
            # As long as some of these are not sorted, nobody knows which one is the first.
            now_ms = min(now_ms, self._far_from_ms - 1)
        while near and near[0][0] <= now_ms:
            span = heappop(near)[2]
            if span.count:
                return span
        return None

    @property
    def next_ms(self) -> int | None:
        """When there is something to do next: a message is due, or will be soon."""
        times = [self._near[0][0]] if self._near else []
        times += [self._far_from_ms - AHEAD_MS] if self._buckets else []
        return min(times, default=None)

    def let_go(self, now_ms: int, evict: Callable[[Block], bool]) -> Iterator[None]:
        """Has what is not due soon leave memory, the oldest first; `evict` says whether it did.
        In steps, between which messages may come and go."""
        left = len(self._fresh)
        while left > 0:
            some, self._fresh = self._fresh[:LET_GO_AT_ONCE], self._fresh[LET_GO_AT_ONCE:]
            left -= len(some) or left
            soon_ms = self._far_from_ms if self._buckets else now_ms + AHEAD_MS
            for entry in some:
                due_ms, _, span = entry
                block = span.run.block
                if span.count and due_ms >= soon_ms and block.resident and not evict(block):
                    self._fresh.append(entry)
            yield

    def clear(self) -> None:
        self._far_count = 0
        self._far.clear()
        for held in (self._near, self._buckets, self._fresh):
            held.clear()
