"""Reads records of the log back and makes queue entries of them.

A batch that another queue has in memory already is shared, so a payload is in memory once for all
queues that read it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

from ..clock import Clock
from ..message.batch import Batch, MemoryUsage, MessageRange, QueueEntry
from .codec import Messages
from .reader import Reader
from .record_index import IndexEntry, RecordIndex
from .segment import segment_name
from .segment_part import SegmentPart

logger = logging.getLogger(__name__)


class LoadedRecord(NamedTuple):
    """A record of a part; `decoded` is None if it is damaged."""

    ordinal: int
    index_entry: IndexEntry
    decoded: Messages | None


class EntryLoader:
    """Loads queue entries. `old_marks` say, by queue id, up to which number messages may have been
    delivered by an earlier process; `old_priority_marks` up to which those of a priority were.
    What becomes resident is counted in `memory`."""

    def __init__(
        self,
        reader: Reader,
        clock: Clock,
        old_marks: Mapping[int, int],
        old_priority_marks: Mapping[tuple[int, int], int],
    ) -> None:
        self.memory = MemoryUsage()
        self.reader = reader
        self.old_marks = old_marks
        self.old_priority_marks = old_priority_marks
        self._clock = clock
        self._batches: WeakValueDictionary[tuple[int, int], Batch] = WeakValueDictionary()

    def index(self, part: SegmentPart) -> RecordIndex:
        return part.index or self.read_index(part)

    def read_index(self, part: SegmentPart) -> RecordIndex:
        return self.reader.index(part.segment.number, part.queue_id, part.summary)

    def read(
        self, part: SegmentPart, index_entries: Sequence[tuple[int, IndexEntry]]
    ) -> list[LoadedRecord]:
        """Reads the records of these index entries."""
        number = part.segment.number
        locations = {index_entry.location for _, index_entry in index_entries}
        return self.select(number, index_entries, self.records(number, locations))

    def select(
        self,
        number: int,
        index_entries: Sequence[tuple[int, IndexEntry]],
        records: Mapping[tuple[int, int], Messages],
    ) -> list[LoadedRecord]:
        """Selects a queue's records from those that were read, and logs which are damaged."""
        read: list[LoadedRecord] = []
        for ordinal, index_entry in index_entries:
            decoded = records.get(index_entry.location)
            if decoded is None:
                what = self.reader.note_damage(number, index_entry)
                logger.error(
                    "%s: %s; %d messages are left out",
                    segment_name(number),
                    what,
                    index_entry.count,
                )
            read.append(LoadedRecord(ordinal, index_entry, decoded))
        return read

    def records(
        self, number: int, locations: set[tuple[int, int]]
    ) -> dict[tuple[int, int], Messages]:
        """Reads records of a segment, by offset and size."""
        offset_ms = self._clock.now_ms() - self._clock.steady_ms()
        records: dict[tuple[int, int], Messages] = {}
        for location, record in self.reader.records(number, filter(_is_there, locations)).items():
            batch = self._batches.get((number, location[0]))
            if batch is None or not batch.resident:
                batch = record.batch(offset_ms)
                batch.location = (number, *location)
            records[location] = Messages(batch, record)
        return records

    def make_entries(self, part: SegmentPart, read: list[LoadedRecord]) -> list[MessageRange]:
        """Makes queue entries of records; returns their unsettled messages. A record of which none
        can be made is logged and left out, and stays on disk, as a damaged one does."""
        ranges: list[MessageRange] = []
        for one in read:
            try:
                ranges += self._ranges_of(part, one)
            except Exception:
                what = self.reader.note_damage(part.segment.number, one.index_entry)
                logger.exception(
                    "%s: %s; %d messages are left out",
                    part.segment.name,
                    what,
                    one.index_entry.count,
                )
        return ranges

    def _ranges_of(self, part: SegmentPart, read: LoadedRecord) -> Sequence[MessageRange]:
        ordinal, index_entry, decoded = read
        if decoded is None or part.is_dead(ordinal) or ordinal in part.entries:
            return ()
        found = share_of(part, index_entry, decoded)
        if found is None:
            return ()
        selection, redelivered = found
        entry = QueueEntry(self.shared_batch(part, index_entry, decoded.batch), selection)
        mark = self._mark(part.queue_id, entry.batch)
        settled_set = part.attach(ordinal, entry)
        if settled_set.flags is None and (redelivered or index_entry.first > mark):
            return (MessageRange(entry, 0, entry.count, redelivered),)
        ranges = settled_set.ranges(entry, redelivered=redelivered)
        if redelivered:
            return list(ranges)
        return [marked for messages in ranges for marked in _marked(messages, mark)]

    def _mark(self, queue_id: int, batch: Batch) -> int:
        """Up to which sequence number an earlier process may have delivered such messages."""
        mark = self.old_marks.get(queue_id, 0)
        if not self.old_priority_marks:
            return mark
        return max(mark, self.old_priority_marks.get((queue_id, batch.attributes.priority), 0))

    def shared_batch(self, part: SegmentPart, index_entry: IndexEntry, read: Batch) -> Batch:
        """The batch of that record that is in memory already, or else the one just read."""
        key = part.segment.number, index_entry.offset
        batch = self._batches.get(key)
        if batch is None:
            self._batches[key] = read
            read.charge(self.memory)
            return read
        if not batch.resident and batch is not read:  # let go since its record was read
            batch.restore(read)
        batch.is_shared = True
        return batch


def _is_there(location: tuple[int, int]) -> bool:
    """Whether there is a record; an index also has entries of lost ones, of size 0."""
    return location[1] > 0


def share_of(
    part: SegmentPart, index_entry: IndexEntry, decoded: Messages
) -> tuple[Sequence[int] | None, bool] | None:
    """The selection of the queue's messages, None for all, and whether they are redelivered; None
    if the record has none of them. The shares of the record are decoded only if the index entry
    does not say it."""
    is_told = index_entry.count == index_entry.last - index_entry.first + 1
    if is_told and (decoded.redelivered or not part.segment.unclean):
        return decoded.record.between(index_entry.first, index_entry.last), decoded.redelivered
    found = decoded.of(part.queue_id)
    if found is None:
        return None
    selection, was_read = found
    return selection, decoded.redelivered or (was_read and part.segment.unclean)


def _marked(messages: MessageRange, mark: int) -> list[MessageRange]:
    """The range, split after the mark: messages up to it are redelivered."""
    entry = messages.entry
    if entry.sequence(messages.low) > mark:
        return [messages]
    low = messages.low
    while low < messages.high and entry.sequence(low) <= mark:
        low += 1
    ranges = [MessageRange(entry, messages.low, low, True)]
    if low < messages.high:
        ranges.append(MessageRange(entry, low, messages.high))
    return ranges
