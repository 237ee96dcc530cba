"""Browses paged-out ranges: reads messages from a position on without paging them in."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from ..message.queue_entry import MessageRange, PagedOut, QueueEntry
from . import read_size
from .entry_loader import EntryLoader, LoadedRecord, share_of
from .port import Browsed, Browser
from .record_index import IndexEntry, RecordIndex
from .segment_part import SegmentPart, location_of
from .work import Worker

logger = logging.getLogger(__name__)


class LogBrowser(Browser):
    """Reads paged-out messages of the log, for readers of streams and for those who only look."""

    def __init__(self, loader: EntryLoader, worker: Worker) -> None:
        self._loader = loader
        self._worker = worker

    def browse(
        self,
        paged_out: PagedOut,
        position: int,
        ready: Callable[[Browsed | None], None],
        *,
        unsettled: bool = False,
    ) -> None:
        location = location_of(paged_out)
        part = location.part
        low, high, open_index = location.low, location.high, part.index
        find = _unsettled_locations if unsettled and part.has_gaps else _locations
        open_places = None if open_index is None else find(part, open_index, low, high, position)

        def job() -> _BrowseRead | None:
            try:
                if open_index is not None and open_places is not None:
                    index, (start, ordinals) = open_index, open_places
                else:
                    index = self._loader.read_index(part)
                    start, ordinals = find(part, index, low, high, position)
                index_entries = read_size.limited(index, ordinals)
                return _BrowseRead(start, index_entries, self._loader.read(part, index_entries))
            except FileNotFoundError:
                return None  # All of it was moved or dropped before the job ran.

        def done(browse_read: _BrowseRead | None) -> None:
            if (
                not paged_out.count
                or paged_out.location is not location
                or not part.has_paged_out(paged_out)
            ):
                ready(None)
            elif browse_read is None or not browse_read.index_entries:
                logger.error("%s: an index and its records are damaged", part.segment.name)
                ready(Browsed([], paged_out.count))
            else:
                look = self._unsettled if unsettled else self._browsed
                ready(look(part, position, browse_read))

        self._worker.run(job, done)

    def _browsed(self, part: SegmentPart, position: int, browse_read: _BrowseRead) -> Browsed:
        ranges: list[tuple[int, MessageRange]] = []
        start = browse_read.start
        for _, index_entry, decoded in browse_read.read:
            found = None if decoded is None else share_of(part, index_entry, decoded)
            if decoded is not None and found is not None:
                batch = self._loader.shared_batch(part, index_entry, decoded)
                entry = QueueEntry(batch, found[0])
                skipped = max(0, position - start)
                ranges.append((start + skipped, MessageRange(entry, skipped, entry.count)))
            start += index_entry.count
        return Browsed(ranges, start)

    def _unsettled(self, part: SegmentPart, position: int, browse_read: _BrowseRead) -> Browsed:
        ranges: list[tuple[int, MessageRange]] = []
        start = browse_read.start
        for read in browse_read.read:
            at = start
            for messages in self._loader.unsettled_messages(part, read):
                count, skipped = messages.count, max(0, position - at)
                if skipped < count:
                    messages.low += skipped
                    ranges.append((at + skipped, messages))
                at += count
            start += part.unsettled_of(read.ordinal, read.index_entry.count)
        return Browsed(ranges, start)


class _BrowseRead(NamedTuple):
    """The records read of a range; `start` is the position of the first one's first message."""

    start: int
    index_entries: list[tuple[int, IndexEntry]]
    read: list[LoadedRecord]


def _locations(
    part: SegmentPart, index: RecordIndex, low: int, high: int, position: int
) -> tuple[int, list[int]]:
    """Finds the record with a range's message at `position`: returns the position of that record's
    first message, and the ordinals of it and of the next records. No ordinals if the index is too
    short."""
    found = index.find(low, high, position)
    if found is None:
        return position, []
    ordinal, start = found
    return start, list(range(ordinal, min(high, len(index), ordinal + read_size.CHUNK_RECORDS)))


def _unsettled_locations(
    part: SegmentPart, index: RecordIndex, low: int, high: int, position: int
) -> tuple[int, list[int]]:
    """As `_locations`, where settled messages have no position."""
    start = 0
    ordinals: list[int] = []
    for ordinal in range(low, min(high, len(index))):
        count = part.unsettled_of(ordinal, index[ordinal].count)
        if ordinals or start + count > position:
            ordinals += [ordinal] if count else []
            if len(ordinals) == read_size.CHUNK_RECORDS:
                break
        else:
            start += count
    return start, ordinals
