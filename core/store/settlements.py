"""What was settled since the last hand-over, as ranges of numbers for each queue.

A range means "this queue's in it", so it is made longer only if no other message of the queue
that is still kept can lie between.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..message.batch import MessageRange
from . import small_records
from .segment import SettledSet

if TYPE_CHECKING:
    from .durable import DurableStore


class _Ranges:
    """Pairs of first and last number, and where the last one ends."""

    __slots__ = ("high", "kept", "numbers")

    def __init__(self) -> None:
        self.numbers = array("Q")
        self.kept: SettledSet | None = None
        self.high = 0


class Settlements:
    """Settles runs and remembers what has to be written of it."""

    def __init__(self) -> None:
        self._queues: dict[int, _Ranges] = {}

    def __bool__(self) -> bool:
        return bool(self._queues)

    def settle(self, queue_id: int, messages: MessageRange) -> None:
        """These messages are done with; nothing happens if they were never kept."""
        self.note(queue_id, messages)
        mark(messages)

    def note(self, queue_id: int, messages: MessageRange) -> None:
        """As `settle`, but for `mark`."""
        entry = messages.entry
        kept = entry.settled_set
        if not isinstance(kept, SettledSet):
            return
        ranges = self._of(queue_id)
        last = entry.sequence(messages.high - 1)
        if ranges.kept is not None and _follows(ranges, kept, messages.low):
            ranges.numbers[-1] = last
        else:
            ranges.numbers.extend((entry.sequence(messages.low), last))
        ranges.kept = kept
        ranges.high = -1 if messages.high == entry.count else messages.high

    def add(self, queue_id: int, numbers: Iterable[int]) -> None:
        """Pairs of first and last number that were settled by other means."""
        ranges = self._of(queue_id)
        ranges.kept = None
        ranges.numbers.extend(numbers)

    def join(self, other: Settlements) -> None:
        """All that the other was told."""
        for queue_id, ranges in other._queues.items():
            self.add(queue_id, ranges.numbers)

    def forget(self, queue_id: int) -> None:
        """The queue has ended."""
        self._queues.pop(queue_id, None)

    def take(self) -> bytes:
        """The body of a record that says all of it."""
        queues, self._queues = self._queues, {}
        return small_records.encode_settled({key: held.numbers for key, held in queues.items()})

    def _of(self, queue_id: int) -> _Ranges:
        ranges = self._queues.get(queue_id)
        if ranges is None:
            ranges = self._queues[queue_id] = _Ranges()
        return ranges


def mark(messages: MessageRange) -> None:
    """Counts messages that are settled where they are kept."""
    kept = messages.entry.settled_set
    if isinstance(kept, SettledSet):
        kept.settle(messages.entry, messages.low, messages.high)


class ManySettled:
    """Implements `port.ManySettled`: ranges are collected, then logged, then counted."""

    def __init__(self, store: DurableStore) -> None:
        self._store = store
        self.ranges = Settlements()

    def note(self, queue_id: int, messages: MessageRange) -> None:
        self.ranges.note(queue_id, messages)

    def forget(self, queue_id: int) -> None:
        self.ranges.forget(queue_id)

    def log(self) -> None:
        self._store.settle_many(self)

    def count(self, messages: MessageRange) -> None:
        mark(messages)

    def end(self) -> None:
        self._store.uncounted.discard(self)


def _follows(ranges: _Ranges, kept: SettledSet, low: int) -> bool:
    """Whether no message of the queue lies between the last settled one and position `low`."""
    before = ranges.kept
    if before is kept:
        return ranges.high == low
    assert before is not None
    return (
        ranges.high == -1
        and low == 0
        and before.part is kept.part
        and before.ordinal + 1 == kept.ordinal
        # Between two records that were compacted others may lie that were not.
        and not kept.part.segment.is_moved
    )
