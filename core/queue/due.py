"""Single messages by the time at which each is due.

Those that are due soon stand apart, sorted, and stay in memory. The others are only told apart by
the second in which they are due, and may leave memory until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from ..message.batch import Batch, MessageRange

AHEAD_MS = 1_000
EVICTED_AT_ONCE = 100
"""What is due within this time is soon; also the length of a bucket."""
_FRESH_MIN = 512

_Entry = tuple[int, int, MessageRange]
"""When it is due, its number, and a range of one message."""


class Due:
    """Ranges of one message each, earliest first, and in the order of their numbers where times are
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

    def add(self, due_ms: int, messages: MessageRange, now_ms: int) -> None:
        item = (due_ms, messages.sequence, messages)
        if due_ms <= now_ms + AHEAD_MS:
            heappush(self._near, item)
            return
        key = due_ms // AHEAD_MS
        bucket = self._far.get(key)
        if bucket is None:
            self._far[key] = [item]
            heappush(self._buckets, key)
        else:
            bucket.append(item)
        self._far_count += 1
        self._fresh.append(item)
        if len(self._fresh) > max(_FRESH_MIN, 2 * self._far_count):
            self._fresh = [item for item in self._fresh if item[2].count]

    def move_near(self, now_ms: int, limit: int) -> tuple[list[Batch], bool]:
        """Looks at up to `limit` messages that are due soon now.

        Gives the batches of those that have to be read, and whether there are more.
        """
        missing: list[Batch] = []
        while self._buckets and self._far_from_ms <= now_ms + AHEAD_MS:
            if not limit:
                return missing, True
            bucket = self._far[self._buckets[0]]
            some = bucket[-limit:]
            del bucket[-limit:]
            for item in some:
                heappush(self._near, item)
            batches = (item[2].entry.batch for item in some if item[2].count)
            missing += [batch for batch in batches if not batch.resident]
            limit -= len(some)
            self._far_count -= len(some)
            if not bucket:
                del self._far[heappop(self._buckets)]
        return missing, False

    @property
    def _far_from_ms(self) -> int:
        """No far one is due before this time."""
        return self._buckets[0] * AHEAD_MS

    def take(self, now_ms: int) -> MessageRange | None:
        """The next message that is due, None if there is none."""
        near = self._near
        if self._buckets:
            # As long as some of these are not sorted, nobody knows which one is the first.
            now_ms = min(now_ms, self._far_from_ms - 1)
        while near and near[0][0] <= now_ms:
            messages = heappop(near)[2]
            if messages.count:
                return messages
        return None

    @property
    def next_ms(self) -> int | None:
        """When there is something to do next: a message is due, or will be soon."""
        times = [self._near[0][0]] if self._near else []
        times += [self._far_from_ms - AHEAD_MS] if self._buckets else []
        return min(times, default=None)

    def evict_far(self, now_ms: int, evict: Callable[[Batch], bool]) -> Iterator[None]:
        """Has what is not due soon leave memory, the oldest first; `evict` says whether it did.
        In steps, between which messages may come and go."""
        left = len(self._fresh)
        while left > 0:
            some, self._fresh = self._fresh[:EVICTED_AT_ONCE], self._fresh[EVICTED_AT_ONCE:]
            left -= len(some) or left
            soon_ms = self._far_from_ms if self._buckets else now_ms + AHEAD_MS
            for item in some:
                due_ms, _, messages = item
                batch = messages.entry.batch
                if messages.count and due_ms >= soon_ms and batch.resident and not evict(batch):
                    self._fresh.append(item)
            yield

    def clear(self) -> None:
        self._far_count = 0
        self._far.clear()
        for held in (self._near, self._buckets, self._fresh):
            held.clear()
