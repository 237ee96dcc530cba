"""Reads the records of streams as they lie in the log.

Places of records are noted on the broker's thread; indexes and records are read by the worker. A
record that was moved meanwhile is looked for again by the caller.
"""

from __future__ import annotations

import logging
import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, islice
from typing import Final

from ..message.stream_read import RecordsWanted, StreamMeasure, StreamRead
from .entry_loader import EntryLoader
from .port import StreamRecords
from .record import Buffer
from .record_chunk import HEAD_BYTES, StoredRecord, arrived_ms, checksum, record_chunk
from .record_index import COUNT, ENTRY, SIZE, IndexEntry
from .record_places import RecordPlace, places_of
from .segment import segment_name
from .work import Worker

logger = logging.getLogger(__name__)

RECORDS_MAX: Final = 4_096
"""Records that one job reads at most."""
INDEXES_MAX: Final = 64
"""Indexes that one job measures at most."""


class LogRecords(StreamRecords):
    """Implements `StreamRecords` on a log."""

    def __init__(self, loader: EntryLoader, worker: Worker) -> None:
        self._loader = loader
        self._worker = worker

    def read(
        self,
        wanted: RecordsWanted,
        limit_bytes: int,
        ready: Callable[[StreamRead | None], None],
        *,
        skip_damaged: bool = False,
    ) -> None:
        places = places_of(wanted, RECORDS_MAX)

        def job() -> StreamRead | None:
            try:
                stored = self._stored(places, wanted, limit_bytes)
                return self._read(wanted, stored, skip_damaged=skip_damaged)
            except FileNotFoundError:
                return None  # Records were moved or dropped before the job ran.

        self._worker.run(job, ready)

    def measure(
        self,
        wanted: RecordsWanted,
        limit_bytes: int,
        ready: Callable[[StreamMeasure | None], None],
    ) -> None:
        places = places_of(wanted, sys.maxsize)

        def job() -> StreamMeasure | None:
            try:
                return self._measure(places[:INDEXES_MAX], wanted, limit_bytes)
            except FileNotFoundError:
                return None

        self._worker.run(job, ready)

    def _measure(
        self, places: Sequence[RecordPlace], wanted: RecordsWanted, limit_bytes: int
    ) -> StreamMeasure:
        size, end = 0, wanted.start
        for place in places:
            numbers = self._numbers(place, wanted.start, sys.maxsize)
            sizes = (HEAD_BYTES + (second & SIZE) for second in numbers[1::ENTRY])
            totals = [0, *accumulate(sizes)]
            # At least one record is in it.
            least = int(end == wanted.start)
            within = max(least, bisect_right(totals, limit_bytes - size) - 1)
            if within < len(totals) - 1:
                counts = (third & COUNT for third in numbers[2::ENTRY])
                end = place.offset + sum(islice(counts, within))
                return StreamMeasure(min(end, wanted.end), size + totals[within], is_full=True)
            size += totals[-1]
            end = place.end
        return StreamMeasure(min(end, wanted.end), size, is_full=False)

    def _numbers(self, place: RecordPlace, start: int, records_max: int) -> array[int]:
        if place.numbers is None:
            place.look_up(self._loader.read_index(place.part), start, records_max)
        assert place.numbers is not None
        return place.numbers

    def _stored(
        self, places: Sequence[RecordPlace], wanted: RecordsWanted, limit_bytes: int
    ) -> list[StoredRecord]:
        """Returns where the first records are, up to the limit but at least one."""
        found: list[StoredRecord] = []
        size = 0
        all_records = chain.from_iterable(self._each(place, wanted.start) for place in places)
        for stored in islice(all_records, RECORDS_MAX):
            size += HEAD_BYTES + stored.size
            if stored.first >= wanted.end or (found and size > limit_bytes):
                break
            found.append(stored)
        return found

    def _each(self, place: RecordPlace, start: int) -> Iterator[StoredRecord]:
        numbers = self._numbers(place, start, RECORDS_MAX)
        segment, first = place.part.segment.number, place.offset
        for second, third in zip(numbers[1::ENTRY], numbers[2::ENTRY], strict=True):
            count = third & COUNT
            yield StoredRecord(segment, second >> 32, second & SIZE, first, count)
            first += count
        if first < place.end and len(numbers) < ENTRY * RECORDS_MAX:
            # The index was rebuilt from a file that is not whole.
            first = max(first, start)
            yield StoredRecord(segment, 0, 0, first, place.end - first)

    def _read(
        self, wanted: RecordsWanted, all_stored: Sequence[StoredRecord], *, skip_damaged: bool
    ) -> StreamRead:
        raw = self._raw(all_stored)
        pieces: list[Buffer] = []
        arrival = checked = 0
        first = next_offset = all_stored[0].first if all_stored else wanted.start
        for stored in all_stored:
            data = raw.get((stored.segment, stored.offset)) if stored.size else None
            chunk = None if data is None else record_chunk(wanted.stream_id, stored, data)
            if chunk is None:
                self._report(stored)
                if pieces and not skip_damaged:
                    break
            elif not pieces and next_offset > first and not skip_damaged:
                break  # It is behind those that can't be read.
            else:
                if not pieces:
                    first, arrival = stored.first, arrived_ms(chunk)
                pieces += chunk
                checked = checksum(chunk, checked)
            next_offset = stored.first + stored.messages
        return StreamRead(first, next_offset, pieces, arrival, checked)

    def _raw(self, all_stored: Sequence[StoredRecord]) -> dict[tuple[int, int], memoryview]:
        by_segment: dict[int, list[tuple[int, int]]] = {}
        for stored in all_stored:
            if stored.size:
                by_segment.setdefault(stored.segment, []).append((stored.offset, stored.size))
        return {
            (segment, offset): data
            for segment, locations in by_segment.items()
            for offset, data in self._loader.reader.raw_records(segment, locations).items()
        }

    def _report(self, stored: StoredRecord) -> None:
        """Notes damage; logs the first of each segment, since clients may ask again and again."""
        reader, segment = self._loader.reader, stored.segment
        is_known = segment in reader.damaged
        entry = IndexEntry(0, stored.offset << 32 | stored.size, stored.messages)
        reason = reader.note_damage(segment, entry)
        if not is_known:
            logger.error(
                "%s: %s; unreadable stream messages, offsets %d to %d",
                segment_name(segment), reason, stored.first, stored.first + stored.messages - 1,
            )  # fmt: skip
