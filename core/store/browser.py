"""Browses paged-out ranges: reads messages from a position on and leaves the ranges as they are."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from ..message.batch import MessageRange, PagedOut, QueueEntry
from . import read_size
from .entry_loader import EntryLoader, LoadedRecord, share_of
from .port import Browsed
from .record_index import IndexEntry, RecordIndex
from .segment_part import SegmentPart, location_of
from .work import Worker

logger = logging.getLogger(__name__)


class Browser:
    """Reads paged-out messages for the cursors of streams."""

    def __init__(self, loader: EntryLoader, worker: Worker) -> None:
        self._loader = loader
        self._worker = worker

    def browse(
        self, paged_out: PagedOut, position: int, ready: Callable[[Browsed | None], None]
    ) -> None:
        location = location_of(paged_out)
        part = location.part
        low, high, open_index = location.low, location.high, part.index
        open_places = None if open_index is None else _locations(open_index, low, high, position)

        def job() -> _BrowseRead | None:
            try:
                if open_index is not None and open_places is not None:
                    index, (start, ordinals) = open_index, open_places
                else:
                    index = self._loader.read_index(part)
                    start, ordinals = _locations(index, low, high, position)
                index_entries = read_size.limited(index, ordinals)
                return _BrowseRead(start, index_entries, self._loader.read(part, index_entries))
            except FileNotFoundError:
                return None  # All of it was moved or dropped long before its turn came.

        def done(browse_read: _BrowseRead | None) -> None:
            if (
                not paged_out.count
                or paged_out.location is not location
                or not part.has_paged_out(paged_out)
            ):
                ready(None)
            elif browse_read is None or not browse_read.index_entries:
                logger.error("%s: an index and what it leads to are damaged", part.segment.name)
                ready(Browsed([], paged_out.count))
            else:
                ready(self._browsed(part, position, browse_read))

        self._worker.run(job, done)

    def _browsed(self, part: SegmentPart, position: int, browse_read: _BrowseRead) -> Browsed:
        ranges: list[tuple[int, MessageRange]] = []
        start = browse_read.start
        for _, index_entry, decoded in browse_read.read:
            found = None if decoded is None else share_of(part, index_entry, decoded)
            if decoded is not None and found is not None:
                entry = QueueEntry(
                    self._loader.shared_batch(part, index_entry, decoded.batch), found[0]
                )
                skipped = max(0, position - start)
                ranges.append((start + skipped, MessageRange(entry, skipped, entry.count)))
            start += index_entry.count
        return Browsed(ranges, start)


class _BrowseRead(NamedTuple):
    """The records read of a range; `start` is the position of the first one's first message."""

    start: int
    index_entries: list[tuple[int, IndexEntry]]
    read: list[LoadedRecord]


def _locations(index: RecordIndex, low: int, high: int, position: int) -> tuple[int, list[int]]:
    """Finds the record that holds a range's message at `position`: the position of that record's
    first message, and the ordinals of it and those behind it. No ordinals if the index is too
    short."""
    ends = index.ends()
    high = min(high, len(ends))
    if low >= high:
        return position, []
    before = ends[low - 1] if low else 0
    ordinal = bisect_right(ends, before + position, low, high)
    start = (ends[ordinal - 1] if ordinal else 0) - before
    return start, list(range(ordinal, min(high, ordinal + read_size.CHUNK_RECORDS)))
