"""Copies what is left of segments into a new file, on a worker's thread.

The records of one holder stand side by side. What is left of an old record becomes a new one for
each range of neighbouring messages that somebody holds. A queue's share of it reaches from its
first to its last message that is left; those between that are settled stay in it and are noted as
settled, so that each share is an interval of the old one.

Of each new record a few numbers stay in memory, in arrays, until the switch is over.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..message.batch import Batch, QueueEntry
from . import small_records
from .codec import MessageRecord, Messages, encode_messages
from .disk import Disk, File
from .reader import DamagedRecord, Reader
from .record import FILE_HEADER_BYTES, Buffer, Flags, Kind, seal
from .record_index import ENTRY, IndexEntry, RecordIndex
from .segment import Segment, segment_name
from .segment_part import SegmentPart
from .settled_set import packed, unpacked
from .split_entries import RecordLocation, batch_slice

_WRITE_BYTES = 1024 * 1024


class Survivors:
    """What was left of a part in a survey: the ordinals of its records, and which positions of
    them were settled, where any were."""

    __slots__ = ("dead_count", "ordinals", "queue_id", "segment", "settled", "summary", "unclean")

    def __init__(self, part: SegmentPart) -> None:
        self.queue_id = part.queue_id
        self.segment = part.segment.number
        self.summary = part.summary
        self.unclean = part.segment.unclean
        self.dead_count = part.dead_count
        self.ordinals = array("I")
        self.settled: dict[int, bytes] = {}

    def add(self, ordinal: int, settled: bytes | None) -> None:
        self.ordinals.append(ordinal)
        if settled is not None:
            self.settled[ordinal] = settled


class Source:
    """Where the records of an old part went.

    Record `ordinals[i]` went to the ordinals from `starts[i]` to `stops[i] - 1` of the new part.
    It began with message `bases[i]`, and what anybody holds of it is in the new file's records
    from `first_records[i]` to `last_records[i] - 1`. `dead_count` is how many of the old
    part's records were dead when the survey began.
    """

    def __init__(self, survivors: Survivors) -> None:
        self.dead_count = survivors.dead_count
        self.ordinals = array("I")
        self.starts = array("I")
        self.stops = array("I")
        self.bases = array("Q")
        self.first_records = array("I")
        self.last_records = array("I")

    def at(self, ordinal: int) -> int:
        """The place of the first record from this ordinal on."""
        return bisect_left(self.ordinals, ordinal)

    def sort(self, rank: Sequence[int]) -> None:
        """Puts the records in order of ordinals, when new ones are known as `rank` says."""
        for at, start in enumerate(self.starts):
            # The new records of a record stay together: no other one has messages between theirs.
            self.stops[at] += rank[start] - start
            self.starts[at] = rank[start]
        order = sorted(range(len(self.ordinals)), key=self.ordinals.__getitem__)
        for name in ("ordinals", "starts", "stops", "bases", "first_records", "last_records"):
            setattr(self, name, _permuted(getattr(self, name), order))


class QueueCopy:
    """The new records of one queue: the new part, and for each ordinal of it which positions of
    the old record it holds (`lows` to `highs - 1`). `sources` are old parts by segment."""

    def __init__(self, part: SegmentPart) -> None:
        self.part = part
        self.index = RecordIndex()
        self.lows = array("I")
        self.highs = array("I")
        self.sources: dict[int, Source] = {}

    def add(self, entry: QueueEntry, where: RecordLocation, interval: tuple[int, int]) -> None:
        low, high = interval
        special = entry.batch.attributes.special
        first, last = entry.sequence(0), entry.sequence(entry.count - 1)
        self.index.add(first, last, high - low, where[1], where[2], special=special)
        self.part.special |= special
        self.lows.append(low)
        self.highs.append(high)

    def sort(self) -> None:
        """Puts the records in the order of their messages: old parts may lie among each other,
        and those of several queues were written with the first of them."""
        firsts = self.index.numbers[0::ENTRY]
        order = sorted(range(len(firsts)), key=firsts.__getitem__)
        if all(old == at for at, old in enumerate(order)):
            return
        self.index = RecordIndex(_permuted(self.index.numbers, order, ENTRY))
        self.lows, self.highs = _permuted(self.lows, order), _permuted(self.highs, order)
        rank = array("I", bytes(4 * len(order)))
        for at, old in enumerate(order):
            rank[old] = at
        self.part.partial = {rank[at]: bits for at, bits in self.part.partial.items()}
        for source in self.sources.values():
            source.sort(rank)


def _permuted(numbers: array[int], order: list[int], width: int = 1) -> array[int]:
    found = array(numbers.typecode)
    for at in order:
        found.extend(numbers[at * width : (at + 1) * width])
    return found


@dataclass(slots=True)
class Copy:
    """The new file: `segment` with a part for each queue, of which nothing counts yet; `victims`
    are the segments of which something was copied. Of its
    records in the order of writing: the index in the old record of the first message, offset and
    size."""

    segment: Segment
    victims: set[int] = field(default_factory=set)
    queues: dict[int, QueueCopy] = field(default_factory=dict)
    firsts: array[int] = field(default_factory=lambda: array("I"))
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    sizes: array[int] = field(default_factory=lambda: array("I"))

    def locations(self, source: Source, at: int) -> Iterator[tuple[int, RecordLocation]]:
        """What anybody holds of an old record: index of the first message in it, and place."""
        for record in range(source.first_records[at], source.last_records[at]):
            where = self.segment.number, self.offsets[record], self.sizes[record]
            yield self.firsts[record], where


class _LiveShare:
    """What one queue has left of a record; a queue for the codec. `positions` in its entry, and
    their `indices` in the batch."""

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
        """The positions from the first to behind the last that is left among these messages of
        the batch."""
        low = bisect_left(self.indices, first)
        high = bisect_left(self.indices, first + count)
        return (self.positions[low], self.positions[high - 1] + 1) if low < high else None

    def fragment(self, batch: Batch, first: int, interval: tuple[int, int]) -> QueueEntry:
        """These positions as an entry of a batch that begins with index `first`."""
        low, high = interval
        if high - low == batch.count:
            return QueueEntry(batch, None)
        return QueueEntry(
            batch, array("I", [self.entry.index(at) - first for at in range(low, high)])
        )

    def settled(self, interval: tuple[int, int]) -> bytes | None:
        """Which of these positions are settled, None for none."""
        flags = None if self.flags is None else self.flags[interval[0] : interval[1]]
        return packed(flags) if flags is not None and 1 in flags else None


class Copier:
    """Writes one file."""

    def __init__(self, disk: Disk, reader: Reader, number: int, header: bytes) -> None:
        self._disk = disk
        self._reader = reader
        self._copy = Copy(Segment(number))
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
        """Places of records that were copied for several queues."""

    def run(self, all_survivors: list[Survivors]) -> Copy:
        """Raises `OSError` or `DamagedRecord`; there is a file then that belongs to nobody."""
        self._file = self._disk.create(segment_name(self._segment.number))
        try:
            self._flush()
            self._file.sync()  # records behind a header that was lost would be taken for damage
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
                f"{segment_name(survivors.segment)}: the record at offset {index_entry.offset} "
                f"is not of queue {survivors.queue_id}"
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
        """Everybody who has something left of a record."""
        for share in messages.shares:
            entry = QueueEntry(messages.batch, share.selection)
            for flagged_id in share.queues:
                survivors = self._survivors.get((segment, flagged_id >> 1))
                ordinal = None if survivors is None else self._ordinal(survivors, entry.sequence(0))
                if survivors is not None and ordinal is not None:
                    yield _LiveShare(survivors, ordinal, bool(flagged_id & 1), entry)

    def _ordinal(self, survivors: Survivors, first: int) -> int | None:
        """Of the record that begins with this message, if something of it is left."""
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
        """One new record, with the messages of an interval of the old one."""
        first, count = interval
        shares = [(share, found) for share in live_shares if (found := share.within(first, count))]
        fragment = batch_slice(batch, first, count)
        entries = [(share, share.fragment(fragment, first, found)) for share, found in shares]
        body = encode_messages(fragment, entries, old.arrived_wall_ms, redelivered=redelivered)
        where = self._put(Kind.MESSAGES, old.sequence + first, body)
        self._copy.firsts.append(first)
        self._copy.offsets.append(where[1])
        self._copy.sizes.append(where[2])
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
            source = copied.sources[share.survivors.segment] = Source(share.survivors)
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
        self._put(Kind.INDEX, 0, list(small_records.encode_indexes(indexes)))
        self._put(Kind.SEALED, 0, [small_records.encode_number(at)])

    def _put(self, kind: Kind, sequence: int, body: list[Buffer]) -> RecordLocation:
        segment = self._segment
        offset = segment.end
        flags = Flags.MOVED if kind == Kind.MESSAGES else Flags.NONE
        buffers = seal(segment.number, offset, kind, flags, sequence, body)
        size = sum(map(len, buffers))
        self._buffers += buffers
        self._buffers_bytes += size
        segment.end += size
        if self._buffers_bytes > _WRITE_BYTES:
            self._flush()
        return segment.number, offset, size

    def _flush(self) -> None:
        assert self._file is not None
        self._file.write(self._written, self._buffers)
        self._written += self._buffers_bytes
        self._buffers, self._buffers_bytes = [], 0


def _live_intervals(live_shares: list[_LiveShare]) -> list[tuple[int, int]]:
    """First index and length of each range of neighbours that somebody holds."""
    share = sorted({at for holding in live_shares for at in holding.indices})
    found: list[tuple[int, int]] = []
    for at in share:
        if found and sum(found[-1]) == at:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((at, 1))
    return found
