"""What is on disk and not in memory: read back when its queue comes to it, let go when it is long.

A stretch of a queue (`Cold`) is an interval of a part's ordinals. It is read in chunks of about
1 MiB, neighbours with one call; a block that another queue has in memory already is shared, so a
payload is read once for all queues that want it next.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import islice
from threading import Lock
from weakref import WeakValueDictionary

from ..block import Block, Cold, Ledger, Run, Span
from ..clock import Clock
from .codec import Messages, decode_messages, encode_messages
from .disk import Disk
from .moved import MovedPlace, is_in_log, reassemble
from .overflow import Overflow, OverflowFile
from .part import Entry, Index, Kept, Part, Stretch
from .reader import DamagedRecord, Reader
from .record import read_record
from .work import Worker
from .writer import Writer

logger = logging.getLogger(__name__)

CHUNK_BYTES = 1024 * 1024
CHUNK_RECORDS = 4_000
_ON_ITS_WAY = object()
"""The place of a block that is just being written."""
_SPARSE = 4
"""Records are read each by itself if less than this part of the way between is wanted."""


class Pages:
    """`old_marks` say, by queue id, up to which number messages may have been delivered by an
    earlier process."""

    def __init__(
        self, disk: Disk, worker: Worker, writer: Writer, clock: Clock, old_marks: dict[int, int]
    ) -> None:
        self.memory = Ledger()
        self.old_marks = old_marks
        self.reader = Reader(disk)
        self._worker = worker
        self._writer = writer
        self._clock = clock
        self._blocks: WeakValueDictionary[tuple[int, int], Block] = WeakValueDictionary()
        self.leaving_bytes = 0
        self._overflow = Overflow(disk)
        self._overflowing: list[Block] = []
        self._overflow_lock = Lock()
        self._writing_overflow = Lock()
        self._fetching: dict[Block, list[Callable[[], None]]] = {}

    def close(self) -> None:
        self.reader.close()

    # -- out of memory

    def evict(self, block: Block) -> bool:
        place = block.place
        if place is None:
            self._overflow_later(block)
            return False
        if not self._can_be_read(place):
            return False
        if block.resident:
            block.evict()
        return True

    def _can_be_read(self, place: object) -> bool:
        if isinstance(place, MovedPlace):
            return True
        if isinstance(place, tuple):
            segment, offset, _ = place
            return isinstance(segment, OverflowFile) or self._writer.has_written(segment, offset)
        return False

    def _overflow_later(self, block: Block) -> None:
        """Writes what is on no disk; the block leaves memory when that is done."""
        block.place = _ON_ITS_WAY
        self.leaving_bytes += block.size_bytes
        with self._overflow_lock:
            self._overflowing.append(block)
            is_first = len(self._overflowing) == 1
        if is_first:
            self._worker.run(self._write_overflow, self._overflowed)

    def _write_overflow(self) -> list[tuple[Block, object]]:
        with self._overflow_lock:
            blocks, self._overflowing = self._overflowing, []
        # One at a time: a second job may begin before this one has written all.
        with self._writing_overflow:
            return [(block, self._overflow_place(block)) for block in blocks]

    def _overflow_place(self, block: Block) -> object:
        try:
            return self._overflow.append(encode_messages(block, (), 0))
        except OSError as error:
            logger.warning("no space to let messages out of memory: %s", error)
            return None

    def _overflowed(self, places: list[tuple[Block, object]]) -> None:
        for block, place in places:
            self.leaving_bytes -= block.size_bytes
            block.place = place
            if place is not None and block.resident:
                block.evict()

    def chill(self, span: Span, before: Cold | None) -> Cold | None:
        run = span.run
        kept = run.kept
        if (
            not isinstance(kept, Kept)
            or not span.count == run.count == kept.left
            or run.deadline_ms is not None
            or not self._has_written(kept)
            or not is_in_log(run.block.place)
        ):
            return None
        self.evict(run.block)
        part, ordinal = kept.part, kept.ordinal
        part.let_go(ordinal)
        if before is not None and isinstance(before.place, Stretch):
            stretch = before.place
            if stretch.part is part and stretch.high == ordinal:
                stretch.high += 1
                before.count += span.count
                return before
        return self._cold(part, ordinal, ordinal + 1, span.count)

    def _has_written(self, kept: Kept) -> bool:
        """Whether its record can be read back; an index in memory may be ahead of the disk."""
        index = kept.part.index
        if index is None:
            return True
        offset = index[kept.ordinal].offset
        return self._writer.has_written(kept.part.segment.number, offset)

    def _cold(self, part: Part, low: int, high: int, count: int) -> Cold:
        cold = Cold(count, Stretch(part, low, high))
        part.colds.append(cold)
        return cold

    def discard(self, cold: Cold) -> list[int]:
        """Nobody wants it any more; gives pairs of first and last number that cover it."""
        stretch = cold.place
        assert isinstance(stretch, Stretch)
        part = stretch.part
        index = self._index(part)
        ordinals = [at for at in range(stretch.low, stretch.high) if not part.is_dead(at)]
        covers = [(index[at].first, index[at].last) for at in ordinals]
        if covers and not part.segment.is_moved:
            covers = [(covers[0][0], covers[-1][1])]
        part.settled(cold.count)
        for ordinal in ordinals:
            part.died(ordinal)
        part.colds.remove(cold)
        cold.count = 0
        stretch.low = stretch.high
        return [number for pair in covers for number in pair]

    # -- what an earlier process left

    def recovered(self, parts: list[Part]) -> list[Cold | Span]:
        """The queue's messages in order."""
        parts = sorted((part for part in parts if part.left), key=lambda part: part.first)
        found: list[tuple[int, Cold | Span]] = []
        for part, apart in zip(parts, _apart(parts), strict=True):
            if part.timed:
                found += self._all_spans(part)
            elif apart:
                cold = self._cold(part, part.front, part.records, part.left)
                found.append((part.first, cold))
            else:
                found += self._each_cold(part)
        found.sort(key=lambda held: held[0])
        return [held for _, held in found]

    def _each_cold(self, part: Part) -> list[tuple[int, Cold | Span]]:
        """Parts that lie among each other, after moves: a stretch for each record."""
        index = self._index(part)
        return [
            (index[ordinal].first, self._cold(part, ordinal, ordinal + 1, left))
            for ordinal in range(part.front, part.records)
            if (left := self._left(part, index, ordinal))
        ]

    def _left(self, part: Part, index: Index, ordinal: int) -> int:
        if part.is_dead(ordinal):
            return 0
        if ordinal not in part.partial:
            return index[ordinal].count
        spans = self._spans(part, [ordinal])
        left = sum(span.count for span in spans)
        run = part.runs.pop(ordinal)
        assert isinstance(run.kept, Kept)
        part.partial[ordinal] = run.kept.settled_bits(run)
        return left

    def _all_spans(self, part: Part) -> list[tuple[int, Cold | Span]]:
        """Messages with a time of their own can be due anywhere: they are all in memory, though
        not their bytes."""
        ordinals = [at for at in range(part.front, part.records) if not part.is_dead(at)]
        spans = self._spans(part, ordinals)
        for span in spans:
            span.body_bytes()  # Asked by limits, and then it is not there any more.
            self.evict(span.run.block)
        return [(span.sequence, span) for span in spans]

    def spans_now(self, cold: Cold) -> list[Span]:
        """All of a stretch at once, for a queue whose rules look at every message."""
        stretch = cold.place
        assert isinstance(stretch, Stretch)
        part = stretch.part
        ordinals = [at for at in range(stretch.low, stretch.high) if not part.is_dead(at)]
        spans = self._spans(part, ordinals)
        part.colds.remove(cold)
        for span in spans:
            span.body_bytes()  # Asked by limits, and then it is not there any more.
            self.evict(span.run.block)
        return spans

    def _spans(self, part: Part, ordinals: list[int]) -> list[Span]:
        index = self._index(part)
        entries = [(ordinal, index[ordinal]) for ordinal in ordinals]
        return self._place(part, self._read(part, entries))

    # -- into memory

    def thaw(self, cold: Cold, ready: Callable[[Sequence[Span]], None]) -> None:
        stretch = cold.place
        assert isinstance(stretch, Stretch)
        part = stretch.part
        alive = (at for at in range(stretch.low, stretch.high) if not part.is_dead(at))
        wanted = list(islice(alive, CHUNK_RECORDS))
        open_index = part.index

        def job() -> tuple[int, list[tuple[int, Messages | None]]]:
            if not wanted:
                return stretch.high, []
            index = open_index or self.reader.index(part.segment.number, part.queue_id)
            entries = _chunk(index, [at for at in wanted if at < len(index)])
            if not entries:
                logger.error("%s: an index and what it leads to are damaged", part.segment.name)
                return stretch.high, []
            return entries[-1][0] + 1, self._read(part, entries)

        def done(found: tuple[int, list[tuple[int, Messages | None]]]) -> None:
            after, read = found
            if not cold.count or cold.place is not stretch or stretch.part is not part:
                ready(())  # discarded or moved meanwhile
                return
            spans = self._place(part, read)
            stretch.low = after
            cold.count -= sum(span.count for span in spans)
            self._finish(cold, stretch)
            ready(spans)

        self._worker.run(job, done)

    def _finish(self, cold: Cold, stretch: Stretch) -> None:
        part = stretch.part
        while stretch.low < stretch.high and part.is_dead(stretch.low):
            stretch.low += 1
        if stretch.low >= stretch.high:
            cold.lost += cold.count
            cold.count = 0
            part.colds.remove(cold)

    def _index(self, part: Part) -> Index:
        return part.index or self.reader.index(part.segment.number, part.queue_id)

    def _read(
        self, part: Part, entries: Sequence[tuple[int, Entry]]
    ) -> list[tuple[int, Messages | None]]:
        """The records at these places; None for what is damaged."""
        if not entries:
            return []
        start = min(entry.offset for _, entry in entries)
        end = max(entry.offset + entry.size for _, entry in entries)
        wanted = sum(entry.size for _, entry in entries)
        number = part.segment.number
        region = (
            self.reader.read(number, start, end - start)
            if (wanted * _SPARSE >= end - start)
            else None
        )
        offset_ms = self._clock.now_ms() - int(self._clock.wall_s() * 1000)
        read: list[tuple[int, Messages | None]] = []
        for ordinal, entry in entries:
            try:
                record = (
                    self.reader.record(number, entry.offset, entry.size)
                    if region is None
                    else read_record(number, region, entry.offset - start, start)
                )
                if record is None:
                    raise DamagedRecord(
                        f"{part.segment.name}: no sound record at offset {entry.offset}"
                    )
            except DamagedRecord as error:
                logger.error("%s; %d messages are left out", error, entry.count)
                read.append((ordinal, None))
                continue
            messages = decode_messages(record.body, record.sequence, offset_ms)
            messages.block.place = (number, entry.offset, entry.size)
            read.append((ordinal, messages))
        return read

    def _place(self, part: Part, read: list[tuple[int, Messages | None]]) -> list[Span]:
        """Makes runs of what was read; gives what is left of them."""
        spans: list[Span] = []
        mark = self.old_marks.get(part.queue_id, 0)
        for ordinal, messages in read:
            if messages is None or part.is_dead(ordinal) or ordinal in part.runs:
                continue
            found = messages.of(part.queue_id)
            if found is None:
                continue
            selection, was_read = found
            run = Run(self._shared(messages.block), selection)
            kept = part.hold(ordinal, run)
            redelivered = messages.redelivered or (was_read and part.segment.unclean)
            for span in kept.spans(run, redelivered=redelivered):
                spans += [span] if redelivered else _marked(span, mark)
        return spans

    def _shared(self, read: Block) -> Block:
        """The block of that record that is in memory already, or this one."""
        place = read.place
        assert isinstance(place, tuple)
        key = place[0], place[1]
        block = self._blocks.get(key)
        if block is None:
            self._blocks[key] = read
            read.charge(self.memory)
            return read
        if not block.resident:
            block.restore(read)
        return block

    def fetch(self, block: Block, ready: Callable[[], None]) -> None:
        waiting = self._fetching.get(block)
        if waiting is not None:
            waiting.append(ready)
            return
        self._fetching[block] = [ready]
        place = block.place

        def job() -> Block | None:
            try:
                return self._read_block(block, place)
            except (DamagedRecord, FileNotFoundError) as error:
                logger.error("messages can't be read: %s", error)
                return None

        def done(read: Block | None) -> None:
            if read is not None and not block.resident:
                block.restore(read)
            for call in self._fetching.pop(block):
                call()

        self._worker.run(job, done)

    def _read_block(self, block: Block, place: object) -> Block:
        """What a block was written as. Raises `DamagedRecord` or `OSError`."""
        if isinstance(place, MovedPlace):
            pieces = [(first, self._read_block(block, where)) for first, where in place.pieces]
            return reassemble(block, pieces)
        assert isinstance(place, tuple)
        segment, offset, size = place
        if isinstance(segment, OverflowFile):
            body, sequence = memoryview(segment.read(offset, size)), block.sequence
        else:
            record = self.reader.record(segment, offset, size)
            body, sequence = record.body, record.sequence
        return decode_messages(body, sequence, 0).block


def _apart(parts: list[Part]) -> list[bool]:
    """For parts by their first numbers: which lie among no other, as only moved ones can."""
    apart = [True] * len(parts)
    furthest = -1
    for at, part in enumerate(parts):
        if furthest >= 0 and part.first <= parts[furthest].last:
            apart[at] = apart[furthest] = False
        if furthest < 0 or part.last > parts[furthest].last:
            furthest = at
    return apart


def _chunk(index: Index, ordinals: Sequence[int]) -> list[tuple[int, Entry]]:
    entries: list[tuple[int, Entry]] = []
    size = 0
    for ordinal in ordinals:
        entry = index[ordinal]
        if entries and size + entry.size > CHUNK_BYTES:
            break
        size += entry.size
        entries.append((ordinal, entry))
    return entries


def _marked(span: Span, mark: int) -> list[Span]:
    """Messages up to the mark may have been delivered before."""
    run = span.run
    if run.sequence(span.low) > mark:
        return [span]
    low = span.low
    while low < span.high and run.sequence(low) <= mark:
        low += 1
    spans = [Span(run, span.low, low, True)]
    if low < span.high:
        spans.append(Span(run, low, span.high))
    return spans
