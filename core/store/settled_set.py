"""Settled sets of queue entries that are in the log, and the records that count the messages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..message.queue_entry import MessageRange, QueueEntry
from ..message.settled_set import SettledSet

if TYPE_CHECKING:
    from .segment_part import SegmentPart


class RecordSettledSet(SettledSet):
    """The settled set of an entry that is record `ordinal` of `part`."""

    __slots__ = ("ordinal", "part")

    def __init__(self, part: SegmentPart, ordinal: int, count: int) -> None:
        super().__init__(count)
        self.part = part
        self.ordinal = ordinal

    def settle(self, low: int, high: int) -> None:
        """Settles positions `low` to `high - 1`, none of which was settled before."""
        self.mark(low, high)
        part = self.part
        if not self.unsettled:
            part.mark_dead(self.ordinal)
        part.count_settled(high - low, self.ordinal)


def settled_set_of(entry: QueueEntry) -> RecordSettledSet:
    """Returns the settled set of an entry that is in the log."""
    settled_set = entry.settled_set
    assert isinstance(settled_set, RecordSettledSet)
    return settled_set


def unsettled_ranges(entry: QueueEntry, *, redelivered: bool) -> Iterator[MessageRange]:
    """Yields the unsettled messages of an entry that is in the log."""
    for low, high in settled_set_of(entry).intervals(0, entry.count):
        yield MessageRange(entry, low, high, redelivered)


class Fragment:
    """The record of positions `low` to `high - 1` of an entry, `unsettled` of them unsettled."""

    __slots__ = ("high", "low", "ordinal", "part", "unsettled")

    def __init__(
        self, low: int, high: int, unsettled: int, part: SegmentPart, ordinal: int
    ) -> None:
        self.low = low
        self.high = high
        self.unsettled = unsettled
        self.part = part
        self.ordinal = ordinal

    def count_settled(self, count: int) -> None:
        """Subtracts positions that were settled."""
        self.unsettled -= count
        if not self.unsettled:
            self.part.mark_dead(self.ordinal)
        self.part.count_settled(count, self.ordinal)


def positions(entry: QueueEntry, first: int, last: int) -> tuple[int, int]:
    """Returns the half-open interval of positions of messages numbered `first` to `last`."""
    low, high = first - entry.batch.sequence, last - entry.batch.sequence
    selection: Sequence[int] | None = entry.selection
    if selection is None:
        return max(0, low), min(entry.count, high + 1)
    return bisect_left(selection, low), bisect_right(selection, high)
