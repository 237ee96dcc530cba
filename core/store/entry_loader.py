"""Reads records of the log and makes queue entries of them.

A batch that another queue has in memory already is shared, so a payload is in memory once for all
queues that read it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..clock import Clock
from ..message.batch import Batch, MemoryUsage
from ..message.queue_entry import MessageRange, QueueEntry
from ..message.settled_set import SettledSet, unpacked
from .codec import Messages
from .location import RecordLocation
from .reader import RecordReader
from .record_index import IndexEntry, RecordIndex
from .segment import Segment, segment_name
from .segment_part import SegmentPart
from .settled_set import unsettled_ranges
from .stored_marks import StoredMarks

logger = logging.getLogger(__name__)


class LoadedRecord(NamedTuple):
    """A record of a part; `decoded` is None if it is damaged."""

    ordinal: int
    index_entry: IndexEntry
    decoded: Messages | None


class EntryLoader:
    """Loads queue entries; batches that become resident are counted in `memory`."""

    def __init__(
        self,
        reader: RecordReader,
        clock: Clock,
        marks: StoredMarks,
        memory: MemoryUsage,
    ) -> None:
        self.reader = reader
        self._memory = memory
        self._marks = marks
        self._clock = clock

    def index(self, part: SegmentPart) -> RecordIndex:
        return part.index or self.read_index(part)

    def read_index(self, part: SegmentPart) -> RecordIndex:
        return self.reader.index(part.segment.number, part.queue_id, part.summary)

    def read(
        self, part: SegmentPart, index_entries: Sequence[tuple[int, IndexEntry]]
    ) -> list[LoadedRecord]:
        """Reads the records of these index entries."""
        segment = part.segment
        locations = {index_entry.location for _, index_entry in index_entries}
        return self.select(segment.number, index_entries, self.records(segment, locations))

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
                reason = self.reader.note_damage(number, index_entry)
                logger.error(
                    "%s: %s; %d messages were skipped",
                    segment_name(number),
                    reason,
                    index_entry.count,
                )
            read.append(LoadedRecord(ordinal, index_entry, decoded))
        return read

    def records(
        self, segment: Segment, locations: set[tuple[int, int]]
    ) -> dict[tuple[int, int], Messages]:
        """Reads records of a segment, by offset and size."""
        offset_ms = self._clock.now_ms() - self._clock.steady_ms()
        records: dict[tuple[int, int], Messages] = {}
        read = self.reader.records(segment.number, filter(_is_there, locations))
        for location, record in read.items():
            batch = segment.loaded.get(location[0])
            if batch is None or not batch.resident:
                batch = record.batch(offset_ms)
                batch.location = RecordLocation(segment.number, *location)
            records[location] = Messages(batch, record)
        return records

    def make_entries(self, part: SegmentPart, read: list[LoadedRecord]) -> list[MessageRange]:
        """Makes queue entries of records; returns their unsettled messages. If that fails for a
        record, it is logged and left out, and stays on disk, as a damaged one does."""
        ranges: list[MessageRange] = []
        for one in read:
            try:
                ranges += self._ranges_of(part, one)
            except Exception:
                reason = self.reader.note_damage(part.segment.number, one.index_entry)
                logger.exception(
                    "%s: %s; %d messages were skipped",
                    part.segment.name,
                    reason,
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
        entry = QueueEntry(self.shared_batch(part, index_entry, decoded), selection)
        mark = self._mark(part.queue_id, entry.batch)
        settled_set = part.attach(ordinal, entry)
        part.segment.loaded.add(index_entry.offset, part, ordinal)
        if settled_set.flags is None and (redelivered or index_entry.first > mark):
            return (MessageRange(entry, 0, entry.count, redelivered),)
        ranges = unsettled_ranges(entry, redelivered=redelivered)
        if redelivered:
            return list(ranges)
        return [marked for messages in ranges for marked in _marked(messages, mark)]

    def unsettled_messages(self, part: SegmentPart, read: LoadedRecord) -> list[MessageRange]:
        """Returns the unsettled messages of a record, in an entry that the store does not know:
        they can be looked at, not settled. None of those that are in memory as an entry."""
        ordinal, index_entry, decoded = read
        if decoded is None or part.is_dead(ordinal) or ordinal in part.entries:
            return []
        found = share_of(part, index_entry, decoded)
        if found is None:
            return []
        selection, redelivered = found
        entry = QueueEntry(self.shared_batch(part, index_entry, decoded), selection)
        settled, bits = SettledSet(entry.count), part.partial.get(ordinal)
        if bits is not None:
            settled.set_flags(unpacked(bits, entry.count))
        intervals = settled.intervals(0, entry.count)
        ranges = [MessageRange(entry, low, high, redelivered) for low, high in intervals]
        if redelivered:
            return ranges
        mark = self._mark(part.queue_id, entry.batch)
        return [marked for messages in ranges for marked in _marked(messages, mark)]

    def _mark(self, queue_id: int, batch: Batch) -> int:
        """Returns the highest sequence number of such messages that an earlier process may have
        delivered."""
        mark = self._marks.old.get(queue_id, 0)
        by_priority = self._marks.old_by_priority
        if not by_priority:
            return mark
        return max(mark, by_priority.get((queue_id, batch.attributes.priority), 0))

    def shared_batch(self, part: SegmentPart, index_entry: IndexEntry, decoded: Messages) -> Batch:
        """Returns the batch of a record that is in memory already, or else the one just read."""
        batch = part.segment.loaded.get(index_entry.offset)
        read = decoded.batch
        if batch is None:
            read.charge(self._memory)
            return read
        if not batch.resident and batch is not read:  # Evicted since its record was read.
            batch.restore(read)
        batch.is_shared = True
        return batch


def _is_there(location: tuple[int, int]) -> bool:
    """Whether there is a record; an index also has entries of lost records, with size 0."""
    return location[1] > 0


def share_of(
    part: SegmentPart, index_entry: IndexEntry, decoded: Messages
) -> tuple[Sequence[int] | None, bool] | None:
    """Returns the selection of the queue's messages, None for all, and whether they are
    redelivered; None if the record has none of them. The shares of the record are decoded only if
    the index entry is not sufficient."""
    is_contiguous = index_entry.count == index_entry.last - index_entry.first + 1
    if is_contiguous and (decoded.redelivered or not part.segment.unclean):
        return decoded.record.between(index_entry.first, index_entry.last), decoded.redelivered
    found = decoded.of(part.queue_id)
    if found is None:
        return None
    selection, was_read = found
    return selection, decoded.redelivered or (was_read and part.segment.unclean)


def _marked(messages: MessageRange, mark: int) -> list[MessageRange]:
    """Returns a range, split after the mark: messages up to it are redelivered."""
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
