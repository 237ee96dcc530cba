"""What is on disk and not in memory: read back when its queue comes to it, let go when it is long.

A stretch of a queue (`Cold`) is an interval of a part's ordinals. It is read in chunks of about
1 MiB, neighbours with one call; a block that another queue has in memory already is shared, so a
payload is read once for all queues that want it next.
"""

from __future__ import annotations

import errno
import logging
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from threading import Lock
from typing import NamedTuple, TypeVar
from weakref import WeakValueDictionary

from ..block import Block, Cold, Ledger, Run, Span
from ..clock import Clock
from ..slices import Pause, for_each, run_slice
from ..wire.properties import RANKED, TIMED
from .codec import Messages, decode_messages, encode_messages
from .disk import Disk
from .overflow import Overflow, OverflowFile
from .part import Entry, Index, Kept, Part, Stretch, segment_name
from .pieces import Places, is_in_log, reassemble, whereabouts
from .port import Browsed, Split
from .reader import DamagedRecord, Reader
from .work import Worker
from .writer import Writer

logger = logging.getLogger(__name__)

Found = TypeVar("Found")

CHUNK_BYTES = 1024 * 1024
CHUNK_RECORDS, JOB_RECORDS = 512, 4_096
"""What is read of one stretch, and with one job."""
CHUNK_BLOCKS = 256
HANDED_BACK_SLICES = 3
"""What giving stretches back to their queues takes of a turn."""
THAWS_AT_ONCE = 2
DISCARDED_AT_ONCE = 8
_ON_ITS_WAY = object()
"""The place of a block that is just being written."""


class Pages:
    """`old_marks` say, by queue id, up to which number messages may have been delivered by an
    earlier process; `old_priority_marks` up to which those of a priority were."""

    def __init__(
        self,
        disk: Disk,
        worker: Worker,
        writer: Writer,
        clock: Clock,
        old_marks: Mapping[int, int],
        old_priority_marks: Mapping[tuple[int, int], int],
    ) -> None:
        self.memory = Ledger()
        self.old_marks = old_marks
        self.old_priority_marks = old_priority_marks
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
        self._to_fetch: deque[tuple[Block, object]] = deque()
        self._to_thaw: deque[_Asked] = deque()
        self._to_look: OrderedDict[Cold, _Asked] = OrderedDict()
        """What no consumer waits for: read one chunk at a time, and when nothing else is wanted."""
        self._looked_at: dict[Cold, bool] = {}
        """What of that is being read just now, and whether somebody waits for it since."""
        self._thawing = 0
        self._is_gathering = False

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
        if isinstance(place, Places):
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

    def chill(self, span: Span, before: Cold | None, *, in_order: bool = False) -> Cold | None:
        run = span.run
        where = whereabouts(run) if span.count == run.count else None
        if where is None or not self._has_written(*where):
            return None
        block = run.block
        is_plain = run.deadline_ms is None and block.traits.expiration is None
        if not (in_order or (is_plain and is_in_log(block.place))):
            return None
        if block.resident and is_in_log(block.place):
            block.evict(sizes=block.is_shared)
        part, low, high = where
        for ordinal in range(low, high):
            part.let_go(ordinal)
        if before is not None and isinstance(before.place, Stretch):
            stretch = before.place
            if stretch.part is part and stretch.high == low:
                stretch.high = high
                before.count += span.count
                return before
        return self._cold(part, low, high, span.count)

    def _has_written(self, part: Part, low: int, high: int) -> bool:
        """Whether these records can be read back; an index in memory may be ahead of the disk."""
        if part.index is None:
            return True
        return self._writer.has_written(part.segment.number, part.index[high - 1].offset)

    def _cold(self, part: Part, low: int, high: int, count: int, special: int = 0) -> Cold:
        cold = Cold(count, None, special=special)
        part.keep_cold(cold, low, high)
        return cold

    def discard(self, cold: Cold) -> Iterator[list[int] | Pause]:
        """Nobody wants it any more, nor what is just being read of it. Each step discards some
        records and gives pairs of first and last number that cover them, or waits for an index."""
        stretch = cold.place
        assert isinstance(stretch, Stretch)
        cold.place = replace(stretch)
        return self._discard(cold)

    def _discard(self, cold: Cold) -> Iterator[list[int] | Pause]:
        part: Part | None = None
        index: Index | None = None
        while cold.count:
            stretch = cold.place
            assert isinstance(stretch, Stretch)
            if not stretch.part.keeps_cold(cold):
                cold.count = 0  # The queue has ended meanwhile.
                return
            if stretch.part is not part:  # The first step, or it has been compacted meanwhile.
                part = stretch.part
                index = part.index
                if index is None:
                    index = yield from self._looked_up(part, _all_of)
                    continue
            if index is None:
                self._is_missing(part)
                return
            if stretch.low >= stretch.high:
                # An index is damaged: nobody knows which records these belonged to.
                part.snapshot = None
                part.settled(cold.count)
                cold.count = 0
            else:
                yield _discard_some(cold, stretch, index)
            if not cold.count and part.keeps_cold(cold):
                part.forget_cold(cold)

    # -- what an earlier process left

    def recovered(
        self, parts: list[Part], *, ranks: bool = False, in_order: bool = False
    ) -> list[Cold]:
        """The queue's messages in order; `ranks` if it orders by priority."""
        special = 0 if in_order else TIMED | RANKED * ranks
        parts = [part for part in parts if part.left]
        parts.sort(key=_first)
        if _follow_each_other(parts):
            return [
                self._cold(part, part.front, part.records, part.left, part.special & special)
                for part in parts
            ]
        found: list[tuple[int, _Records]] = []
        for part, apart in zip(parts, _apart(parts), strict=True):
            if apart:
                found.append((part.first, _Records(part, part.front, part.records, part.left)))
            else:
                found += self._each_record(part)
        found.sort(key=lambda held: held[0])
        joined = _joined(held for _, held in found)
        return [self._cold(*held, held.part.special & special) for held in joined]

    def _each_record(self, part: Part) -> list[tuple[int, _Records]]:
        """Parts that lie among each other, after moves, are put together record by record."""
        index = self._index(part)
        return [
            (index[ordinal].first, _Records(part, ordinal, ordinal + 1, left))
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
        run = part.runs.pop(ordinal, None)
        if run is not None:  # or it is damaged
            assert isinstance(run.kept, Kept)
            part.partial[ordinal] = run.kept.settled_bits(0, run.count)
        return left

    def _spans(self, part: Part, ordinals: list[int]) -> list[Span]:
        index = self._index(part)
        entries = [(ordinal, index[ordinal]) for ordinal in ordinals]
        return self._place(part, self._read(part, entries))

    # -- into memory

    def thaw(
        self, cold: Cold, ready: Callable[[Sequence[Span]], None], *, is_urgent: bool = True
    ) -> None:
        stretch = cold.place
        assert isinstance(stretch, Stretch)
        asked = _Asked(cold, stretch, ready)
        if is_urgent:
            self._to_thaw.append(asked)
        else:
            self._to_look[cold] = asked
        self._gather()

    def hurry(self, cold: Cold) -> None:
        asked = self._to_look.pop(cold, None)
        if asked is not None:
            self._to_thaw.append(asked)
            self._gather()
        elif cold in self._looked_at:
            self._looked_at[cold] = True

    def _gather(self) -> None:
        """Reads behind this turn, which may ask for more."""
        if self._thawing < THAWS_AT_ONCE and not self._is_gathering:
            self._is_gathering = True
            self._worker.post(self._thaw_next)

    def _thaw_next(self) -> None:
        """What this turn has asked for, with one job: queues with a few messages each lie among
        each other, in the same records or in neighbours."""
        self._is_gathering = False
        is_urgent = bool(self._to_thaw)
        if self._thawing >= THAWS_AT_ONCE or not (is_urgent or self._to_look):
            return
        if self._thawing and not is_urgent:
            return  # It will be asked for again when that is read.
        wanted = self._next_wanted(is_urgent=is_urgent)
        self._thawing += 1

        if not is_urgent:
            self._looked_at = dict.fromkeys((thaw.asked.cold for thaw in wanted), False)

        def done(found: list[_Thawed]) -> None:
            self._thawing -= 1
            self._put_back([thaw.asked for thaw in wanted[len(found) :]], is_urgent=is_urgent)
            self._thaw_next()
            self._hand_back(for_each(found, self._thawed))

        self._worker.run(lambda: self._read_thaws(wanted), done)

    def _put_back(self, rest: Sequence[_Asked], *, is_urgent: bool) -> None:
        """What one job had no room for is the next one's; one of them reads what nobody waits for
        at a time."""
        hurried: dict[Cold, bool] = {}
        if not is_urgent:
            hurried, self._looked_at = self._looked_at, {}
        for asked in reversed(rest):
            if is_urgent or hurried[asked.cold]:
                self._to_thaw.appendleft(asked)
            else:
                self._to_look[asked.cold] = asked
                self._to_look.move_to_end(asked.cold, last=False)

    def _next_wanted(self, *, is_urgent: bool) -> list[_Thaw]:
        """As much as makes a job, of what is awaited or of what is not."""
        wanted: list[_Thaw] = []
        room = JOB_RECORDS
        waiting = self._to_thaw if is_urgent else self._to_look
        while waiting and room > 0 and len(wanted) < CHUNK_BLOCKS:
            asked = self._to_thaw.popleft() if is_urgent else self._to_look.popitem(last=False)[1]
            wanted.append(_thaw(asked))
            room -= len(wanted[-1].wanted)
        return wanted

    def _read_thaws(self, thaws: Sequence[_Thaw]) -> list[_Thawed]:
        """As many of them as make a chunk, at least one."""
        found: list[_Thawed] = []
        places: dict[int, set[tuple[int, int]]] = {}
        size_bytes = 0
        for thaw in thaws:
            chosen = self._chosen(thaw)
            known = places.setdefault(thaw.part.segment.number, set())
            new = [entry.place for _, entry in chosen.entries if entry.place not in known]
            size_bytes += sum(size for _, size in new)
            if found and size_bytes > CHUNK_BYTES:
                break
            known.update(new)
            found.append(chosen)
        for number, wanted in places.items():
            here = [one for one in found if one.thaw.part.segment.number == number]
            try:
                records = self._records(number, wanted)
            except FileNotFoundError as error:
                for one in here:
                    one.missing = error
                continue
            for one in here:
                one.read = self._read_of(number, one.entries, records)
        return found

    def _chosen(self, thaw: _Thaw) -> _Thawed:
        part = thaw.part
        if not thaw.wanted:
            return _Thawed(thaw, [])
        try:
            index = thaw.open_index or self._read_index(part)
        except FileNotFoundError as error:
            return _Thawed(thaw, [], missing=error)
        records = len(index)
        wanted = thaw.wanted
        if wanted[-1] >= records:
            wanted = [at for at in wanted if at < records]
        entries = _chunk(index, wanted)
        if not entries:
            logger.error("%s: an index and what it leads to are damaged", part.segment.name)
        return _Thawed(thaw, entries)

    def _hand_back(self, steps: Iterator[None]) -> None:
        """A slice of them in a turn."""
        if run_slice(steps, HANDED_BACK_SLICES):
            self._worker.post(lambda: self._hand_back(steps))

    def _thawed(self, found: _Thawed) -> None:
        asked, part, high, _, _ = found.thaw
        cold, stretch, ready = asked
        if not asked.is_there or not part.keeps_cold(cold):
            ready(())  # discarded or moved meanwhile
            return
        if found.missing is not None:
            self._worker.failed(found.missing)
            return
        spans = self._place(part, found.read)
        stretch.low = found.entries[-1][0] + 1 if found.entries else high
        for span in spans:
            cold.count -= span.high - span.low
        self._finish(cold, stretch)
        ready(spans)

    def browse(self, cold: Cold, position: int, ready: Callable[[Browsed | None], None]) -> None:
        stretch = cold.place
        assert isinstance(stretch, Stretch)
        part = stretch.part
        low, high, open_index = stretch.low, stretch.high, part.index
        open_places = None if open_index is None else _places(open_index, low, high, position)

        def job() -> _Looked | None:
            try:
                if open_index is not None and open_places is not None:
                    index, (start, ordinals) = open_index, open_places
                else:
                    index = self._read_index(part)
                    start, ordinals = _places(index, low, high, position)
                entries = _chunk(index, ordinals)
                return _Looked(start, entries, self._read(part, entries))
            except FileNotFoundError:
                return None  # All of it was moved or dropped long before its turn came.

        def done(looked: _Looked | None) -> None:
            if not cold.count or cold.place is not stretch or not part.keeps_cold(cold):
                ready(None)
            elif looked is None or not looked.entries:
                logger.error("%s: an index and what it leads to are damaged", part.segment.name)
                ready(Browsed([], cold.count))
            else:
                ready(self._browsed(part, position, looked))

        self._worker.run(job, done)

    def _browsed(self, part: Part, position: int, looked: _Looked) -> Browsed:
        spans: list[tuple[int, Span]] = []
        start = looked.start
        for _, entry, messages in looked.read:
            found = None if messages is None else _share(part, entry, messages)
            if messages is not None and found is not None:
                run = Run(self._shared(part, entry, messages.block), found[0])
                skipped = max(0, position - start)
                spans.append((start + skipped, Span(run, skipped, run.count)))
            start += entry.count
        return Browsed(spans, start)

    def split(self, cold: Cold, size_bytes: int) -> Generator[Pause, None, Split | None]:
        stretch = cold.place
        assert isinstance(stretch, Stretch)
        while stretch.part.keeps_cold(cold):
            part, low = stretch.part, stretch.low
            front = yield from self._looked_up(part, _front_of(low, stretch.high, size_bytes))
            if not part.keeps_cold(cold) or stretch.low != low:
                continue  # It has been compacted meanwhile, or its queue has ended.
            if front is None:
                self._is_missing(part)
                return None
            high, count, size = front
            if high >= stretch.high:
                return None
            stretch.low = high
            cold.count -= count
            return Split(self._cold(part, low, high, count), size)
        return None

    def size_of(self, run: Run) -> int:
        where = whereabouts(run)
        index = None if where is None else where[0].index
        if where is None or index is None:
            return run.block.size_bytes * run.count // run.block.count
        return index.size_bytes(where[1], where[2])

    def weigh(self, cold: Cold) -> Generator[Pause, None, int]:
        stretch = cold.place
        assert isinstance(stretch, Stretch)
        while stretch.part.keeps_cold(cold):
            part = stretch.part
            size = yield from self._looked_up(part, _size_of(stretch.low, stretch.high))
            if size is not None:
                return size
            if part.keeps_cold(cold):
                self._is_missing(part)
                break
        return 0

    def _looked_up(
        self, part: Part, look: Callable[[Index], Found]
    ) -> Generator[Pause, None, Found | None]:
        """What is found in a part's index, which a worker looks into: it may be on disk only, and
        it may be long. None if the file has gone meanwhile."""
        open_index = part.index

        def job() -> Found | None:
            try:
                return look(open_index or self._read_index(part))
            except FileNotFoundError:
                return None

        found = yield from self._worker.awaited(job)
        return found

    def _is_missing(self, part: Part) -> None:
        """The file of a part that is still wanted is not there."""
        self._worker.failed(FileNotFoundError(errno.ENOENT, "file not found", part.segment.name))

    def _finish(self, cold: Cold, stretch: Stretch) -> None:
        part = stretch.part
        while stretch.low < stretch.high and part.is_dead(stretch.low):
            stretch.low += 1
        if stretch.low >= stretch.high:
            cold.lost += cold.count
            cold.count = 0
            part.forget_cold(cold)

    def _index(self, part: Part) -> Index:
        return part.index or self._read_index(part)

    def _read_index(self, part: Part) -> Index:
        return self.reader.index(part.segment.number, part.queue_id, part.shape)

    def _read(self, part: Part, entries: Sequence[tuple[int, Entry]]) -> list[_Read]:
        """The records at these places."""
        number = part.segment.number
        places = {entry.place for _, entry in entries}
        return self._read_of(number, entries, self._records(number, places))

    def _read_of(
        self,
        number: int,
        entries: Sequence[tuple[int, Entry]],
        records: Mapping[tuple[int, int], Messages],
    ) -> list[_Read]:
        """A queue's records among those that were read; tells which are damaged."""
        read: list[_Read] = []
        for ordinal, entry in entries:
            messages = records.get(entry.place)
            if messages is None:
                what = self.reader.note_damage(number, entry)
                logger.error(
                    "%s: %s; %d messages are left out", segment_name(number), what, entry.count
                )
            read.append(_Read(ordinal, entry, messages))
        return read

    def _records(
        self, number: int, places: set[tuple[int, int]]
    ) -> dict[tuple[int, int], Messages]:
        """Records of a segment by offset and size."""
        offset_ms = self._clock.now_ms() - self._clock.steady_ms()
        records: dict[tuple[int, int], Messages] = {}
        for place, record in self.reader.records(number, filter(_is_there, places)).items():
            block = self._blocks.get((number, place[0]))
            if block is None or not block.resident:
                block = record.block(offset_ms)
                block.place = (number, *place)
            records[place] = Messages(block, record)
        return records

    def _place(self, part: Part, read: list[_Read]) -> list[Span]:
        """Makes runs of what was read; gives what is left of them. A record of which none can be
        made is left out, and stays on disk as one that is damaged does: its queue goes on."""
        spans: list[Span] = []
        for one in read:
            try:
                spans += self._spans_of(part, one)
            except Exception:
                what = self.reader.note_damage(part.segment.number, one.entry)
                logger.exception(
                    "%s: %s; %d messages are left out", part.segment.name, what, one.entry.count
                )
        return spans

    def _spans_of(self, part: Part, read: _Read) -> Sequence[Span]:
        ordinal, entry, messages = read
        if messages is None or part.is_dead(ordinal) or ordinal in part.runs:
            return ()
        found = _share(part, entry, messages)
        if found is None:
            return ()
        selection, redelivered = found
        run = Run(self._shared(part, entry, messages.block), selection)
        mark = self._mark(part.queue_id, run.block)
        kept = part.hold(ordinal, run)
        if kept.flags is None and (redelivered or entry.first > mark):
            return (Span(run, 0, run.count, redelivered),)
        spans = kept.spans(run, redelivered=redelivered)
        if redelivered:
            return list(spans)
        return [marked for span in spans for marked in _marked(span, mark)]

    def _mark(self, queue_id: int, block: Block) -> int:
        """Up to which number messages as these may have been delivered by an earlier process."""
        mark = self.old_marks.get(queue_id, 0)
        if not self.old_priority_marks:
            return mark
        return max(mark, self.old_priority_marks.get((queue_id, block.traits.priority), 0))

    def _shared(self, part: Part, entry: Entry, read: Block) -> Block:
        """The block of that record that is in memory already, or this one."""
        key = part.segment.number, entry.offset
        block = self._blocks.get(key)
        if block is None:
            self._blocks[key] = read
            read.charge(self.memory)
            return read
        if not block.resident and block is not read:  # let go since its record was read
            block.restore(read)
        block.is_shared = True
        return block

    def fetch(self, block: Block, ready: Callable[[], None]) -> None:
        waiting = self._fetching.get(block)
        if waiting is not None:
            waiting.append(ready)
            return
        self._fetching[block] = [ready]
        place = block.place
        self._to_fetch.append((block, place.snapshot() if isinstance(place, Places) else place))
        if len(self._fetching) == 1:
            self._read_next()

    def _read_next(self) -> None:
        """What is wanted by now, with one job: small blocks together cost little more than one."""
        wanted: list[tuple[Block, object]] = []
        room = CHUNK_BYTES
        while self._to_fetch and room > 0 and len(wanted) < CHUNK_BLOCKS:
            wanted.append(self._to_fetch.popleft())
            room -= wanted[-1][0].size_bytes

        def job() -> list[tuple[Block, Block | None]]:
            return [(block, self._read_or_tell(block, place)) for block, place in wanted]

        self._worker.run(job, self._have_read)

    def _read_or_tell(self, block: Block, place: object) -> Block | None:
        try:
            return self._read_block(block, place)
        except (DamagedRecord, OSError) as error:
            logger.error("messages can't be read: %s", error)
            return None

    def _have_read(self, found: list[tuple[Block, Block | None]]) -> None:
        calls: list[Callable[[], None]] = []
        for block, read in found:
            if read is not None and not block.resident:
                block.restore(read)
            calls += self._fetching.pop(block)
        if self._to_fetch:
            self._read_next()
        for _ in for_each(calls, _call):
            pass

    def _read_block(self, block: Block, place: object) -> Block:
        """What a block was written as. Raises `DamagedRecord` or `OSError`."""
        if isinstance(place, list):
            return reassemble(
                block, [(first, self._read_block(block, where)) for first, where in place]
            )
        assert isinstance(place, tuple)
        segment, offset, size = place
        if isinstance(segment, OverflowFile):
            body = memoryview(segment.read(offset, size))
            return decode_messages(body, block.sequence, 0).block
        return self.reader.record(segment, offset, size).block(0)


class _Asked(NamedTuple):
    """A stretch whose front a queue wants."""

    cold: Cold
    stretch: Stretch
    ready: Callable[[Sequence[Span]], None]

    @property
    def is_there(self) -> bool:
        """Whether it has not been discarded since."""
        return self.cold.count > 0 and self.cold.place is self.stretch


class _Thaw(NamedTuple):
    """What is to be read for it: records of a part by ordinal."""

    asked: _Asked
    part: Part
    high: int
    wanted: Sequence[int]
    open_index: Index | None


def _thaw(asked: _Asked) -> _Thaw:
    stretch = asked.stretch
    part, high = stretch.part, stretch.high
    low = max(stretch.low, part.front) if asked.is_there else high
    wanted: Sequence[int] = range(low, min(high, low + CHUNK_RECORDS))
    if part.dead:
        living = (at for at in range(low, high) if at not in part.dead)
        wanted = list(islice(living, CHUNK_RECORDS))
    return _Thaw(asked, part, high, wanted, part.index)


@dataclass(slots=True)
class _Thawed:
    """What was read of it; `missing` if the segment's file is gone."""

    thaw: _Thaw
    entries: list[tuple[int, Entry]]
    read: list[_Read] = field(default_factory=list)
    missing: FileNotFoundError | None = None


class _Read(NamedTuple):
    """A record of a part, None if it is damaged."""

    ordinal: int
    entry: Entry
    messages: Messages | None


def _is_there(place: tuple[int, int]) -> bool:
    """Whether a record stands there; an index has places of lost ones, too."""
    return place[1] > 0


def _share(
    part: Part, entry: Entry, messages: Messages
) -> tuple[Sequence[int] | None, bool] | None:
    """Which messages are the queue's, and whether they are redelivered. The index says it for
    neighbours; what else is wanted stands among the shares of all queues in the record."""
    is_told = entry.count == entry.last - entry.first + 1
    if is_told and (messages.redelivered or not part.segment.unclean):
        return messages.record.between(entry.first, entry.last), messages.redelivered
    found = messages.of(part.queue_id)
    if found is None:
        return None
    selection, was_read = found
    return selection, messages.redelivered or (was_read and part.segment.unclean)


def _first(part: Part) -> int:
    return part.first


def _follow_each_other(parts: list[Part]) -> bool:
    """Whether none of them lies among another, as nearly always: only moved ones can."""
    last = -1
    for part in parts:
        if part.first <= last:
            return False
        last = part.last
    return True


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


class _Records(NamedTuple):
    """Records `low` to `high - 1` of a part, of whose messages `left` are to be kept."""

    part: Part
    low: int
    high: int
    left: int


def _joined(held: Iterable[_Records]) -> list[_Records]:
    """Neighbours in the queue that are neighbours in a part as one: moves leave many."""
    joined: list[_Records] = []
    for here in held:
        before = joined[-1] if joined else None
        if before is not None and before.part is here.part and before.high == here.low:
            left = before.left + here.left
            joined[-1] = _Records(here.part, before.low, here.high, left)
        else:
            joined.append(here)
    return joined


class _Looked(NamedTuple):
    """What was read of a stretch; `start` is the position of the first record's first message."""

    start: int
    entries: list[tuple[int, Entry]]
    read: list[_Read]


def _places(index: Index, low: int, high: int, position: int) -> tuple[int, list[int]]:
    """The records from the one on that holds a stretch's message at `position`, and the position
    of that record's first message. No records, if the index has not so many as there were."""
    ends = index.ends()
    high = min(high, len(ends))
    if low >= high:
        return position, []
    before = ends[low - 1] if low else 0
    ordinal = bisect_right(ends, before + position, low, high)
    start = (ends[ordinal - 1] if ordinal else 0) - before
    return start, list(range(ordinal, min(high, ordinal + CHUNK_RECORDS)))


def _call(action: Callable[[], None]) -> None:
    action()


def _all_of(index: Index) -> Index:
    return index


def _size_of(low: int, high: int) -> Callable[[Index], int]:
    return lambda index: index.size_bytes(low, high)


def _front_of(low: int, high: int, size_bytes: int) -> Callable[[Index], tuple[int, int, int]]:
    """Looks for the first records from `low` on that have that size: gives the ordinal behind
    them, the number of messages and the size; `high` if there are no more than these."""

    def look(index: Index) -> tuple[int, int, int]:
        size = count = 0
        for at in range(low, min(high - 1, len(index))):
            entry = index[at]
            size += entry.share_bytes
            count += entry.count
            if size >= size_bytes:
                return at + 1, count, size
        return high, count, size

    return look


def _discard_some(cold: Cold, stretch: Stretch, index: Index) -> list[int]:
    """Settles the first records of a stretch."""
    part, low = stretch.part, stretch.low
    stretch.low = min(low + DISCARDED_AT_ONCE, stretch.high)
    # Where records were compacted others may lie between that are in memory.
    known = [
        at
        for at in range(low, min(stretch.low, len(index)))
        if not part.is_dead(at) and at not in part.runs
    ]
    entries = [index[at] for at in known]
    for at, entry in zip(known, entries, strict=True):
        count = entry.count - int.from_bytes(part.partial.get(at, b""), "little").bit_count()
        cold.count -= count
        part.died(at)
        part.settled(count, at)
    if entries and not part.segment.is_moved:
        return [entries[0].first, entries[-1].last]
    return [number for entry in entries for number in (entry.first, entry.last)]


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
