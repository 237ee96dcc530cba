"""Settlements since the last write group, as ranges of sequence numbers for each queue.

A range settles all of the queue's messages in it, so it is extended only if no unsettled message
of the queue can be in between.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from ..message.queue_entry import MessageRange
from . import small_records
from .port import ManySettled
from .settled_set import RecordSettledSet


class _Ranges:
    """One queue's pairs of first and last sequence number, and where the last one ends."""

    __slots__ = ("high", "numbers", "settled_set")

    def __init__(self) -> None:
        self.numbers = array("Q")
        self.settled_set: RecordSettledSet | None = None
        self.high = 0


class Settlements:
    """Settles messages and collects the record that has to be written."""

    def __init__(self) -> None:
        self._queues: dict[int, _Ranges] = {}
        self.uncounted: set[ManyLogged] = set()
        """Settlements that are logged, and not counted in memory yet."""
        self.has_grown = False
        """Whether messages were settled since segments were last checked for dead ones."""

    def __bool__(self) -> bool:
        return bool(self._queues)

    def settle(self, queue_id: int, messages: MessageRange) -> None:
        """Settles messages; does nothing if they were never appended."""
        self.note(queue_id, messages)
        mark(messages)

    def note(self, queue_id: int, messages: MessageRange) -> None:
        """Adds messages to the record; they are not counted until `mark`."""
        entry = messages.entry
        settled_set = entry.settled_set
        if not isinstance(settled_set, RecordSettledSet):
            return
        ranges = self._of(queue_id)
        last = entry.sequence(messages.high - 1)
        if ranges.settled_set is not None and _follows(ranges, settled_set, messages.low):
            ranges.numbers[-1] = last
        else:
            ranges.numbers.extend((entry.sequence(messages.low), last))
        ranges.settled_set = settled_set
        ranges.high = -1 if messages.high == entry.count else messages.high

    def add(self, queue_id: int, numbers: Iterable[int]) -> None:
        """Adds pairs of first and last sequence number that were counted elsewhere."""
        ranges = self._of(queue_id)
        ranges.settled_set = None
        ranges.numbers.extend(numbers)

    def join(self, other: Settlements) -> None:
        """Adds all ranges of the other."""
        for queue_id, ranges in other._queues.items():
            self.add(queue_id, ranges.numbers)

    def forget(self, queue_id: int) -> None:
        """Drops the ranges of a queue that was deleted."""
        self._queues.pop(queue_id, None)
        self.has_grown = True

    def take(self) -> bytes:
        """Returns the body of the record with all ranges, and begins anew."""
        queues, self._queues = self._queues, {}
        self.has_grown = True
        numbers = {queue_id: ranges.numbers for queue_id, ranges in queues.items()}
        return small_records.encode_settled(numbers)

    def _of(self, queue_id: int) -> _Ranges:
        ranges = self._queues.get(queue_id)
        if ranges is None:
            ranges = self._queues[queue_id] = _Ranges()
        return ranges


def mark(messages: MessageRange) -> None:
    """Counts messages as settled in their segment parts."""
    settled_set = messages.entry.settled_set
    if isinstance(settled_set, RecordSettledSet):
        settled_set.settle(messages.low, messages.high)


class ManyLogged(ManySettled):
    """Ranges that are collected, then logged, then counted."""

    def __init__(self, settlements: Settlements) -> None:
        self._settlements = settlements
        self.ranges = Settlements()

    def note(self, queue_id: int, messages: MessageRange) -> None:
        self.ranges.note(queue_id, messages)

    def forget(self, queue_id: int) -> None:
        self.ranges.forget(queue_id)

    def log(self) -> None:
        self._settlements.uncounted.add(self)
        self._settlements.join(self.ranges)

    def count(self, messages: MessageRange) -> None:
        mark(messages)

    def end(self) -> None:
        self._settlements.uncounted.discard(self)


def _follows(ranges: _Ranges, settled_set: RecordSettledSet, low: int) -> bool:
    """Whether no message of the queue is between the last settled one and position `low`."""
    before = ranges.settled_set
    if before is settled_set:
        return ranges.high == low
    assert before is not None
    return (
        ranges.high == -1
        and low == 0
        and before.part is settled_set.part
        and before.ordinal + 1 == settled_set.ordinal
        # Between two compacted records there may be others that were not compacted.
        and not settled_set.part.segment.is_moved
    )
