"""Reads segments: records by their location, indexes by their queue.

A record that can't be read is logged and left out; nothing is deleted because of it. The files used
last stay open, up to a limit.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import Final

from . import small_records
from .codec import MessageRecord
from .disk import Disk, File
from .rebuilt import RebuiltTable
from .record import HEAD_BYTES, Record, RecordKind, read_record
from .record_cache import RecordCache
from .record_index import INTERVAL_MAX, IndexEntry, IndexSummary, RecordIndex
from .salvage import reason_of, salvage
from .segment import segment_name
from .small_records import IndexTable

logger = logging.getLogger(__name__)

FILES_OPEN: Final = 4
INDEXES_KEPT: Final = 8
TABLES_KEPT, TABLES_BYTES = 8, 64 * 1024 * 1024
"""Limits for cached tables of indexes; the one read last stays whatever its size."""
_READ_BYTES: Final = 1024 * 1024
"""About the bytes that are read with one call: others wait for it."""
_SPARSE: Final = 4
"""Records are read with one call if they are at least this part of the bytes between them."""
SEALED_BYTES: Final = HEAD_BYTES + 8


class DamagedRecord(Exception):
    """Raised for a location in a segment that has no valid record."""

    def __init__(self, segment: int, reason: str) -> None:
        super().__init__(f"{segment_name(segment)}: {reason}")
        self.segment = segment


class RecordReader:
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
        """Reads message records by offset and size, from the cache or the file; records close to
        each other with one call. Damaged ones are left out. Raises `FileNotFoundError`."""
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
                if read is None or read.kind != RecordKind.MESSAGES:
                    continue
                record = found[offset, size] = MessageRecord(read.body, read.sequence)
                self.cache.add(segment, offset, record)
        return found

    def raw_records(
        self, segment: int, locations: Iterable[tuple[int, int]]
    ) -> dict[int, memoryview]:
        """Reads the bytes at offsets and sizes, without looking at them; records close to each
        other with one call. They keep twice their size in memory at most. Raises
        `FileNotFoundError`."""
        found: dict[int, memoryview] = {}
        for group in _neighbours(sorted(locations)):
            start = group[0][0]
            region = self.read(segment, start, sum(group[-1]) - start)
            is_dense = 2 * sum(size for _, size in group) >= len(region)
            for offset, size in group:
                data = region[offset - start : offset - start + size]
                found[offset] = data if is_dense else memoryview(bytes(data))
        return found

    def record(self, segment: int, offset: int, size: int) -> MessageRecord:
        """Reads a message record. Raises `DamagedRecord` or `FileNotFoundError`."""
        found = self.records(segment, ((offset, size),)).get((offset, size))
        if found is None:
            reason = self._note(segment, f"no sound record at offset {offset}")
            raise DamagedRecord(segment, reason)
        return found

    def note_damage(self, segment: int, index_entry: IndexEntry) -> str:
        """Notes that a record is damaged or lost; returns the reason for log lines."""
        if index_entry.is_lost:
            return self._note(segment, "a record is missing")
        return self._note(segment, f"no sound record at offset {index_entry.offset}")

    def _note(self, segment: int, reason: str) -> str:
        self.damaged.setdefault(segment, reason)
        return reason

    def index(
        self, segment: int, queue_id: int, summary: IndexSummary | None = None
    ) -> RecordIndex:
        """Returns a queue's index of a sealed segment, from its footer or rebuilt from its records;
        with a summary, it has entries for damaged records."""
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
        """Returns an index from the segment's table; two threads may both read the same table."""
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
        """Reads bytes, with zeros for those that can't be read; without a size, to the end."""
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
                "%s: partly unreadable: %s; all other data is served, and the file is retained",
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
        """Returns the record with the indexes at a segment's end; None if there is no valid one."""
        with self._lock:
            size = self._size(segment)
        if size < SEALED_BYTES:
            return None
        at = size - SEALED_BYTES
        sealed = read_record(segment, self.read(segment, at, SEALED_BYTES), 0, at)
        if sealed is None or sealed.kind != RecordKind.SEALED:
            return None
        start = small_records.read_number(sealed.body)
        return read_record(segment, self.read(segment, start, at - start), 0, start)

    def rebuilt(self, segment: int) -> RebuiltTable:
        """Returns the indexes rebuilt from the segment's records."""
        table = self._tables.get(segment)
        if not isinstance(table, RebuiltTable):
            logger.warning("%s: its index is missing and is rebuilt", segment_name(segment))
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
        if group and (
            (wanted + size) * _SPARSE < offset + size - start or offset - start > _READ_BYTES
        ):
            yield group
            group, wanted = [], 0
        if not group:
            start = offset
        group.append((offset, size))
        wanted += size
    if group:
        yield group


def lost_records(before: int, after: int, count: int) -> Iterator[tuple[int, int, int]]:
    """Yields index entries for `count` messages that were lost between two records, as first
    number, last number and count of each. The sequence numbers of a process are far above those of
    the one before. An index entry can't represent such an interval, and need not: nothing else is
    in it."""
    first = before + 1
    while count > 0:
        in_entry = min(count, INTERVAL_MAX)
        last = max(first, min(after - 1, first + INTERVAL_MAX))
        yield first, last, in_entry
        first, count = last + 1, count - in_entry
