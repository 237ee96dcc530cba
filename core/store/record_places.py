"""The places of a stream's records: intervals of its parts, in order of offset."""

from __future__ import annotations

from array import array

from ..message.queue_entry import MessageRange, PagedOut
from ..message.stream_read import RecordsWanted
from .record_index import ENTRY, RecordIndex
from .segment_part import SegmentPart, location_of
from .split_entries import records_of


class RecordPlace:
    """Records `low` to `high - 1` of a part; the first of their `count` messages is at `offset`."""

    __slots__ = ("count", "high", "low", "numbers", "offset", "part")

    def __init__(self, offset: int, part: SegmentPart, low: int, high: int, count: int) -> None:
        self.offset = offset
        self.part = part
        self.low = low
        self.high = high
        self.count = count
        self.numbers: array[int] | None = None
        """What the index says of them, if it was in memory."""

    @property
    def end(self) -> int:
        return self.offset + self.count

    def look_up(self, index: RecordIndex, start: int, records_max: int) -> None:
        """Notes what an index says of the records from the one with the message at `start` on."""
        found = index.find(self.low, self.high, max(0, start - self.offset))
        if found is None:
            self.numbers = array("Q")
            return
        ordinal, position = found
        high = min(self.high, ordinal + records_max)
        self.numbers = index.numbers[ENTRY * ordinal : ENTRY * high]
        self.offset += position
        self.count -= position


def places_of(wanted: RecordsWanted, records_max: int) -> list[RecordPlace]:
    """Returns where the contents are. What an index in memory says is copied: it may grow."""
    places: list[RecordPlace] = []
    for offset, content in wanted.contents:
        if isinstance(content, PagedOut):
            location = location_of(content)
            places.append(
                RecordPlace(offset, location.part, location.low, location.high, content.count)
            )
        else:
            _add_entry(places, offset, content)
    for place in places:
        if place.part.index is not None:
            place.look_up(place.part.index, wanted.start, records_max)
    return places


def _add_entry(places: list[RecordPlace], offset: int, messages: MessageRange) -> None:
    """Adds the records of messages in memory, to the place before if they follow."""
    before = places[-1] if places else None
    for part, ordinal, count in records_of(messages.entry):
        if before is not None and before.high == ordinal and before.part is part:
            before.high += 1
            before.count += count
        else:
            before = RecordPlace(offset, part, ordinal, ordinal + 1, count)
            places.append(before)
        offset += count
