"""Replays the log behind the checkpoint: applies its records to the state.

Damaged bytes are copied aside and left out, and the rest is applied. Records of a group count only
if the group is complete.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterator

from ..message.queue_entry import QueueEntry
from . import small_records
from .checkpoint import CheckpointState
from .codec import read_offsets, read_shares
from .damage import Damage
from .disk import Disk
from .reader import DamagedRecord, RecordReader, lost_records
from .record import FILE_HEADER_BYTES, Gap, Record, RecordKind, counting, scan
from .record_index import RecordIndex
from .salvage import reason_of, salvage_file
from .segment import Segment
from .segment_part import SegmentPart
from .settled_set import positions, settled_set_of

logger = logging.getLogger(__name__)


class LogReplay:
    """Applies segments of the log to the state, in order.

    `unread` has the errors of headers that could not be read, by segment number; errors of other
    reads are added. `tail` has the segments that have to be sealed.
    """

    def __init__(
        self,
        disk: Disk,
        reader: RecordReader,
        state: CheckpointState,
        damage: Damage,
        unread: dict[int, str],
    ) -> None:
        self._disk = disk
        self._reader = reader
        self._state = state
        self._damage = damage
        self._unread = unread
        self.tail: list[Segment] = []
        self._parts: dict[int, list[SegmentPart]] = {}
        """The parts of each queue in order, in which records of the log settle messages."""
        for segment in state.segments.values():
            for part in segment.parts.values():
                self._parts.setdefault(part.queue_id, []).append(part)
        for parts in self._parts.values():
            parts.sort(key=lambda part: part.first)

    def apply(self, number: int) -> None:
        """Applies the records of one segment."""
        segment = self._state.segments[number] = Segment(number)
        segment.unclean = True
        segment.end = FILE_HEADER_BYTES
        raw, error = salvage_file(self._disk, segment.name)
        data = memoryview(raw)
        for record in counting(self._found(segment, data)):
            self._apply(segment, record)
        if error is not None:
            self._unread[number] = reason_of(error)
        if number in self._unread:
            self._damage.fence(segment, self._unread[number])
            segment.keeps_indexes = True
        elif self._damage.add_end(segment, data):
            self.tail.append(segment)

    def _found(self, segment: Segment, data: memoryview) -> Iterator[Record | Gap]:
        """Yields all records and gaps; copies the gaps aside and notes the segment's end."""
        for found in scan(segment.number, data):
            if isinstance(found, Gap):
                self._damage.add_gap(segment, found.start, data[found.start : found.end])
            else:
                segment.end = found.end
            yield found

    def _apply(self, segment: Segment, record: Record) -> None:
        kind, body = record.kind, record.body
        if kind == RecordKind.MESSAGES:
            self._messages(segment, record)
        elif kind == RecordKind.SETTLED:
            for queue_id, ranges in small_records.read_settled(body):
                for first, last in _pairs(ranges):
                    self._settle(queue_id, first, last)
        elif kind == RecordKind.DELIVERED:
            for queue_id, mark in small_records.read_marks(body):
                self._state.marks[queue_id] = max(mark, self._state.marks.get(queue_id, 0))
        elif kind == RecordKind.DEFINITION:
            key, value = small_records.read_definition(body)
            if value is None:
                self._state.definitions.pop(key, None)
            else:
                self._state.definitions[key] = value
        elif kind == RecordKind.DROPPED:
            self._drop(small_records.read_number(body))
        elif kind == RecordKind.START:
            self._state.sequence = max(self._state.sequence, small_records.read_number(body))

    def _messages(self, segment: Segment, record: Record) -> None:
        count, special, shares = read_shares(record.body)
        offsets = dict(read_offsets(record.body))
        self._state.sequence = max(self._state.sequence, record.sequence + count)
        for share in shares:
            chosen = share.selection
            first = record.sequence + (chosen[0] if chosen else 0)
            last = record.sequence + (chosen[-1] if chosen else count - 1)
            size = record.end - record.offset
            for flagged_id in share.queues:
                part = segment.part(flagged_id >> 1)
                if not part.records:
                    self._parts.setdefault(flagged_id >> 1, []).append(part)
                offset = offsets.get(flagged_id >> 1)
                if offset is not None:
                    self._note_lost(part, first, offset)
                part.add(
                    first, last, len(chosen) if chosen else count, record.offset, size, special
                )
                if offset is not None:
                    part.number(offset)

    def _note_lost(self, part: SegmentPart, first: int, offset: int) -> None:
        """Adds entries for lost messages of a stream before this record, so that the offsets of
        other messages do not change."""
        parts = self._parts[part.queue_id]
        expected = max(other.next_offset for other in parts)
        if not 0 < expected < offset:
            return
        logger.error(
            "%s: %d messages with the offsets from %d on are lost (queue id %d)",
            part.segment.name, offset - expected, expected, part.queue_id,
        )  # fmt: skip
        before = max(other.last for other in parts)
        for lost in lost_records(before, first, offset - expected):
            part.add(*lost, 0, 0, 0)

    def _drop(self, queue_id: int) -> None:
        for part in self._parts.pop(queue_id, ()):
            part.clear()
            part.segment.parts.pop(queue_id, None)
        self._state.marks.pop(queue_id, None)

    def _settle(self, queue_id: int, first: int, last: int) -> None:
        parts = self._parts.get(queue_id)
        if not parts:
            return
        while parts and not parts[0].unsettled and parts[0].segment.sealed:
            parts.pop(0)
        for part in parts:
            if part.first > last:
                break
            if part.last >= first and part.unsettled:
                self._settle_part(part, first, last)

    def _settle_part(self, part: SegmentPart, first: int, last: int) -> None:
        index = self._index(part)
        for ordinal in range(max(part.front, index.at(first)), len(index)):
            index_entry = index[ordinal]
            if index_entry.first > last:
                break
            if index_entry.last < first or part.is_dead(ordinal):
                continue
            if index_entry.is_lost and self._may_become_readable(part.segment):
                continue  # It is unknown yet which messages it has.
            untouched = ordinal not in part.partial and ordinal not in part.entries
            is_whole = index_entry.is_lost or (
                first <= index_entry.first and index_entry.last <= last
            )
            if untouched and is_whole:
                part.mark_dead(ordinal)
                part.count_settled(index_entry.count)
            else:
                self._settle_some(part, ordinal, first, last)

    def _may_become_readable(self, segment: Segment) -> bool:
        """Whether the segment's own index may be readable later, with the lost records in it."""
        is_own = segment.sealed and not segment.keeps_indexes
        return is_own and segment.number in self._reader.unreadable

    def _settle_some(self, part: SegmentPart, ordinal: int, first: int, last: int) -> None:
        entry = part.entries.get(ordinal)
        if entry is None:
            entry = self._load_entry(part, ordinal)
            if entry is None:
                return
        settled_set = settled_set_of(entry)
        for low, high in list(settled_set.intervals(*positions(entry, first, last))):
            settled_set.settle(low, high)

    def _load_entry(self, part: SegmentPart, ordinal: int) -> QueueEntry | None:
        index_entry = self._index(part)[ordinal]
        try:
            record = self._reader.record(part.segment.number, index_entry.offset, index_entry.size)
        except DamagedRecord as error:
            logger.error("%s", error)
            return None
        found = record.of(part.queue_id)
        assert found is not None
        batch = record.batch(0)
        entry = QueueEntry(batch, found[0])
        batch.evict()
        part.attach(ordinal, entry)
        return entry

    def _index(self, part: SegmentPart) -> RecordIndex:
        if part.index is None:
            part.index = self._reader.index(part.segment.number, part.queue_id, part.summary)
        return part.index


def _pairs(ranges: array[int] | None) -> Iterator[tuple[int, int]]:
    if ranges is not None:
        yield from zip(ranges[0::2], ranges[1::2], strict=True)
