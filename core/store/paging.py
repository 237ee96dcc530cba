"""What is on disk and not in memory: read back when its queue comes to it, let go when it is long.

A range of a queue (`PagedOut`) is an interval of a part's ordinals. It is read in chunks of about
1 MiB, neighbours with one call; a batch that another queue has in memory already is shared, so a
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

from ..clock import Clock
from ..message.batch import Batch, MemoryUsage, MessageRange, PagedOut, QueueEntry
from ..slices import Pause, for_each, run_slice
from ..wire.properties import RANKED, TIMED
from .codec import Messages, decode_messages, encode_messages
from .disk import Disk
from .overflow import Overflow, OverflowFile
from .port import Browsed, Split
from .reader import DamagedRecord, Reader
from .segment import (
    IndexEntry,
    PagedOutLocation,
    RecordIndex,
    SegmentPart,
    SettledSet,
    segment_name,
)
from .split_entries import Places, is_in_log, reassemble, whereabouts
from .work import Worker
from .writer import Writer

logger = logging.getLogger(__name__)

Found = TypeVar("Found")

CHUNK_BYTES = 1024 * 1024
CHUNK_RECORDS, JOB_RECORDS = 512, 4_096
"""What is read of one range, and with one job."""
CHUNK_BLOCKS = 256
HANDED_BACK_SLICES = 3
"""What giving ranges back to their queues takes of a turn."""
THAWS_AT_ONCE = 2
DISCARDED_AT_ONCE = 8
_ON_ITS_WAY = object()
"""The place of a batch that is just being written."""


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
        self.memory = MemoryUsage()
        self.old_marks = old_marks
        self.old_priority_marks = old_priority_marks
        self.reader = Reader(disk)
        self._worker = worker
        self._writer = writer
        self._clock = clock
        self._batches: WeakValueDictionary[tuple[int, int], Batch] = WeakValueDictionary()
        self.leaving_bytes = 0
        self._overflow = Overflow(disk)
        self._overflowing: list[Batch] = []
        self._overflow_lock = Lock()
        self._writing_overflow = Lock()
        self._fetching: dict[Batch, list[Callable[[], None]]] = {}
        self._to_fetch: deque[tuple[Batch, object]] = deque()
        self._to_page_in: deque[_Asked] = deque()
        self._to_look: OrderedDict[PagedOut, _Asked] = OrderedDict()
        """What no consumer waits for: read one chunk at a time, and when nothing else is wanted."""
        self._looked_at: dict[PagedOut, bool] = {}
        """What of that is being read just now, and whether somebody waits for it since."""
        self._paging_in = 0
        self._is_gathering = False

    def close(self) -> None:
        self.reader.close()

    # -- out of memory

    def evict(self, batch: Batch) -> bool:
        place = batch.location
        if place is None:
            self._overflow_later(batch)
            return False
        if not self._can_be_read(place):
            return False
        if batch.resident:
            batch.evict()
        return True

    def _can_be_read(self, place: object) -> bool:
        if isinstance(place, Places):
            return True
        if isinstance(place, tuple):
            segment, offset, _ = place
            return isinstance(segment, OverflowFile) or self._writer.has_written(segment, offset)
        return False

    def _overflow_later(self, batch: Batch) -> None:
        """Writes what is on no disk; the batch leaves memory when that is done."""
        batch.location = _ON_ITS_WAY
        self.leaving_bytes += batch.size_bytes
        with self._overflow_lock:
            self._overflowing.append(batch)
            is_first = len(self._overflowing) == 1
        if is_first:
            self._worker.run(self._write_overflow, self._overflowed)

    def _write_overflow(self) -> list[tuple[Batch, object]]:
        with self._overflow_lock:
            batches, self._overflowing = self._overflowing, []
        # One at a time: a second job may begin before this one has written all.
        with self._writing_overflow:
            return [(batch, self._overflow_place(batch)) for batch in batches]

    def _overflow_place(self, batch: Batch) -> object:
        try:
            return self._overflow.append(encode_messages(batch, (), 0))
        except OSError as error:
            logger.warning("no space to let messages out of memory: %s", error)
            return None

    def _overflowed(self, places: list[tuple[Batch, object]]) -> None:
        for batch, place in places:
            self.leaving_bytes -= batch.size_bytes
            batch.location = place
            if place is not None and batch.resident:
                batch.evict()

    def page_out(
        self, messages: MessageRange, before: PagedOut | None, *, in_order: bool = False
    ) -> PagedOut | None:
        entry = messages.entry
        where = whereabouts(entry) if messages.count == entry.count else None
        if where is None or not self._has_written(*where):
            return None
        batch = entry.batch
        is_plain = entry.deadline_ms is None and batch.attributes.expiration is None
        if not (in_order or (is_plain and is_in_log(batch.location))):
            return None
        if batch.resident and is_in_log(batch.location):
            batch.evict(sizes=batch.is_shared)
        part, low, high = where
        for ordinal in range(low, high):
            part.let_go(ordinal)
        if before is not None and isinstance(before.location, PagedOutLocation):
            location = before.location
            if location.part is part and location.high == low:
                location.high = high
                before.count += messages.count
                return before
        return self._cold(part, low, high, messages.count)

    def _has_written(self, part: SegmentPart, low: int, high: int) -> bool:
        """Whether these records can be read back; an index in memory may be ahead of the disk."""
        if part.index is None:
            return True
        return self._writer.has_written(part.segment.number, part.index[high - 1].offset)

    def _cold(
        self, part: SegmentPart, low: int, high: int, count: int, special: int = 0
    ) -> PagedOut:
        paged_out = PagedOut(count, None, special=special)
        part.hold_paged_out(paged_out, low, high)
        return paged_out

    def discard(self, paged_out: PagedOut) -> Iterator[list[int] | Pause]:
        """Nobody wants it any more, nor what is just being read of it. Each step discards some
        records and gives pairs of first and last number that cover them, or waits for an index."""
        location = paged_out.location
        assert isinstance(location, PagedOutLocation)
        paged_out.location = replace(location)
        return self._discard(paged_out)

    def _discard(self, paged_out: PagedOut) -> Iterator[list[int] | Pause]:
        part: SegmentPart | None = None
        index: RecordIndex | None = None
        while paged_out.count:
            location = paged_out.location
            assert isinstance(location, PagedOutLocation)
            if not location.part.holds_paged_out(paged_out):
                paged_out.count = 0  # The queue has ended meanwhile.
                return
            if location.part is not part:  # The first step, or it has been compacted meanwhile.
                part = location.part
                index = part.index
                if index is None:
                    index = yield from self._looked_up(part, _all_of)
                    continue
            if index is None:
                self._is_missing(part)
                return
            if location.low >= location.high:
                # An index is damaged: nobody knows which records these belonged to.
                part.snapshot = None
                part.settled(paged_out.count)
                paged_out.count = 0
            else:
                yield _discard_some(paged_out, location, index)
            if not paged_out.count and part.holds_paged_out(paged_out):
                part.forget_paged_out(paged_out)

    # -- what an earlier process left

    def recovered(
        self, parts: list[SegmentPart], *, ranks: bool = False, in_order: bool = False
    ) -> list[PagedOut]:
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

    def _each_record(self, part: SegmentPart) -> list[tuple[int, _Records]]:
        """Parts that lie among each other, after moves, are put together record by record."""
        index = self._index(part)
        return [
            (index[ordinal].first, _Records(part, ordinal, ordinal + 1, left))
            for ordinal in range(part.front, part.records)
            if (left := self._left(part, index, ordinal))
        ]

    def _left(self, part: SegmentPart, index: RecordIndex, ordinal: int) -> int:
        if part.is_dead(ordinal):
            return 0
        if ordinal not in part.partial:
            return index[ordinal].count
        ranges = self._ranges(part, [ordinal])
        left = sum(messages.count for messages in ranges)
        entry = part.entries.pop(ordinal, None)
        if entry is not None:  # or it is damaged
            assert isinstance(entry.settled_set, SettledSet)
            part.partial[ordinal] = entry.settled_set.settled_bits(0, entry.count)
        return left

    def _ranges(self, part: SegmentPart, ordinals: list[int]) -> list[MessageRange]:
        index = self._index(part)
        index_entries = [(ordinal, index[ordinal]) for ordinal in ordinals]
        return self._place(part, self._read(part, index_entries))

    # -- into memory

    def page_in(
        self,
        paged_out: PagedOut,
        ready: Callable[[Sequence[MessageRange]], None],
        *,
        is_urgent: bool = True,
    ) -> None:
        location = paged_out.location
        assert isinstance(location, PagedOutLocation)
        asked = _Asked(paged_out, location, ready)
        if is_urgent:
            self._to_page_in.append(asked)
        else:
            self._to_look[paged_out] = asked
        self._gather()

    def hurry(self, paged_out: PagedOut) -> None:
        asked = self._to_look.pop(paged_out, None)
        if asked is not None:
            self._to_page_in.append(asked)
            self._gather()
        elif paged_out in self._looked_at:
            self._looked_at[paged_out] = True

    def _gather(self) -> None:
        """Reads behind this turn, which may ask for more."""
        if self._paging_in < THAWS_AT_ONCE and not self._is_gathering:
            self._is_gathering = True
            self._worker.post(self._page_in_next)

    def _page_in_next(self) -> None:
        """What this turn has asked for, with one job: queues with a few messages each lie among
        each other, in the same records or in neighbours."""
        self._is_gathering = False
        is_urgent = bool(self._to_page_in)
        if self._paging_in >= THAWS_AT_ONCE or not (is_urgent or self._to_look):
            return
        if self._paging_in and not is_urgent:
            return  # It will be asked for again when that is read.
        wanted = self._next_wanted(is_urgent=is_urgent)
        self._paging_in += 1

        if not is_urgent:
            self._looked_at = dict.fromkeys((page_in.asked.paged_out for page_in in wanted), False)

        def done(found: list[_PagedIn]) -> None:
            self._paging_in -= 1
            self._put_back([page_in.asked for page_in in wanted[len(found) :]], is_urgent=is_urgent)
            self._page_in_next()
            self._hand_back(for_each(found, self._paged_in))

        self._worker.run(lambda: self._read_thaws(wanted), done)

    def _put_back(self, rest: Sequence[_Asked], *, is_urgent: bool) -> None:
        """What one job had no room for is the next one's; one of them reads what nobody waits for
        at a time."""
        hurried: dict[PagedOut, bool] = {}
        if not is_urgent:
            hurried, self._looked_at = self._looked_at, {}
        for asked in reversed(rest):
            if is_urgent or hurried[asked.paged_out]:
                self._to_page_in.appendleft(asked)
            else:
                self._to_look[asked.paged_out] = asked
                self._to_look.move_to_end(asked.paged_out, last=False)

    def _next_wanted(self, *, is_urgent: bool) -> list[_PageIn]:
        """As much as makes a job, of what is awaited or of what is not."""
        wanted: list[_PageIn] = []
        room = JOB_RECORDS
        waiting = self._to_page_in if is_urgent else self._to_look
        while waiting and room > 0 and len(wanted) < CHUNK_BLOCKS:
            asked = (
                self._to_page_in.popleft() if is_urgent else self._to_look.popitem(last=False)[1]
            )
            wanted.append(_page_in(asked))
            room -= len(wanted[-1].wanted)
        return wanted

    def _read_thaws(self, thaws: Sequence[_PageIn]) -> list[_PagedIn]:
        """As many of them as make a chunk, at least one."""
        found: list[_PagedIn] = []
        places: dict[int, set[tuple[int, int]]] = {}
        size_bytes = 0
        for page_in in thaws:
            chosen = self._chosen(page_in)
            known = places.setdefault(page_in.part.segment.number, set())
            new = [
                index_entry.place
                for _, index_entry in chosen.index_entries
                if index_entry.place not in known
            ]
            size_bytes += sum(size for _, size in new)
            if found and size_bytes > CHUNK_BYTES:
                break
            known.update(new)
            found.append(chosen)
        for number, wanted in places.items():
            here = [one for one in found if one.page_in.part.segment.number == number]
            try:
                records = self._records(number, wanted)
            except FileNotFoundError as error:
                for one in here:
                    one.missing = error
                continue
            for one in here:
                one.read = self._read_of(number, one.index_entries, records)
        return found

    def _chosen(self, page_in: _PageIn) -> _PagedIn:
        part = page_in.part
        if not page_in.wanted:
            return _PagedIn(page_in, [])
        try:
            index = page_in.open_index or self._read_index(part)
        except FileNotFoundError as error:
            return _PagedIn(page_in, [], missing=error)
        records = len(index)
        wanted = page_in.wanted
        if wanted[-1] >= records:
            wanted = [at for at in wanted if at < records]
        index_entries = _chunk(index, wanted)
        if not index_entries:
            logger.error("%s: an index and what it leads to are damaged", part.segment.name)
        return _PagedIn(page_in, index_entries)

    def _hand_back(self, steps: Iterator[None]) -> None:
        """A slice of them in a turn."""
        if run_slice(steps, HANDED_BACK_SLICES):
            self._worker.post(lambda: self._hand_back(steps))

    def _paged_in(self, found: _PagedIn) -> None:
        asked, part, high, _, _ = found.page_in
        paged_out, location, ready = asked
        if not asked.is_there or not part.holds_paged_out(paged_out):
            ready(())  # discarded or moved meanwhile
            return
        if found.missing is not None:
            self._worker.failed(found.missing)
            return
        ranges = self._place(part, found.read)
        location.low = found.index_entries[-1][0] + 1 if found.index_entries else high
        for messages in ranges:
            paged_out.count -= messages.high - messages.low
        self._finish(paged_out, location)
        ready(ranges)

    def browse(
        self, paged_out: PagedOut, position: int, ready: Callable[[Browsed | None], None]
    ) -> None:
        location = paged_out.location
        assert isinstance(location, PagedOutLocation)
        part = location.part
        low, high, open_index = location.low, location.high, part.index
        open_places = None if open_index is None else _places(open_index, low, high, position)

        def job() -> _Looked | None:
            try:
                if open_index is not None and open_places is not None:
                    index, (start, ordinals) = open_index, open_places
                else:
                    index = self._read_index(part)
                    start, ordinals = _places(index, low, high, position)
                index_entries = _chunk(index, ordinals)
                return _Looked(start, index_entries, self._read(part, index_entries))
            except FileNotFoundError:
                return None  # All of it was moved or dropped long before its turn came.

        def done(looked: _Looked | None) -> None:
            if (
                not paged_out.count
                or paged_out.location is not location
                or not part.holds_paged_out(paged_out)
            ):
                ready(None)
            elif looked is None or not looked.index_entries:
                logger.error("%s: an index and what it leads to are damaged", part.segment.name)
                ready(Browsed([], paged_out.count))
            else:
                ready(self._browsed(part, position, looked))

        self._worker.run(job, done)

    def _browsed(self, part: SegmentPart, position: int, looked: _Looked) -> Browsed:
        ranges: list[tuple[int, MessageRange]] = []
        start = looked.start
        for _, index_entry, decoded in looked.read:
            found = None if decoded is None else _share(part, index_entry, decoded)
            if decoded is not None and found is not None:
                entry = QueueEntry(self._shared(part, index_entry, decoded.batch), found[0])
                skipped = max(0, position - start)
                ranges.append((start + skipped, MessageRange(entry, skipped, entry.count)))
            start += index_entry.count
        return Browsed(ranges, start)

    def split(self, paged_out: PagedOut, size_bytes: int) -> Generator[Pause, None, Split | None]:
        location = paged_out.location
        assert isinstance(location, PagedOutLocation)
        while location.part.holds_paged_out(paged_out):
            part, low = location.part, location.low
            front = yield from self._looked_up(part, _front_of(low, location.high, size_bytes))
            if not part.holds_paged_out(paged_out) or location.low != low:
                continue  # It has been compacted meanwhile, or its queue has ended.
            if front is None:
                self._is_missing(part)
                return None
            high, count, size = front
            if high >= location.high:
                return None
            location.low = high
            paged_out.count -= count
            return Split(self._cold(part, low, high, count), size)
        return None

    def size_of(self, entry: QueueEntry) -> int:
        where = whereabouts(entry)
        index = None if where is None else where[0].index
        if where is None or index is None:
            return entry.batch.size_bytes * entry.count // entry.batch.count
        return index.size_bytes(where[1], where[2])

    def weigh(self, paged_out: PagedOut) -> Generator[Pause, None, int]:
        location = paged_out.location
        assert isinstance(location, PagedOutLocation)
        while location.part.holds_paged_out(paged_out):
            part = location.part
            size = yield from self._looked_up(part, _size_of(location.low, location.high))
            if size is not None:
                return size
            if part.holds_paged_out(paged_out):
                self._is_missing(part)
                break
        return 0

    def _looked_up(
        self, part: SegmentPart, look: Callable[[RecordIndex], Found]
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

    def _is_missing(self, part: SegmentPart) -> None:
        """The file of a part that is still wanted is not there."""
        self._worker.failed(FileNotFoundError(errno.ENOENT, "file not found", part.segment.name))

    def _finish(self, paged_out: PagedOut, location: PagedOutLocation) -> None:
        part = location.part
        while location.low < location.high and part.is_dead(location.low):
            location.low += 1
        if location.low >= location.high:
            paged_out.lost += paged_out.count
            paged_out.count = 0
            part.forget_paged_out(paged_out)

    def _index(self, part: SegmentPart) -> RecordIndex:
        return part.index or self._read_index(part)

    def _read_index(self, part: SegmentPart) -> RecordIndex:
        return self.reader.index(part.segment.number, part.queue_id, part.shape)

    def _read(
        self, part: SegmentPart, index_entries: Sequence[tuple[int, IndexEntry]]
    ) -> list[_Read]:
        """The records at these places."""
        number = part.segment.number
        places = {index_entry.place for _, index_entry in index_entries}
        return self._read_of(number, index_entries, self._records(number, places))

    def _read_of(
        self,
        number: int,
        index_entries: Sequence[tuple[int, IndexEntry]],
        records: Mapping[tuple[int, int], Messages],
    ) -> list[_Read]:
        """A queue's records among those that were read; tells which are damaged."""
        read: list[_Read] = []
        for ordinal, index_entry in index_entries:
            decoded = records.get(index_entry.place)
            if decoded is None:
                what = self.reader.note_damage(number, index_entry)
                logger.error(
                    "%s: %s; %d messages are left out",
                    segment_name(number),
                    what,
                    index_entry.count,
                )
            read.append(_Read(ordinal, index_entry, decoded))
        return read

    def _records(
        self, number: int, places: set[tuple[int, int]]
    ) -> dict[tuple[int, int], Messages]:
        """Records of a segment by offset and size."""
        offset_ms = self._clock.now_ms() - self._clock.steady_ms()
        records: dict[tuple[int, int], Messages] = {}
        for place, record in self.reader.records(number, filter(_is_there, places)).items():
            batch = self._batches.get((number, place[0]))
            if batch is None or not batch.resident:
                batch = record.batch(offset_ms)
                batch.location = (number, *place)
            records[place] = Messages(batch, record)
        return records

    def _place(self, part: SegmentPart, read: list[_Read]) -> list[MessageRange]:
        """Makes runs of what was read; gives what is left of them. A record of which none can be
        made is left out, and stays on disk as one that is damaged does: its queue goes on."""
        ranges: list[MessageRange] = []
        for one in read:
            try:
                ranges += self._spans_of(part, one)
            except Exception:
                what = self.reader.note_damage(part.segment.number, one.index_entry)
                logger.exception(
                    "%s: %s; %d messages are left out",
                    part.segment.name,
                    what,
                    one.index_entry.count,
                )
        return ranges

    def _spans_of(self, part: SegmentPart, read: _Read) -> Sequence[MessageRange]:
        ordinal, index_entry, decoded = read
        if decoded is None or part.is_dead(ordinal) or ordinal in part.entries:
            return ()
        found = _share(part, index_entry, decoded)
        if found is None:
            return ()
        selection, redelivered = found
        entry = QueueEntry(self._shared(part, index_entry, decoded.batch), selection)
        mark = self._mark(part.queue_id, entry.batch)
        kept = part.hold(ordinal, entry)
        if kept.flags is None and (redelivered or index_entry.first > mark):
            return (MessageRange(entry, 0, entry.count, redelivered),)
        ranges = kept.ranges(entry, redelivered=redelivered)
        if redelivered:
            return list(ranges)
        return [marked for messages in ranges for marked in _marked(messages, mark)]

    def _mark(self, queue_id: int, batch: Batch) -> int:
        """Up to which number messages as these may have been delivered by an earlier process."""
        mark = self.old_marks.get(queue_id, 0)
        if not self.old_priority_marks:
            return mark
        return max(mark, self.old_priority_marks.get((queue_id, batch.attributes.priority), 0))

    def _shared(self, part: SegmentPart, index_entry: IndexEntry, read: Batch) -> Batch:
        """The batch of that record that is in memory already, or this one."""
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

    def fetch(self, batch: Batch, ready: Callable[[], None]) -> None:
        waiting = self._fetching.get(batch)
        if waiting is not None:
            waiting.append(ready)
            return
        self._fetching[batch] = [ready]
        place = batch.location
        self._to_fetch.append((batch, place.snapshot() if isinstance(place, Places) else place))
        if len(self._fetching) == 1:
            self._read_next()

    def _read_next(self) -> None:
        """What is wanted by now, with one job: small batches together cost little more than one."""
        wanted: list[tuple[Batch, object]] = []
        room = CHUNK_BYTES
        while self._to_fetch and room > 0 and len(wanted) < CHUNK_BLOCKS:
            wanted.append(self._to_fetch.popleft())
            room -= wanted[-1][0].size_bytes

        def job() -> list[tuple[Batch, Batch | None]]:
            return [(batch, self._read_or_tell(batch, place)) for batch, place in wanted]

        self._worker.run(job, self._have_read)

    def _read_or_tell(self, batch: Batch, place: object) -> Batch | None:
        try:
            return self._read_block(batch, place)
        except (DamagedRecord, OSError) as error:
            logger.error("messages can't be read: %s", error)
            return None

    def _have_read(self, found: list[tuple[Batch, Batch | None]]) -> None:
        calls: list[Callable[[], None]] = []
        for batch, read in found:
            if read is not None and not batch.resident:
                batch.restore(read)
            calls += self._fetching.pop(batch)
        if self._to_fetch:
            self._read_next()
        for _ in for_each(calls, _call):
            pass

    def _read_block(self, batch: Batch, place: object) -> Batch:
        """What a batch was written as. Raises `DamagedRecord` or `OSError`."""
        if isinstance(place, list):
            return reassemble(
                batch, [(first, self._read_block(batch, where)) for first, where in place]
            )
        assert isinstance(place, tuple)
        segment, offset, size = place
        if isinstance(segment, OverflowFile):
            body = memoryview(segment.read(offset, size))
            return decode_messages(body, batch.sequence, 0).batch
        return self.reader.record(segment, offset, size).batch(0)


class _Asked(NamedTuple):
    """A range whose front a queue wants."""

    paged_out: PagedOut
    location: PagedOutLocation
    ready: Callable[[Sequence[MessageRange]], None]

    @property
    def is_there(self) -> bool:
        """Whether it has not been discarded since."""
        return self.paged_out.count > 0 and self.paged_out.location is self.location


class _PageIn(NamedTuple):
    """What is to be read for it: records of a part by ordinal."""

    asked: _Asked
    part: SegmentPart
    high: int
    wanted: Sequence[int]
    open_index: RecordIndex | None


def _page_in(asked: _Asked) -> _PageIn:
    location = asked.location
    part, high = location.part, location.high
    low = max(location.low, part.front) if asked.is_there else high
    wanted: Sequence[int] = range(low, min(high, low + CHUNK_RECORDS))
    if part.dead:
        living = (at for at in range(low, high) if at not in part.dead)
        wanted = list(islice(living, CHUNK_RECORDS))
    return _PageIn(asked, part, high, wanted, part.index)


@dataclass(slots=True)
class _PagedIn:
    """What was read of it; `missing` if the segment's file is gone."""

    page_in: _PageIn
    index_entries: list[tuple[int, IndexEntry]]
    read: list[_Read] = field(default_factory=list)
    missing: FileNotFoundError | None = None


class _Read(NamedTuple):
    """A record of a part, None if it is damaged."""

    ordinal: int
    index_entry: IndexEntry
    decoded: Messages | None


def _is_there(place: tuple[int, int]) -> bool:
    """Whether a record stands there; an index has places of lost ones, too."""
    return place[1] > 0


def _share(
    part: SegmentPart, index_entry: IndexEntry, decoded: Messages
) -> tuple[Sequence[int] | None, bool] | None:
    """Which messages are the queue's, and whether they are redelivered. The index says it for
    neighbours; what else is wanted stands among the shares of all queues in the record."""
    is_told = index_entry.count == index_entry.last - index_entry.first + 1
    if is_told and (decoded.redelivered or not part.segment.unclean):
        return decoded.record.between(index_entry.first, index_entry.last), decoded.redelivered
    found = decoded.of(part.queue_id)
    if found is None:
        return None
    selection, was_read = found
    return selection, decoded.redelivered or (was_read and part.segment.unclean)


def _first(part: SegmentPart) -> int:
    return part.first


def _follow_each_other(parts: list[SegmentPart]) -> bool:
    """Whether none of them lies among another, as nearly always: only moved ones can."""
    last = -1
    for part in parts:
        if part.first <= last:
            return False
        last = part.last
    return True


def _apart(parts: list[SegmentPart]) -> list[bool]:
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

    part: SegmentPart
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
    """What was read of a range; `start` is the position of the first record's first message."""

    start: int
    index_entries: list[tuple[int, IndexEntry]]
    read: list[_Read]


def _places(index: RecordIndex, low: int, high: int, position: int) -> tuple[int, list[int]]:
    """The records from the one on that holds a range's message at `position`, and the position
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


def _all_of(index: RecordIndex) -> RecordIndex:
    return index


def _size_of(low: int, high: int) -> Callable[[RecordIndex], int]:
    return lambda index: index.size_bytes(low, high)


def _front_of(
    low: int, high: int, size_bytes: int
) -> Callable[[RecordIndex], tuple[int, int, int]]:
    """Looks for the first records from `low` on that have that size: gives the ordinal behind
    them, the number of messages and the size; `high` if there are no more than these."""

    def look(index: RecordIndex) -> tuple[int, int, int]:
        size = count = 0
        for at in range(low, min(high - 1, len(index))):
            index_entry = index[at]
            size += index_entry.share_bytes
            count += index_entry.count
            if size >= size_bytes:
                return at + 1, count, size
        return high, count, size

    return look


def _discard_some(paged_out: PagedOut, location: PagedOutLocation, index: RecordIndex) -> list[int]:
    """Settles the first records of a range."""
    part, low = location.part, location.low
    location.low = min(low + DISCARDED_AT_ONCE, location.high)
    # Where records were compacted others may lie between that are in memory.
    known = [
        at
        for at in range(low, min(location.low, len(index)))
        if not part.is_dead(at) and at not in part.entries
    ]
    index_entries = [index[at] for at in known]
    for at, index_entry in zip(known, index_entries, strict=True):
        count = index_entry.count - int.from_bytes(part.partial.get(at, b""), "little").bit_count()
        paged_out.count -= count
        part.died(at)
        part.settled(count, at)
    if index_entries and not part.segment.is_moved:
        return [index_entries[0].first, index_entries[-1].last]
    return [
        number for index_entry in index_entries for number in (index_entry.first, index_entry.last)
    ]


def _chunk(index: RecordIndex, ordinals: Sequence[int]) -> list[tuple[int, IndexEntry]]:
    index_entries: list[tuple[int, IndexEntry]] = []
    size = 0
    for ordinal in ordinals:
        index_entry = index[ordinal]
        if index_entries and size + index_entry.size > CHUNK_BYTES:
            break
        size += index_entry.size
        index_entries.append((ordinal, index_entry))
    return index_entries


def _marked(messages: MessageRange, mark: int) -> list[MessageRange]:
    """Messages up to the mark may have been delivered before."""
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
