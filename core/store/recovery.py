"""From the files to what is to be kept: the newest checkpoint, then the log behind it.

A bad end is cut off (a write that a crash tore). Bytes that are no record though records follow
are damage: they are copied aside and left out, and the rest is served. Groups that are not whole
are as if they had never been written.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterable, Iterator
from uuid import uuid4

from ..errors import ConfigError
from ..message.batch import QueueEntry
from . import checkpoint, small_records
from .checkpoint import State
from .codec import read_offsets, read_shares
from .disk import FULL, Disk, File
from .index_repair import is_begun, revive
from .overflow import remove_left
from .quarantine import damaged_name, set_aside
from .reader import DamagedRecord, Reader, lost_records
from .record import (
    COLD,
    FILE_HEADER_BYTES,
    Buffer,
    DamagedHeader,
    Flags,
    Gap,
    Kind,
    Record,
    counting,
    read_file_header,
    scan,
    seal,
)
from .record_index import RecordIndex
from .salvage import reason_of, salvage
from .segment import Segment, segment_name
from .segment_part import SegmentPart
from .settled_set import SettledSet, positions

logger = logging.getLogger(__name__)

KIND = b"log"
SUFFIX = ".log"


class Recovery:
    """Reads a store's directory. `entry` changes nothing unless the whole of it could be read, and
    with `read_only` not even then."""

    def __init__(self, disk: Disk, *, read_only: bool = False) -> None:
        self._disk = disk
        self._read_only = read_only
        self._reader = Reader(disk)
        self.state = State()
        self.store_id = uuid4().bytes
        self.quarantined: list[str] = []
        self.unreadable: dict[int, str] = {}
        self._parts: dict[int, list[SegmentPart]] = {}
        self._tail: list[Segment] = []
        self._unread: dict[int, str] = {}
        self.lost: dict[int, str] = {}
        """Segments with records that are gone, and how many."""
        self._sizes: dict[int, int] = {}
        self._repaired: list[Segment] = []
        self._is_revived = False
        self._is_new = True

    def run(self) -> State:
        """Raises `ConfigError` for files that are not a store's and newer formats, and
        `OSError`."""
        found = checkpoint.read_newest(self._disk)
        numbers = sorted(number_of(name) for name in self._disk.names() if name.endswith(SUFFIX))
        if found is not None:
            self.state, self.store_id = found
            self._is_new = False
        missing = [number for number in self.state.segments if number not in numbers]
        if missing:
            raise ConfigError(
                f"{segment_name(missing[0])} is missing; nothing was changed. Restore that file "
                "from a copy of the data directory, or an empty one in its place: what stood in "
                "it is given up then, and the rest is served."
            )
        paged_out = {number for number in numbers if self._kind(number) == COLD}
        for segment in self.state.segments.values():
            self._repair_index(segment)
        behind = {number for number in numbers if number >= self.state.segment} - paged_out
        if behind:
            self._note_parts()
        for number in numbers:
            if number in behind:
                self._replay(number)
                self.state.clean = False
            elif number not in self.state.segments:
                dead = self.state.segments[number] = Segment(number)
                dead.sealed = True
            else:
                self.state.segments[number].is_moved = number in paged_out
        self._finish(numbers)
        return self.state

    def _kind(self, number: int) -> bytes:
        """Of a file; raises `ConfigError` if it is not this store's."""
        name = segment_name(number)
        file = self._disk.open(name)
        try:
            self._sizes[number] = file.size()
            raw, error = salvage(file, 0, FILE_HEADER_BYTES)
            if error is not None:
                self._unread[number] = reason_of(error)
            header = read_file_header(name, raw)
        except DamagedHeader:
            return self._kind_without_header(number, salvage(file, 0, file.size())[0])
        finally:
            file.close()
        if header.number != number or header.kind not in (KIND, COLD):
            raise ConfigError(
                f"{name}: this is file {header.number} of another place; nothing was changed. "
                "Restore the file of that name from a copy of the data directory."
            )
        if self._is_new:
            self.store_id, self._is_new = header.store_id, False
        if header.store_id != self.store_id:
            raise ConfigError(f"{name}: belongs to another store; nothing was changed")
        return header.kind

    def _kind_without_header(self, number: int, data: bytes) -> bytes:
        """Records are checked by themselves, and say whether they were moved. Those of a segment
        in the checkpoint are taken for moved, which costs acks a few bytes and nothing else."""
        if number not in self._unread:
            self._quarantine(Segment(number), 0, memoryview(data)[:FILE_HEADER_BYTES])
        if number in self.state.segments:
            return COLD
        if not any(data):
            return KIND  # made, and the power or the space went before its header was there
        records = scan(number, memoryview(data))
        moved = (record.flags & Flags.MOVED for record in records if isinstance(record, Record))
        return COLD if any(moved) else KIND

    # -- indexes that are damaged

    def _repair_index(self, segment: Segment) -> None:
        """What the checkpoint says of a segment, it says by ordinals. Where its index is damaged,
        records that are lost keep their places; one whose ordinal can't be known is taken for
        settled only if it is that with every ordinal that it may have.

        A segment of which nothing is settled has nothing to go wrong. One that the disk can't read
        now may be readable at the next start: its own index goes on saying what is settled.
        """
        if segment.keeps_indexes:
            return
        is_short = self._sizes[segment.number] < segment.end
        if not is_short and not any(map(is_begun, segment.parts.values())):
            return
        if self._reader.footer(segment.number) is not None:
            return
        table = self._reader.rebuilt(segment.number)
        lost = revived = 0
        for part in segment.parts.values():
            aligned = table.aligned(part.queue_id, part.summary)
            part.index = aligned.index
            if segment.number not in self._reader.unreadable:
                lost += aligned.lost
                revived += revive(part, aligned, self.state.marks)
        if not table.is_empty and segment.number not in self._reader.unreadable:
            self._repaired.append(segment)
        self._is_revived |= revived > 0
        if lost:
            self.lost[segment.number] = f"{lost} records are damaged or gone"
            logger.error(
                "%s: its index is damaged, and %d records of its queues' messages are damaged or "
                "gone; the rest is served", segment.name, lost,
            )  # fmt: skip
        if revived:
            logger.error(
                "%s: which records are gone can't be told of all queues; %d that may have been "
                "settled are served again, marked as redelivered", segment.name, revived,
            )  # fmt: skip

    def _write_repaired(self) -> None:
        """Writes the indexes, so that the ordinals are these from now on; before that, what is
        taken for unsettled. Those of fenced segments are in each checkpoint from now on."""
        for segment in self._repaired:
            segment.keeps_indexes = segment.is_fenced
        if self._is_revived and not self._write_revived():
            return
        for segment in self._repaired:
            if segment.is_fenced:
                continue
            file = self._disk.open(segment.name)
            try:
                segment.end = file.size()
                self._add_index(segment, file)
            finally:
                file.close()

    def _write_revived(self) -> bool:
        """Writes a checkpoint; False if there is no space for it."""
        number, self.state.segment = self.state.segment, self.state.segment + 1
        buffers = checkpoint.encode(
            number, self.state.sequence, self.state.definitions, self.state.marks,
            self.state.segments, set(), priority_marks=self.state.priority_marks, born=number,
            clean=self.state.clean,
        )  # fmt: skip
        try:
            checkpoint.write(self._disk, self.store_id, number, list(buffers))
        except OSError as error:
            if error.errno not in FULL:
                raise
            logger.warning("no space for indexes that were made anew: %s", error)
            return False
        self.state.checkpoint = number
        return True

    # -- the log behind the checkpoint

    def _note_parts(self) -> None:
        """Those of the checkpoint, by queue and in order: records of the log settle what they
        hold."""
        for segment in self.state.segments.values():
            for part in segment.parts.values():
                self._parts.setdefault(part.queue_id, []).append(part)
        for parts in self._parts.values():
            parts.sort(key=lambda part: part.first)

    def _replay(self, number: int) -> None:
        segment = self.state.segments[number] = Segment(number)
        segment.unclean = True
        segment.end = FILE_HEADER_BYTES
        file = self._disk.open(segment.name)
        try:
            raw, error = salvage(file, 0, file.size())
        finally:
            file.close()
        data = memoryview(raw)
        for record in counting(self._found(segment, data)):
            self._apply(segment, record)
        if error is not None:
            self._unread[number] = reason_of(error)
        if number in self._unread:
            self._fence(segment, self._unread[number])
            segment.keeps_indexes = True
        elif self._end_is_kept(segment, data):
            self._tail.append(segment)

    def _fence(self, segment: Segment, reason: str) -> None:
        """Nobody knows what stands where the disk can't read: the file stays as it is."""
        segment.is_fenced = True
        self.unreadable[segment.number] = reason
        logger.error(
            "%s: can't be read in places: %s; the rest is served, and the file is kept",
            segment.name, reason,
        )  # fmt: skip

    def _fence_others(self) -> None:
        """Those in the checkpoint: their headers, and what settlements had to look at."""
        for number, reason in {**self._reader.unreadable, **self._unread}.items():
            segment = self.state.segments[number]
            if segment.unsettled and number not in self.unreadable:
                self._fence(segment, reason)
        for segment in self.state.segments.values():
            if segment.is_fenced:
                self.unreadable.setdefault(segment.number, "an earlier start could not read it")

    def _found(self, segment: Segment, data: memoryview) -> Iterator[Record | Gap]:
        """Everything up to the end, which is noted; damage is copied aside."""
        for found in scan(segment.number, data):
            if isinstance(found, Gap):
                self._quarantine(segment, found.start, data[found.start : found.end])
            else:
                segment.end = found.end
            yield found

    def _quarantine(self, segment: Segment, start: int, data: memoryview) -> None:
        if not any(data):
            return
        name = damaged_name(segment.number, start)
        logger.error(
            "%s: %d bytes at offset %d are damaged; they are kept as %s, the rest is served",
            segment.name, len(data), start, name,
        )  # fmt: skip
        self.quarantined.append(name)
        if not self._read_only:
            set_aside(self._disk, segment.number, start, data)

    def _end_is_kept(self, segment: Segment, data: memoryview) -> bool:
        """Whether what stands behind the last record may be cut off: it is nothing, or there is
        a copy. A write that a crash tore looks like a damaged record."""
        start = segment.end
        size = len(bytes(data[start:]).rstrip(b"\0"))
        if not size or self._read_only:
            return True
        logger.warning(
            "%s: %d bytes at its end, offset %d, are no record; they are kept as %s",
            segment.name, size, start, damaged_name(segment.number, start),
        )  # fmt: skip
        return set_aside(self._disk, segment.number, start, data[start : start + size])

    def _apply(self, segment: Segment, record: Record) -> None:
        kind, body = record.kind, record.body
        if kind == Kind.MESSAGES:
            self._messages(segment, record)
        elif kind == Kind.SETTLED:
            for queue_id, ranges in small_records.read_settled(body):
                for first, last in _pairs(ranges):
                    self._settle(queue_id, first, last)
        elif kind == Kind.DELIVERED:
            for queue_id, mark in small_records.read_marks(body):
                self.state.marks[queue_id] = max(mark, self.state.marks.get(queue_id, 0))
        elif kind == Kind.DEFINITION:
            key, value = small_records.read_definition(body)
            if value is None:
                self.state.definitions.pop(key, None)
            else:
                self.state.definitions[key] = value
        elif kind == Kind.DROPPED:
            self._drop(small_records.read_number(body))
        elif kind == Kind.START:
            self.state.sequence = max(self.state.sequence, small_records.read_number(body))

    def _messages(self, segment: Segment, record: Record) -> None:
        count, special, shares = read_shares(record.body)
        offsets = dict(read_offsets(record.body))
        self.state.sequence = max(self.state.sequence, record.sequence + count)
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
        """Keeps the places of messages that must have stood before this record of a queue that
        numbers them: the numbers of others stay."""
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
        self.state.marks.pop(queue_id, None)

    # -- what is settled

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
            if index_entry.is_lost and self._may_return(part.segment):
                continue  # Nobody knows yet which messages it has.
            untouched = ordinal not in part.partial and ordinal not in part.entries
            is_whole = index_entry.is_lost or (
                first <= index_entry.first and index_entry.last <= last
            )
            if untouched and is_whole:
                part.mark_dead(ordinal)
                part.count_settled(index_entry.count)
            else:
                self._settle_some(part, ordinal, first, last)

    def _may_return(self, segment: Segment) -> bool:
        """Whether its own index says where lost records are, when it can be read again."""
        is_own = segment.sealed and not segment.keeps_indexes
        return is_own and segment.number in self._reader.unreadable

    def _settle_some(self, part: SegmentPart, ordinal: int, first: int, last: int) -> None:
        entry = part.entries.get(ordinal)
        if entry is None:
            entry = self._load_entry(part, ordinal)
            if entry is None:
                return
        settled_set = entry.settled_set
        assert isinstance(settled_set, SettledSet)
        low, high = positions(entry, first, last)
        for messages in list(settled_set.ranges(entry, redelivered=False, low=low, high=high)):
            settled_set.settle(entry, messages.low, messages.high)

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

    # -- the end

    def _finish(self, numbers: list[int]) -> None:
        self._fence_others()
        for segment in self.state.segments.values():
            for part in list(segment.parts.values()):
                _forget_entries(part)
        if not self._read_only:
            for segment in self._tail:
                self._seal(segment)
            checkpoint.remove_unfinished(self._disk)
            remove_left(self._disk)
        self._reader.close()
        for segment in list(self.state.segments.values()):
            segment.sealed = True
            for part in list(segment.parts.values()):
                if not part.unsettled:
                    del segment.parts[part.queue_id]
        # A stop in order has left a checkpoint of a number without a segment: the next one must
        # not take its place, for then there would be one of them only.
        self.state.segment = max([*numbers, self.state.checkpoint]) + 1
        if not self._read_only:
            self._write_repaired()
        for segment in self.state.segments.values():
            if not segment.keeps_indexes:
                for part in segment.parts.values():
                    part.index = None

    def _seal(self, segment: Segment) -> None:
        """Cuts off what is no record, and writes the index, if there is space for it. One that
        does not say what was found now is cut off as well: its ordinals would be wrong."""
        file = self._disk.open(segment.name)
        try:
            if file.size() > segment.end:
                file.truncate(segment.end)
            footer = self._reader.footer(segment.number)
            is_right = footer is not None and _is_index_of(segment, footer)
            if footer is not None and not is_right:
                segment.end = footer.offset
                file.truncate(segment.end)
            if segment.end > FILE_HEADER_BYTES and not is_right:
                self._add_index(segment, file)
            file.sync()
        finally:
            file.close()

    def _add_index(self, segment: Segment, file: File) -> None:
        end = segment.end
        try:
            for kind, buffers in closing(segment.parts.values(), end):
                sealed = seal(segment.number, segment.end, kind, Flags.NONE, 0, buffers)
                file.write(segment.end, sealed)
                segment.end += sum(map(len, sealed))
            file.sync()
        except OSError as error:
            if error.errno not in FULL:
                raise
            segment.end = end
            file.truncate(end)
            logger.warning("%s: no space for its index", segment.name)


def _pairs(ranges: array[int] | None) -> Iterator[tuple[int, int]]:
    if ranges is not None:
        yield from zip(ranges[0::2], ranges[1::2], strict=True)


def _forget_entries(part: SegmentPart) -> None:
    if not part.entries:
        return
    for ordinal, bits in list(part.settled_bits()):
        part.partial[ordinal] = bits
    part.entries.clear()


def _is_index_of(segment: Segment, footer: Record) -> bool:
    table = small_records.IndexTable(footer.body)
    return all(
        table.index(part.queue_id).numbers == part.index.numbers
        for part in segment.parts.values()
        if part.unsettled and part.index is not None
    )


def closing(parts: Iterable[SegmentPart], at: int) -> list[tuple[int, list[Buffer]]]:
    """The records that complete a segment which ends at `at`: its index, and where that begins.

    Of a queue that has nothing left there no index is needed; that it has nothing left must
    stand in the log already.
    """
    indexes = [
        (part.queue_id, part.index) for part in parts if part.unsettled and part.index is not None
    ]
    return [
        (Kind.INDEX, list(small_records.encode_indexes(indexes))),
        (Kind.SEALED, [small_records.encode_number(at)]),
    ]


def number_of(name: str) -> int:
    """Of a segment's file. Raises `ConfigError` for a name that is none."""
    digits = name.removesuffix(SUFFIX)
    if not digits.isdigit():
        raise ConfigError(f"{name}: not a file of Warren's log; nothing was changed")
    return int(digits)
