"""Copies the unsettled messages of segments into a new file, on a worker's thread.

Records of one queue are written next to each other. An old record becomes one new record for each
range of neighbouring messages that are unsettled in at least one queue. A queue's share of a new
record reaches from its first to its last unsettled message in it; settled ones between them stay in
the share and are noted as settled, so that each share is an interval of the old one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from ..message.batch import Batch
from ..message.queue_entry import QueueEntry
from ..message.settled_set import packed, unpacked
from . import small_records
from .codec import MessageRecord, Messages
from .copied_records import CompactedSegment, CopySource, QueueCopy, Survivors
from .disk import Disk, File
from .encoder import encode_messages
from .location import RecordLocation
from .reader import DamagedRecord, RecordReader
from .record import FILE_HEADER_BYTES, Buffer, Flags, RecordKind, seal
from .record_index import IndexEntry, RecordIndex
from .segment import Segment, segment_name
from .segment_part import SegmentPart
from .split_entries import batch_slice

_WRITE_BYTES: Final = 1024 * 1024


class _LiveShare:
    """The unsettled messages of one queue in a record: their `positions` in its entry and their
    `indices` in the batch. Implements `QueueIdentity` for the codec."""

    __slots__ = ("entry", "flags", "has_consumers", "indices", "ordinal", "positions", "survivors")

    durable = True

    def __init__(
        self, survivors: Survivors, ordinal: int, has_consumers: bool, entry: QueueEntry
    ) -> None:
        self.survivors = survivors
        self.ordinal = ordinal
        self.has_consumers = has_consumers
        self.entry = entry
        settled = survivors.settled.get(ordinal)
        self.flags = None if settled is None else unpacked(settled, entry.count)
        flags = self.flags
        self.positions = array(
            "I", [at for at in range(entry.count) if flags is None or not flags[at]]
        )
        self.indices = array("I", [entry.index(at) for at in self.positions])

    @property
    def id(self) -> int:
        return self.survivors.queue_id

    def within(self, first: int, count: int) -> tuple[int, int] | None:
        """Returns the half-open interval of positions from the first to the last unsettled message
        among `count` messages of the batch; None if there are none."""
        low = bisect_left(self.indices, first)
        high = bisect_left(self.indices, first + count)
        return (self.positions[low], self.positions[high - 1] + 1) if low < high else None

    def fragment(self, batch: Batch, first: int, interval: tuple[int, int]) -> QueueEntry:
        """Returns an entry with these positions, of a batch that begins with index `first`."""
        low, high = interval
        if high - low == batch.count:
            return QueueEntry(batch, None)
        return QueueEntry(
            batch, array("I", [self.entry.index(at) - first for at in range(low, high)])
        )

    def settled(self, interval: tuple[int, int]) -> bytes | None:
        """Returns which of these positions are settled, as bits; None if none are."""
        flags = None if self.flags is None else self.flags[interval[0] : interval[1]]
        return packed(flags) if flags is not None and 1 in flags else None


class Copier:
    """Writes the file of one compaction."""

    def __init__(self, disk: Disk, reader: RecordReader, number: int, header: bytes) -> None:
        self._disk = disk
        self._reader = reader
        self._copy = CompactedSegment(Segment(number))
        self._segment = self._copy.segment
        self._segment.end = FILE_HEADER_BYTES
        self._segment.is_moved = True
        self._buffers: list[Buffer] = [header]
        self._buffers_bytes = len(header)
        self._written = 0
        self._file: File | None = None
        self._survivors: dict[tuple[int, int], Survivors] = {}
        self._indexes: dict[tuple[int, int], RecordIndex] = {}
        self._shared: set[tuple[int, int]] = set()
        """Segments and offsets of records that were copied for several queues."""

    def run(self, all_survivors: list[Survivors]) -> CompactedSegment:
        """Copies all records. Raises `OSError` or `DamagedRecord`; the file is unused then."""
        self._file = self._disk.create(segment_name(self._segment.number))
        try:
            self._flush()
            self._file.sync()  # Records behind a lost header would be considered damaged.
            self._copy_all(all_survivors)
            self._seal()
            self._flush()
            self._file.sync()
        finally:
            self._file.close()
        self._disk.sync_directory()
        return self._copy

    def _copy_all(self, all_survivors: list[Survivors]) -> None:
        self._survivors = {
            (survivors.segment, survivors.queue_id): survivors for survivors in all_survivors
        }
        self._copy.victims = {survivors.segment for survivors in all_survivors}
        for survivors in sorted(
            all_survivors, key=lambda survivors: (survivors.queue_id, survivors.segment)
        ):
            index = self._index(survivors)
            for ordinal in survivors.ordinals:
                index_entry = index[ordinal]
                if (survivors.segment, index_entry.offset) not in self._shared:
                    self._copy_record(survivors, index_entry)

    def _index(self, survivors: Survivors) -> RecordIndex:
        key = survivors.segment, survivors.queue_id
        index = self._indexes.get(key)
        if index is None:
            index = self._indexes[key] = self._reader.index(*key, survivors.summary)
        return index

    def _copy_record(self, survivors: Survivors, index_entry: IndexEntry) -> None:
        record = self._reader.record(survivors.segment, index_entry.offset, index_entry.size)
        messages = Messages(record.batch(0), record)
        live_shares = list(self._live_shares(survivors.segment, messages))
        if survivors.queue_id not in [share.id for share in live_shares]:
            raise DamagedRecord(
                survivors.segment,
                f"the record at offset {index_entry.offset} is not of queue {survivors.queue_id}",
            )
        if len(live_shares) > 1:
            self._shared.add((survivors.segment, index_entry.offset))
        first_record = len(self._copy.offsets)
        starts = [len(self._queue_copy(share.id).index) for share in live_shares]
        redelivered = messages.redelivered or any(
            share.has_consumers and share.survivors.unclean for share in live_shares
        )
        for interval in _live_intervals(live_shares):
            self._write(record, messages.batch, interval, live_shares, redelivered=redelivered)
        for share, start in zip(live_shares, starts, strict=True):
            self._note(share, start, record.sequence, first_record)

    def _live_shares(self, segment: int, messages: Messages) -> Iterator[_LiveShare]:
        """Yields the shares of all queues that have unsettled messages in a record."""
        for share in messages.shares:
            entry = QueueEntry(messages.batch, share.selection)
            for flagged_id in share.queues:
                survivors = self._survivors.get((segment, flagged_id >> 1))
                ordinal = None if survivors is None else self._ordinal(survivors, entry.sequence(0))
                if survivors is not None and ordinal is not None:
                    yield _LiveShare(survivors, ordinal, bool(flagged_id & 1), entry)

    def _ordinal(self, survivors: Survivors, first: int) -> int | None:
        """Returns the ordinal of the record that begins with this message; None if all of it is
        settled."""
        ordinal = self._index(survivors).at(first)
        if ordinal < 0 or self._index(survivors)[ordinal].first != first:
            return None
        at = bisect_left(survivors.ordinals, ordinal)
        return (
            ordinal if at < len(survivors.ordinals) and survivors.ordinals[at] == ordinal else None
        )

    def _queue_copy(self, queue_id: int) -> QueueCopy:
        found = self._copy.queues.get(queue_id)
        if found is None:
            part = SegmentPart(self._segment, queue_id)
            found = self._copy.queues[queue_id] = QueueCopy(part)
        return found

    def _write(
        self,
        old: MessageRecord,
        batch: Batch,
        interval: tuple[int, int],
        live_shares: list[_LiveShare],
        *,
        redelivered: bool,
    ) -> None:
        """Writes one new record, with the messages of an interval of the old one."""
        first, count = interval
        shares = [(share, found) for share in live_shares if (found := share.within(first, count))]
        fragment = batch_slice(batch, first, count)
        entries = [(share, share.fragment(fragment, first, found)) for share, found in shares]
        body = encode_messages(fragment, entries, old.arrived_wall_ms, redelivered=redelivered)
        where = self._put(RecordKind.MESSAGES, old.sequence + first, body)
        self._copy.firsts.append(first)
        self._copy.offsets.append(where.offset)
        self._copy.sizes.append(where.size)
        for (share, found), (_, entry) in zip(shares, entries, strict=True):
            copied = self._queue_copy(share.id)
            settled = share.settled(found)
            if settled is not None:
                copied.part.partial[len(copied.index)] = settled
            copied.add(entry, where, found)

    def _note(self, share: _LiveShare, start: int, base: int, first_record: int) -> None:
        copied = self._queue_copy(share.id)
        source = copied.sources.get(share.survivors.segment)
        if source is None:
            source = copied.sources[share.survivors.segment] = CopySource(share.survivors)
        source.ordinals.append(share.ordinal)
        source.starts.append(start)
        source.stops.append(len(copied.index))
        source.bases.append(base)
        source.first_records.append(first_record)
        source.last_records.append(len(self._copy.offsets))

    def _seal(self) -> None:
        for copied in self._copy.queues.values():
            copied.sort()
            part, index = copied.part, copied.index
            part.records = len(index)
            part.first, part.last = index[0].first, index[len(index) - 1].last
        at = self._segment.end
        indexes = ((queue_id, copied.index) for queue_id, copied in self._copy.queues.items())
        self._put(RecordKind.INDEX, 0, list(small_records.encode_indexes(indexes)))
        self._put(RecordKind.SEALED, 0, [small_records.encode_number(at)])

    def _put(self, kind: RecordKind, sequence: int, body: list[Buffer]) -> RecordLocation:
        segment = self._segment
        offset = segment.end
        flags = Flags.MOVED if kind == RecordKind.MESSAGES else Flags.NONE
        buffers = seal(segment.number, offset, kind, flags, sequence, body)
        size = sum(map(len, buffers))
        self._buffers += buffers
        self._buffers_bytes += size
        segment.end += size
        if self._buffers_bytes > _WRITE_BYTES:
            self._flush()
        return RecordLocation(segment.number, offset, size)

    def _flush(self) -> None:
        assert self._file is not None
        self._file.write(self._written, self._buffers)
        self._written += self._buffers_bytes
        self._buffers, self._buffers_bytes = [], 0


def _live_intervals(live_shares: list[_LiveShare]) -> list[tuple[int, int]]:
    """Returns the first index and the length of each range of neighbouring messages that are
    unsettled in at least one queue."""
    unsettled = sorted({at for share in live_shares for at in share.indices})
    found: list[tuple[int, int]] = []
    for at in unsettled:
        if found and sum(found[-1]) == at:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((at, 1))
    return found
