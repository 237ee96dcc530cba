"""What was settled since the last hand-over, as ranges of numbers for each queue.

A range means "this queue's in it", so it is made longer only if no other message of the queue
that is still kept can lie between.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from ..block import Span
from . import entries
from .part import Kept


class _Ranges:
    """Pairs of first and last number, and where the last one ends."""

    __slots__ = ("high", "kept", "numbers")

    def __init__(self) -> None:
        self.numbers = array("Q")
        self.kept: Kept | None = None
        self.high = 0


class Settling:
    """Settles runs and remembers what has to be written of it."""

    def __init__(self) -> None:
        self._queues: dict[int, _Ranges] = {}

    def __bool__(self) -> bool:
        return bool(self._queues)

    def settle(self, queue_id: int, span: Span) -> None:
        """These messages are done with; nothing happens if they were never kept."""
        run = span.run
        kept = run.kept
        if not isinstance(kept, Kept):
            return
        kept.settle(run, span.low, span.high)
        ranges = self._of(queue_id)
        last = run.sequence(span.high - 1)
        if ranges.kept is not None and _follows(ranges, kept, span.low):
            ranges.numbers[-1] = last
        else:
            ranges.numbers.extend((run.sequence(span.low), last))
        ranges.kept = kept
        ranges.high = -1 if span.high == run.count else span.high

    def add(self, queue_id: int, numbers: Iterable[int]) -> None:
        """Pairs of first and last number that were settled by other means."""
        ranges = self._of(queue_id)
        ranges.kept = None
        ranges.numbers.extend(numbers)

    def forget(self, queue_id: int) -> None:
        """The queue has ended."""
        self._queues.pop(queue_id, None)

    def take(self) -> bytes:
        """The body of a record that says all of it."""
        queues, self._queues = self._queues, {}
        return entries.encode_settled({key: held.numbers for key, held in queues.items()})

    def _of(self, queue_id: int) -> _Ranges:
        ranges = self._queues.get(queue_id)
        if ranges is None:
            ranges = self._queues[queue_id] = _Ranges()
        return ranges


def _follows(ranges: _Ranges, kept: Kept, low: int) -> bool:
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
