"""Moves what survives: one dead letter must not keep a whole segment.

Of sealed segments that are mostly dead, what is left is copied into a file of its own, the records
of one holder side by side. The copy happens on a worker's thread; the switch from the old places to
the new ones is one step of the broker's thread. It needs no record in the log: until a checkpoint
lists the new file, a crash finds everything at the old places, and the new file belongs to nobody.
"""

from __future__ import annotations

import errno
import logging
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..block import Block, Run
from . import entries
from .codec import arrived_wall_ms, decode_messages, encode_messages
from .disk import Disk, File
from .moved import MovedKept, MovedPiece, Place, is_in_log, piece_of, place_again
from .part import Index, Kept, Part, Segment, Stretch, positions, segment_name, unpacked
from .reader import DamagedRecord, Reader
from .record import COLD, FILE_HEADER_BYTES, FileHeader, Flags, Kind, Piece, seal

if TYPE_CHECKING:
    from .log import DurableStore
    from .work import Worker

logger = logging.getLogger(__name__)

LIVE_SHARE = 4
"""A segment is moved when less than this part of its messages is left."""
MERGE = 8
"""So many small files become one."""
MESSAGES_AT_ONCE = 20_000
"""The switch is one step: at worst a message is a record, and takes 25 us."""
FILE_BYTES = 64 * 1024 * 1024
_WRITE_BYTES = 1024 * 1024


@dataclass(slots=True)
class Copied:
    """One new record as one queue sees it: `numbers` of its messages are the queue's.

    `source` is the old segment's number and the ordinal in the old part; `sequence` and `count`
    are the whole new record's.
    """

    numbers: array[int]
    sequence: int
    count: int
    place: Place
    special: int
    source: tuple[int, int]


@dataclass(slots=True)
class Survivors:
    """What a part has left when a move begins: settled positions of ordinals that are not whole."""

    queue_id: int
    segment: int
    unclean: bool
    front: int
    dead: frozenset[int]
    settled: dict[int, bytes]


@dataclass(slots=True)
class Copy:
    """The new file."""

    number: int
    end: int = FILE_HEADER_BYTES
    records: dict[int, list[Copied]] = field(default_factory=dict)


class _Holding:
    """What one queue has left of a record: `indices` in its block. A queue for the codec."""

    __slots__ = ("indices", "is_read", "left", "ordinal")

    durable = True

    def __init__(self, left: Survivors, ordinal: int, is_read: bool, indices: array[int]) -> None:
        self.left = left
        self.ordinal = ordinal
        self.is_read = is_read
        self.indices = indices

    @property
    def id(self) -> int:
        return self.left.queue_id

    def between(self, low: int, high: int) -> _Holding:
        chosen = self.indices[bisect_left(self.indices, low) : bisect_left(self.indices, high)]
        return _Holding(self.left, self.ordinal, self.is_read, chosen)

    def run(self, piece: Block, first: int) -> Run:
        """Its messages of a piece that begins with index `first`."""
        if len(self.indices) == piece.count:
            return Run(piece, None)
        return Run(piece, array("I", [at - first for at in self.indices]))


class SegmentMover:
    """Finds segments worth moving and moves them, one file at a time."""

    def __init__(self, disk: Disk, worker: Worker, store: DurableStore, reader: Reader) -> None:
        self._disk = disk
        self._worker = worker
        self._store = store
        self._reader = reader
        self._copying = False
        self._copy: Copy | None = None
        self._tried: set[int] = set()
        self._unreadable: set[int] = set()

    @property
    def is_ready(self) -> bool:
        """There is a copy to switch to."""
        return self._copy is not None

    def begin(self, before: int) -> None:
        """Looks for segments older than `before` and starts to copy."""
        if self._copying or self._copy is not None:
            return
        victims = self._victims(before)
        wanted = sum(segment.end * segment.left // segment.total for segment in victims)
        if not victims or self._disk.free_bytes() < 2 * wanted:
            return
        self._copying = True
        self._tried = {segment.number for segment in victims}
        number = self._store.take_number()
        survivors = [
            _survivors(part) for segment in victims for part in segment.parts.values() if part.left
        ]
        header = FileHeader(COLD, self._store.store_id, number).encode()

        def job() -> Copy | OSError | DamagedRecord:
            try:
                return _Copier(self._disk, self._reader, number, header).run(survivors)
            except (OSError, DamagedRecord) as error:
                self._remove(segment_name(number))
                return error

        self._worker.run(job, self._copied)

    def _remove(self, name: str) -> None:
        """A copy that was not finished must not fill the disk; at worst it is found at a start."""
        try:
            if name in self._disk.names():
                self._disk.remove(name)
        except OSError as error:
            logger.warning("%s, which was not finished, could not be removed: %s", name, error)

    def _victims(self, before: int) -> list[Segment]:
        """The emptiest first, as many as fill a file; or, if there are many, small ones of about
        the same size, so that a message is copied a few times at most."""
        sealed = [
            segment
            for segment in self._store.segments.values()
            if segment.sealed
            and segment.number < before
            and segment.left
            and segment.number not in self._unreadable
        ]
        sparse = [segment for segment in sealed if segment.left * LIVE_SHARE < segment.total]
        if sparse:
            return _fill(sorted(sparse, key=lambda segment: segment.left / segment.total))
        small = sorted((held for held in sealed if held.end < FILE_BYTES // MERGE), key=_end)
        if len(small) < MERGE:
            return []
        return _fill([held for held in small if held.end <= MERGE * small[MERGE - 1].end])

    def _copied(self, result: Copy | OSError | DamagedRecord) -> None:
        self._copying = False
        if isinstance(result, Copy):
            self._copy = result
        elif isinstance(result, OSError) and result.errno == errno.EIO:
            self._store.fail(result)
        else:
            if isinstance(result, DamagedRecord):
                # It must not keep the others from being moved.
                self._unreadable |= self._tried
            logger.warning("segments %s can't be moved: %s", sorted(self._tried), result)

    def switch(self) -> None:
        """Everything that was copied and is still to be kept has its new place from here on.

        Not while a checkpoint is made; the log goes on in a new segment behind the new file.
        """
        copy, self._copy = self._copy, None
        assert copy is not None
        store = self._store
        target = Segment(copy.number)
        target.end = copy.end
        target.is_moved = True
        emptied: dict[int, Segment] = {}
        for queue_id, records in copy.records.items():
            records.sort(key=_first)
            part = Part(target, queue_id)
            target.parts[queue_id] = part
            _Switch(store.segments, part, records, emptied).run()
        target.sealed = True
        for queue_id, part in list(target.parts.items()):
            part.index = None
            if not part.left:
                del target.parts[queue_id]
        for segment in emptied.values():
            for queue_id in [key for key, part in segment.parts.items() if not part.left]:
                del segment.parts[queue_id]
        store.segments[copy.number] = target
        store.roll()


def _end(segment: Segment) -> int:
    return segment.end


def _fill(segments: list[Segment]) -> list[Segment]:
    """As many of the first ones as fill a file."""
    size = count = 0
    chosen: list[Segment] = []
    for segment in segments:
        size += segment.end * segment.left // segment.total
        count += segment.left
        if chosen and (size > FILE_BYTES or count > MESSAGES_AT_ONCE):
            break
        chosen.append(segment)
    return chosen


def _first(copied: Copied) -> int:
    return copied.numbers[0]


def _survivors(part: Part) -> Survivors:
    return Survivors(
        part.queue_id,
        part.segment.number,
        part.segment.unclean,
        part.front,
        frozenset(part.dead),
        dict(part.settled_bits()),
    )


class _Copier:
    """Writes the new file, on a worker's thread."""

    def __init__(self, disk: Disk, reader: Reader, number: int, header: bytes) -> None:
        self._reader = reader
        self._disk = disk
        self._copy = Copy(number)
        self._pieces: list[Piece] = [header]
        self._pieces_bytes = len(header)
        self._written = 0
        self._file: File | None = None

    def run(self, survivors: list[Survivors]) -> Copy:
        """Raises `OSError` or `DamagedRecord`; there is a file then that belongs to nobody."""
        self._file = self._disk.create(segment_name(self._copy.number))
        try:
            self._flush()
            self._file.sync()  # records behind a header that was lost would be taken for damage
            for place, holders in self._places(survivors):
                self._copy_record(place, holders)
            self._seal()
            self._flush()
            self._file.sync()
        finally:
            self._file.close()
        self._disk.sync_directory()
        return self._copy

    def _places(
        self, survivors: list[Survivors]
    ) -> Iterable[tuple[Place, list[tuple[Survivors, int]]]]:
        """Records with what is left in them and who holds it, those of one holder together."""
        found: dict[Place, list[tuple[Survivors, int]]] = {}
        for left in sorted(survivors, key=lambda left: (left.queue_id, left.segment)):
            index = self._reader.index(left.segment, left.queue_id)
            for ordinal in range(left.front, len(index)):
                if ordinal not in left.dead:
                    entry = index[ordinal]
                    place = left.segment, entry.offset, entry.size
                    found.setdefault(place, []).append((left, ordinal))
        return found.items()

    def _copy_record(self, place: Place, holders: list[tuple[Survivors, int]]) -> None:
        record = self._reader.record(*place)
        messages = decode_messages(record.body, record.sequence, 0)
        live: list[_Holding] = []
        redelivered = messages.redelivered
        for left, ordinal in holders:
            found = messages.of(left.queue_id)
            if found is None:
                raise DamagedRecord(f"the record at {place} is not of queue {left.queue_id}")
            selection, was_read = found
            redelivered |= was_read and left.unclean
            indices = _live(Run(messages.block, selection), left.settled.get(ordinal))
            live.append(_Holding(left, ordinal, was_read, indices))
        wall_ms = arrived_wall_ms(record.body)
        for first, count in _intervals(live):
            chosen = [held.between(first, first + count) for held in live]
            chosen = [held for held in chosen if held.indices]
            piece = piece_of(messages.block, first, count)
            runs = [(held, held.run(piece, first)) for held in chosen]
            body = encode_messages(piece, runs, wall_ms, redelivered=redelivered)
            special = messages.block.traits.special
            self._write(record.sequence, (first, count), chosen, body, special)

    def _write(
        self,
        base: int,
        interval: tuple[int, int],
        chosen: list[_Holding],
        body: list[Piece],
        special: int,
    ) -> None:
        """One new record; `base` is the number of the old record's first message."""
        first, count = interval
        offset = self._copy.end
        sealed = seal(self._copy.number, offset, Kind.MESSAGES, Flags.MOVED, base + first, body)
        place = self._copy.number, offset, self._put(sealed)
        for held in chosen:
            self._copy.records.setdefault(held.id, []).append(
                Copied(
                    array("Q", [base + at for at in held.indices]), base + first, count, place,
                    special, (held.left.segment, held.ordinal),
                )
            )  # fmt: skip

    def _seal(self) -> None:
        indexes = []
        for queue_id, records in self._copy.records.items():
            index = Index()
            for copied in sorted(records, key=_first):
                numbers, (_, offset, size) = copied.numbers, copied.place
                index.add(
                    numbers[0], numbers[-1], len(numbers), offset, size, special=copied.special
                )
            indexes.append((queue_id, index))
        at = self._copy.end
        body: list[Piece] = list(entries.encode_indexes(indexes))
        self._put(seal(self._copy.number, at, Kind.INDEX, Flags.NONE, 0, body))
        end: list[Piece] = [entries.encode_number(at)]
        self._put(seal(self._copy.number, self._copy.end, Kind.SEALED, Flags.NONE, 0, end))

    def _put(self, pieces: list[Piece]) -> int:
        size = sum(map(len, pieces))
        self._pieces += pieces
        self._pieces_bytes += size
        self._copy.end += size
        if self._pieces_bytes > _WRITE_BYTES:
            self._flush()
        return size

    def _flush(self) -> None:
        assert self._file is not None
        self._file.write(self._written, self._pieces)
        self._written += self._pieces_bytes
        self._pieces, self._pieces_bytes = [], 0


def _live(run: Run, settled: bytes | None) -> array[int]:
    """Indices in the block of what is left of a run."""
    if settled is None:
        return array("I", [run.index(at) for at in range(run.count)])
    flags = unpacked(settled, run.count)
    return array("I", [run.index(at) for at in range(run.count) if not flags[at]])


def _intervals(live: list[_Holding]) -> list[tuple[int, int]]:
    """First index and length of each stretch of neighbours that somebody holds."""
    held = sorted({at for holding in live for at in holding.indices})
    found: list[tuple[int, int]] = []
    for at in held:
        if found and sum(found[-1]) == at:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((at, 1))
    return found


class _Switch:
    """Takes one queue over from its old parts to the new one."""

    def __init__(
        self,
        segments: dict[int, Segment],
        part: Part,
        records: list[Copied],
        emptied: dict[int, Segment],
    ) -> None:
        self._segments = segments
        self._part = part
        self._records = records
        self._emptied = emptied
        self._left = {copied.source[0] for copied in records}

    def run(self) -> None:
        part = self._part
        by_source: dict[tuple[int, int], list[tuple[int, Copied]]] = {}
        for copied in self._records:
            numbers, (_, offset, size) = copied.numbers, copied.place
            ordinal = part.add(numbers[0], numbers[-1], len(numbers), offset, size, copied.special)
            by_source.setdefault(copied.source, []).append((ordinal, copied))
        for number in self._left:
            segment = self._segments.get(number)
            old = None if segment is None else segment.parts.get(part.queue_id)
            if old is not None:
                part.next_offset = max(part.next_offset, old.next_offset)
            mine = {key[1]: found for key, found in by_source.items() if key[0] == number}
            if old is None:
                self._bury(found for found in mine.values())
                continue
            for ordinal, found in mine.items():
                self._take_over(old, ordinal, found)
            self._move_colds(old, mine)
            self._empty(old)

    def _bury(self, records: Iterable[list[tuple[int, Copied]]]) -> None:
        """The queue has ended, or is done with them."""
        for found in records:
            for ordinal, copied in found:
                self._part.died(ordinal)
                self._part.settled(len(copied.numbers))

    def _take_over(self, old: Part, ordinal: int, found: list[tuple[int, Copied]]) -> None:
        if old.is_dead(ordinal):
            self._bury([found])
            return
        run = old.runs.get(ordinal)
        if run is None:
            return  # cold, and as it was
        pieces = []
        for new, copied in found:
            piece = self._piece(run, new, copied)
            if piece is not None:
                pieces.append(piece)
        run.kept = MovedKept(pieces)
        block = run.block
        if is_in_log(block.place):
            now = [
                (copied.sequence - block.sequence, copied.count, copied.place)
                for _, copied in found
            ]
            block.place = place_again(block, self._left, now)

    def _piece(self, run: Run, ordinal: int, copied: Copied) -> MovedPiece | None:
        """The part of a run that this record holds, with what was settled since it was read."""
        base = run.block.sequence
        chosen = array("I", [positions(run, number, number)[0] for number in copied.numbers])
        alive = bytearray(run.count)
        for low, high in _alive(run):
            alive[low:high] = b"\x01" * (high - low)
        piece = Run(run.block, array("I", [number - base for number in copied.numbers]))
        self._part.runs[ordinal] = piece
        kept = piece.kept = Kept(self._part, ordinal, len(chosen))
        for at, position in enumerate(chosen):
            if not alive[position]:
                kept.settle(piece, at, at + 1)
        return MovedPiece(chosen, piece) if kept.left else None

    def _move_colds(self, old: Part, mine: dict[int, list[tuple[int, Copied]]]) -> None:
        for cold in old.colds:
            stretch = cold.place
            assert isinstance(stretch, Stretch)
            new = [
                ordinal
                for source in range(stretch.low, stretch.high)
                for ordinal, _ in mine.get(source, ())
            ]
            stretch.part = self._part
            stretch.low, stretch.high = (new[0], new[-1] + 1) if new else (0, 0)
            self._part.colds.append(cold)
        old.colds = []

    def _empty(self, old: Part) -> None:
        segment = old.segment
        segment.left -= old.left
        old.left = 0
        old.runs.clear()
        self._emptied[segment.number] = segment


def _alive(run: Run) -> Iterable[tuple[int, int]]:
    kept = run.kept
    assert isinstance(kept, Kept)
    return [(span.low, span.high) for span in kept.spans(run, redelivered=False)]
