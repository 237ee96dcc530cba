"""Paged-out ranges: makes, splits, sizes and discards them.

A paged-out range of a queue (`PagedOut`) is an interval of the ordinals of a segment part. Work
that needs the part's index yields a `Pause` while a worker reads it.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator, Iterator
from typing import Final, TypeVar

from ..message.queue_entry import MessageRange, PagedOut, QueueEntry
from ..slices import Pause
from .entry_loader import EntryLoader
from .port import Ranges, Split
from .record_index import RecordIndex
from .recovered_ranges import add_range
from .segment_part import PagedOutLocation, SegmentPart, location_of
from .split_entries import is_in_log, record_range
from .work import Worker
from .writer import Writer

Found = TypeVar("Found")

DISCARDED_AT_ONCE: Final = 8
"""Records that one step discards."""


class PagedOutRanges(Ranges):
    """The paged-out ranges of a store."""

    def __init__(self, loader: EntryLoader, worker: Worker, writer: Writer) -> None:
        self._loader = loader
        self._worker = worker
        self._writer = writer

    def page_out(
        self, messages: MessageRange, before: PagedOut | None, *, in_order: bool = False
    ) -> PagedOut | None:
        entry = messages.entry
        where = record_range(entry) if messages.count == entry.count else None
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
            part.detach(ordinal)
        if before is not None and isinstance(before.location, PagedOutLocation):
            location = before.location
            if location.part is part and location.high == low:
                location.high = high
                before.count += messages.count
                return before
        return add_range(part, low, high, messages.count)

    def _has_written(self, part: SegmentPart, low: int, high: int) -> bool:
        """Whether these records are written; an index in memory may be ahead of the disk."""
        if part.index is None:
            return True
        return self._writer.has_written(part.segment.number, part.index[high - 1].offset)

    def discard(self, paged_out: PagedOut) -> Iterator[list[int] | Pause]:
        """Settles all of a range, with messages of it that are being read, in steps. Each step
        yields pairs of first and last sequence number of the records it has settled, or a `Pause`.
        """
        location = location_of(paged_out)
        paged_out.location = PagedOutLocation(
            location.part, location.low, location.high, location.at
        )
        return self._discard(paged_out)

    def _discard(self, paged_out: PagedOut) -> Iterator[list[int] | Pause]:
        part: SegmentPart | None = None
        index: RecordIndex | None = None
        while paged_out.count:
            location = location_of(paged_out)
            if not location.part.has_paged_out(paged_out):
                paged_out.count = 0  # The queue has ended meanwhile.
                return
            if location.part is not part:  # The first step, or it has been compacted meanwhile.
                part = location.part
                index = part.index
                if index is None:
                    index = yield from self._look_up(part, _all_of)
                    continue
            if index is None:
                self._report_missing(part)
                return
            if location.low >= location.high:
                # An index is damaged: the records of these messages are unknown.
                part.snapshot = None
                part.count_settled(paged_out.count)
                paged_out.count = 0
            else:
                yield _discard_some(paged_out, location, index)
            if not paged_out.count and part.has_paged_out(paged_out):
                part.remove_paged_out(paged_out)

    def split(
        self, paged_out: PagedOut, size_bytes: int, max_messages: int
    ) -> Generator[Pause, None, Split | None]:
        location = location_of(paged_out)
        while location.part.has_paged_out(paged_out):
            part, low = location.part, location.low
            look = _front_of(low, location.high, size_bytes, max_messages)
            front = yield from self._look_up(part, look)
            if not part.has_paged_out(paged_out) or location.low != low:
                continue  # It has been compacted meanwhile, or its queue has ended.
            if front is None:
                self._report_missing(part)
                return None
            high, count, size = front
            if not low < high < location.high:
                return None
            location.low = high
            paged_out.count -= count
            return Split(add_range(part, low, high, count), size)
        return None

    def size_of(self, entry: QueueEntry) -> int:
        where = record_range(entry)
        index = None if where is None else where[0].index
        if where is None or index is None:
            return entry.batch.size_bytes * entry.count // entry.batch.count
        return index.size_bytes(where[1], where[2])

    def weigh(self, paged_out: PagedOut) -> Generator[Pause, None, int]:
        location = location_of(paged_out)
        while location.part.has_paged_out(paged_out):
            part = location.part
            size = yield from self._look_up(part, _size_of(location.low, location.high))
            if size is not None:
                return size
            if part.has_paged_out(paged_out):
                self._report_missing(part)
                break
        return 0

    def _look_up(
        self, part: SegmentPart, look: Callable[[RecordIndex], Found]
    ) -> Generator[Pause, None, Found | None]:
        """Calls `look` with a part's index on a worker's thread; the index may be on disk only, and
        long. None if the file has been removed meanwhile."""
        open_index = part.index

        def job() -> Found | None:
            try:
                return look(open_index or self._loader.read_index(part))
            except FileNotFoundError:
                return None

        found = yield from self._worker.awaited(job)
        return found

    def _report_missing(self, part: SegmentPart) -> None:
        """Fails the store: the file of a part with unsettled messages is missing."""
        self._worker.failed(FileNotFoundError(errno.ENOENT, "file not found", part.segment.name))


def _all_of(index: RecordIndex) -> RecordIndex:
    return index


def _size_of(low: int, high: int) -> Callable[[RecordIndex], int]:
    return lambda index: index.size_bytes(low, high)


def _front_of(
    low: int, high: int, size_bytes: int, max_messages: int
) -> Callable[[RecordIndex], tuple[int, int, int]]:
    """Returns a function that finds the first records from `low` on that have that size, or as many
    messages at most. It returns the ordinal behind them, the number of messages and the size;
    `high` if there are no more."""

    def look(index: RecordIndex) -> tuple[int, int, int]:
        size = count = 0
        for at in range(low, min(high - 1, len(index))):
            index_entry = index[at]
            if count + index_entry.count > max_messages:
                return at, count, size
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
    # Among compacted records there may be others that are in memory.
    known = [
        at
        for at in range(low, min(location.low, len(index)))
        if not part.is_dead(at) and at not in part.entries
    ]
    index_entries = [index[at] for at in known]
    for at, index_entry in zip(known, index_entries, strict=True):
        count = index_entry.count - int.from_bytes(part.partial.get(at, b""), "little").bit_count()
        paged_out.count -= count
        part.mark_dead(at)
        part.count_settled(count, at)
    if index_entries and not part.segment.is_moved:
        return [index_entries[0].first, index_entries[-1].last]
    return [
        number for index_entry in index_entries for number in (index_entry.first, index_entry.last)
    ]
