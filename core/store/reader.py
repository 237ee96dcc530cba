"""Reads segments: records by their location, indexes by their queue.

A record that can't be read is logged and left out; nothing is deleted because of it. The files used
last stay open, up to a limit.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock

from . import small_records
from .codec import MessageRecord
from .disk import Disk, File
from .rebuilt import RebuiltTable
from .record import HEAD_BYTES, Kind, Record, read_record
from .record_cache import RecordCache
from .record_index import INTERVAL_MAX, IndexEntry, IndexSummary, RecordIndex
from .salvage import reason_of, salvage
from .segment import segment_name
from .small_records import IndexTable

logger = logging.getLogger(__name__)

FILES_OPEN = 4
INDEXES_KEPT = 8
TABLES_KEPT, TABLES_BYTES = 8, 64 * 1024 * 1024
"""Limits for cached tables of indexes; the one read last stays whatever its size."""
_SPARSE = 4
"""Records are read with one call if they are at least this part of the bytes between them."""
SEALED_BYTES = HEAD_BYTES + 8


class DamagedRecord(Exception):
    """There is no valid record at a location."""


class Reader:
    """Reads records and indexes of segments. Thread safe."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._files: OrderedDict[int, File] = OrderedDict()
        self._indexes: OrderedDict[tuple[int, int, IndexSummary | None], RecordIndex] = (
            OrderedDict()
        )
        self.cache = RecordCache()
        self._tables: OrderedDict[int, _Table] = OrderedDict()
        self._lock = Lock()
        self.read_bytes = 0
        self.unreadable: dict[int, str] = {}
        """Segments that could not be read in places, and the first error of each."""
        self.damaged: dict[int, str] = {}
        """Segments with a damaged record, and the first of each."""

    def read(self, segment: int, offset: int, size: int) -> memoryview:
        """Reads bytes; those that can't be read are zeros. Raises `FileNotFoundError`."""
        with self._lock:
            data = memoryview(self._salvaged(segment, offset, size))
            self.read_bytes += len(data)
        return data

    def records(
        self, segment: int, locations: Iterable[tuple[int, int]]
    ) -> dict[tuple[int, int], MessageRecord]:
        """Reads message records by offset and size, from the cache or the file, neighbours with one
        call; damaged ones are left out. Raises `FileNotFoundError`."""
        found: dict[tuple[int, int], MessageRecord] = {}
        missing = []
        for location in locations:
            record = self.cache.get(segment, location[0])
            if record is None:
                missing.append(location)
            else:
                found[location] = record
        for group in _neighbours(sorted(missing)):
            start = group[0][0]
            region = self.read(segment, start, max(map(sum, group)) - start)
            for offset, size in group:
                read = read_record(segment, region, offset - start, start)
                if read is None or read.kind != Kind.MESSAGES:
                    continue
                # A view of one record would keep all in memory that was read with it.
                body = read.body if len(group) == 1 else memoryview(bytes(read.body))
                record = found[offset, size] = MessageRecord(body, read.sequence)
                self.cache.add(segment, offset, record)
        return found

    def record(self, segment: int, offset: int, size: int) -> MessageRecord:
        """Reads a message record. Raises `DamagedRecord` or `FileNotFoundError`."""
        found = self.records(segment, ((offset, size),)).get((offset, size))
        if found is None:
            reason = self._note(segment, f"no sound record at offset {offset}")
            raise DamagedRecord(f"{segment_name(segment)}: {reason}")
        return found

    def note_damage(self, segment: int, index_entry: IndexEntry) -> str:
        """Notes that a record is damaged or lost; returns the reason for log lines."""
        if index_entry.is_lost:
            return self._note(segment, "a record is not there any more")
        return self._note(segment, f"no sound record at offset {index_entry.offset}")

    def _note(self, segment: int, reason: str) -> str:
        self.damaged.setdefault(segment, reason)
        return reason

    def index(
        self, segment: int, queue_id: int, summary: IndexSummary | None = None
    ) -> RecordIndex:
        """A queue's index of a sealed segment, from its footer, or rebuilt from its records: with a
        summary, damaged ones have entries in it."""
        key = segment, queue_id, summary
        index = self._indexes.get(key)
        if index is None:
            index = self._indexes[key] = self._table_index(segment, queue_id, summary)
            while len(self._indexes) > INDEXES_KEPT:
                self._indexes.popitem(last=False)
        return index

    def _table_index(
        self, segment: int, queue_id: int, summary: IndexSummary | None
    ) -> RecordIndex:
        """Reads it from the segment's table; two threads may read the same table twice."""
        table = self._tables.get(segment)
        if table is None:
            footer = self.footer(segment)
            if footer is None:
                table = self.rebuilt(segment)
            else:
                table = IndexTable(footer.body)
                self._keep(segment, table)
        if isinstance(table, IndexTable):
            index = table.index(queue_id)
            if len(index):
                return index
            table = self.rebuilt(segment)
        return table.index(queue_id, summary)

    def _keep(self, segment: int, table: _Table) -> None:
        """Caches a table, and drops the oldest beyond the limits."""
        with self._lock:
            tables = self._tables
            tables[segment] = table
            tables.move_to_end(segment)
            size_bytes = sum(one.size_bytes for one in tables.values())
            while len(tables) > TABLES_KEPT or (size_bytes > TABLES_BYTES and len(tables) > 1):
                size_bytes -= tables.popitem(last=False)[1].size_bytes

    def forget(self, segment: int) -> None:
        """Closes the file of a segment that is about to be removed."""
        self._close(segment)
        self.cache.forget(segment)
        self.unreadable.pop(segment, None)
        self.damaged.pop(segment, None)

    def close(self) -> None:
        for segment in list(self._files):
            self._close(segment)

    def _close(self, segment: int) -> None:
        with self._lock:
            file = self._files.pop(segment, None)
            if file is not None:
                file.close()

    def _salvaged(self, segment: int, offset: int, size: int | None) -> bytes:
        """Reads with zeros for what can't be read; to the end, if no size is given."""
        try:
            file = self._file(segment)
            data, error = salvage(file, offset, file.size() if size is None else size)
        except FileNotFoundError:
            raise
        except OSError as opening:
            data, error = bytes(size or 0), opening
        if error is not None and segment not in self.unreadable:
            self.unreadable[segment] = reason_of(error)
            logger.error(
                "%s: can't be read in places: %s; what is there is left out and kept",
                segment_name(segment), self.unreadable[segment],
            )  # fmt: skip
        return data

    def _size(self, segment: int) -> int:
        try:
            return self._file(segment).size()
        except FileNotFoundError:
            raise
        except OSError:
            return 0

    def _file(self, segment: int) -> File:
        file = self._files.get(segment)
        if file is None:
            file = self._disk.open(segment_name(segment))
            self._files[segment] = file
            while len(self._files) > FILES_OPEN:
                self._files.popitem(last=False)[1].close()
        else:
            self._files.move_to_end(segment)
        return file

    def footer(self, segment: int) -> Record | None:
        """The record at a segment's end with its indexes; None if there is no valid one."""
        with self._lock:
            size = self._size(segment)
        if size < SEALED_BYTES:
            return None
        at = size - SEALED_BYTES
        sealed = read_record(segment, self.read(segment, at, SEALED_BYTES), 0, at)
        if sealed is None or sealed.kind != Kind.SEALED:
            return None
        start = small_records.read_number(sealed.body)
        return read_record(segment, self.read(segment, start, at - start), 0, start)

    def rebuilt(self, segment: int) -> RebuiltTable:
        """The indexes rebuilt from the segment's records."""
        table = self._tables.get(segment)
        if not isinstance(table, RebuiltTable):
            logger.warning("%s: its index is missing and made anew", segment_name(segment))
            with self._lock:
                data = memoryview(self._salvaged(segment, 0, None))
            table = RebuiltTable(segment, data, is_whole=segment not in self.unreadable)
            self._keep(segment, table)
        return table


_Table = IndexTable | RebuiltTable


def _neighbours(locations: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Groups records, by offset and size, that lie close enough to be read with one call."""
    group: list[tuple[int, int]] = []
    start = wanted = 0
    for offset, size in locations:
        if group and (wanted + size) * _SPARSE < offset + size - start:
            yield group
            group, wanted = [], 0
        if not group:
            start = offset
        group.append((offset, size))
        wanted += size
    if group:
        yield group


def lost_records(before: int, after: int, count: int) -> Iterator[tuple[int, int, int]]:
    """Index entries for `count` messages that were lost between two records, as first number, last
    number and count of each. Sequence numbers begin anew with each process, far above the former
    ones: an index entry can't hold such an interval, and need not, since nothing else lies in
    it."""
    first = before + 1
    while count > 0:
        held = min(count, INTERVAL_MAX)
        last = max(first, min(after - 1, first + INTERVAL_MAX))
        yield first, last, held
        first, count = last + 1, count - held
