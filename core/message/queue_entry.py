"""The messages of queues: entries, ranges of them that are delivered, and those that are paged out.

A queue entry is a batch and the messages of it that are in one queue (`None` for all). A message
range is an interval of the positions of an entry; ranges are delivered to consumers and come back
when they are settled or requeued. Ranges of one entry never overlap, so they are ordered by their
first sequence number.
"""

from __future__ import annotations

from collections.abc import Sequence

from .batch import Batch
from .framed_batch import StridedBatch
from .settled_set import SettledSet


class QueueEntry:
    """The messages of one batch that are in one queue.

    `deadline_ms` (monotonic) is when they expire, None for never. `settled_set` belongs to the
    store: which messages of the entry are settled.
    """

    __slots__ = ("batch", "count", "deadline_ms", "selection", "settled_set")

    def __init__(self, batch: Batch, selection: Sequence[int] | None) -> None:
        self.batch = batch
        self.selection = selection
        self.count = batch.count if selection is None else len(selection)
        self.deadline_ms: int | None = None
        self.settled_set: SettledSet | None = None

    def index(self, position: int) -> int:
        """Returns the index in the batch of the entry's message at `position`."""
        return position if self.selection is None else self.selection[position]

    def sequence(self, position: int) -> int:
        return self.batch.sequence + self.index(position)


class MessageRange:
    """The messages of `entry` at positions `low` to `high - 1`."""

    __slots__ = ("entry", "high", "low", "redelivered")

    def __init__(self, entry: QueueEntry, low: int, high: int, redelivered: bool = False) -> None:
        self.entry = entry
        self.low = low
        self.high = high
        self.redelivered = redelivered

    @property
    def count(self) -> int:
        return self.high - self.low

    @property
    def sequence(self) -> int:
        return self.entry.sequence(self.low)

    def body_bytes(self) -> int:
        """Returns the sum of the sizes of the bodies."""
        entry = self.entry
        batch = entry.batch
        if isinstance(batch, StridedBatch):
            return batch.body_bytes(0) * (self.high - self.low)
        return sum(batch.body_bytes(entry.index(at)) for at in range(self.low, self.high))


class RangeLocation:
    """The location at which a store finds a paged-out range; each store has its own kind."""

    __slots__ = ()


class PagedOut:
    """Consecutive messages of a queue of which only the number is in memory.

    `location` is where the store finds them. `lost` counts those that could not be read since the
    queue last paged in. `special` says why the queue must read each message whatever its rules are,
    as in `MessageAttributes`: some may have an expiration or, in a queue with priorities, a
    priority.
    """

    __slots__ = ("count", "location", "lost", "special")

    def __init__(self, count: int, location: RangeLocation | None, *, special: int = 0) -> None:
        self.count = count
        self.location = location
        self.special = special
        self.lost = 0
