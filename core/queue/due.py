"""Single messages ordered by due time, for delayed messages.

Messages due soon are in a heap and stay in memory. The others are in a bucket for each second, and
may be evicted until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Final

from ..message.batch import Batch
from ..message.queue_entry import MessageRange

AHEAD_MS: Final = 1_000
"""A message is due soon within this time; also the length of a bucket."""
EVICTED_AT_ONCE: Final = 100
"""Messages evicted in one step."""
_FRESH_MIN: Final = 512

_Entry = tuple[int, int, MessageRange]
"""The due time, the sequence number, and a range of one message."""


class DueHeap:
    """Ranges of one message each, by due time and then by sequence number; ranges emptied elsewhere
    are skipped."""

    __slots__ = ("_buckets", "_far", "_far_count", "_fresh", "_near")

    def __init__(self) -> None:
        self._near: list[_Entry] = []
        self._far: dict[int, list[_Entry]] = {}
        self._buckets: list[int] = []
        """The keys of `_far`, as a heap: times divided by `AHEAD_MS`."""
        self._far_count = 0
        self._fresh: list[_Entry] = []
        """At least those of `_far` that are in memory, in the order of arrival."""

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

    def promote_due_soon(self, now_ms: int, limit: int) -> tuple[list[Batch], bool]:
        """Moves up to `limit` messages that are due soon into the heap.

        Returns the batches that have to be read, and whether there are more messages to move.
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
        """The time before which no message in a bucket is due."""
        return self._buckets[0] * AHEAD_MS

    def take(self, now_ms: int) -> MessageRange | None:
        """Removes and returns the next message that is due, None if there is none."""
        near = self._near
        if self._buckets:
            # Messages still in a bucket may be due before those in the heap.
            now_ms = min(now_ms, self._far_from_ms - 1)
        while near and near[0][0] <= now_ms:
            messages = heappop(near)[2]
            if messages.count:
                return messages
        return None

    @property
    def next_ms(self) -> int | None:
        """The time at which a message is due next, or a bucket has to be moved into the heap."""
        times = [self._near[0][0]] if self._near else []
        times += [self._far_from_ms - AHEAD_MS] if self._buckets else []
        return min(times, default=None)

    def evict_not_due_soon(self, now_ms: int, evict: Callable[[Batch], bool]) -> Iterator[None]:
        """Evicts messages that are not due soon, the oldest first; `evict` returns whether it did.
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
        for items in (self._near, self._buckets, self._fresh):
            items.clear()
