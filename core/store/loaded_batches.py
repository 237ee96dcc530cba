"""The batches that queues have read from a segment, so that other queues share them.

Queue entries are referred to by part and ordinal, and batches not at all: a batch leaves memory
with its last entry. Outdated references are removed as new ones are added, and with the segment.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from ..message.batch import Batch

if TYPE_CHECKING:
    from .segment_part import SegmentPart

_CHECKED_AT_ONCE: Final = 2


class LoadedBatches:
    """Finds batches by the offset of their record. Another thread may read it."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: OrderedDict[int, tuple[SegmentPart, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, offset: int) -> Batch | None:
        """Returns the batch of a record, if it is in memory."""
        place = self._entries.get(offset)
        if place is None:
            return None
        part, ordinal = place
        entry = part.entries.get(ordinal)
        return None if entry is None else entry.batch

    def add(self, offset: int, part: SegmentPart, ordinal: int) -> None:
        """Notes that the entry at this ordinal has the batch of a record."""
        entries = self._entries
        entries[offset] = part, ordinal
        for _ in range(min(_CHECKED_AT_ONCE, len(entries) - 1)):
            oldest, place = entries.popitem(last=False)
            if place[1] in place[0].entries:
                entries[oldest] = place
