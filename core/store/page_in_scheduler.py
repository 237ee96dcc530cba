"""Pages messages in: reads the front of paged-out ranges into memory.

All requests of a turn are read with one job, since the records of queues with few messages are
close to each other. Ranges that no consumer waits for are read in the background: one chunk at a
time, when nothing else is requested.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from ..clock import Clock
from ..message.queue_entry import MessageRange, PagedOut
from ..slices import drain, for_each, run_slice
from . import read_size
from .entry_loader import EntryLoader, LoadedRecord
from .port import PageIn
from .record_index import IndexEntry, RecordIndex
from .segment import Segment
from .segment_part import PagedOutLocation, SegmentPart, location_of
from .work import Worker

logger = logging.getLogger(__name__)

DELIVERY_SLICES: Final = 3
"""Slices of a turn for delivering ranges to their queues."""
PAGE_INS_AT_ONCE: Final = 2


class PageInScheduler(PageIn):
    """Pages in what queues request, urgent requests first."""

    def __init__(self, loader: EntryLoader, worker: Worker, clock: Clock) -> None:
        self._loader = loader
        self._worker = worker
        self._clock = clock
        self._urgent: deque[_Request] = deque()
        self._background: OrderedDict[PagedOut, _Request] = OrderedDict()
        """Requests that no consumer waits for."""
        self._reading_background: dict[PagedOut, bool] = {}
        """Background requests that are being read, and whether a consumer waits for them by now."""
        self._paging_in = 0
        self._is_gathering = False
        self._found: deque[_PagedIn] = deque()
        """What was read and is not delivered yet."""
        self._is_delivering = False

    def request(
        self,
        paged_out: PagedOut,
        ready: Callable[[Sequence[MessageRange]], None],
        *,
        is_urgent: bool = True,
    ) -> None:
        location = location_of(paged_out)
        request = _Request(paged_out, location, ready)
        if is_urgent:
            self._urgent.append(request)
        else:
            self._background[paged_out] = request
        self._gather()

    def hurry(self, paged_out: PagedOut) -> None:
        request = self._background.pop(paged_out, None)
        if request is not None:
            self._urgent.append(request)
            self._gather()
        elif paged_out in self._reading_background:
            self._reading_background[paged_out] = True

    def _gather(self) -> None:
        """Schedules a job for after this turn, which may request more."""
        if self._paging_in < PAGE_INS_AT_ONCE and not self._is_gathering:
            self._is_gathering = True
            self._worker.post(self._page_in_next)

    def _page_in_next(self) -> None:
        """Starts one job for the requests so far."""
        self._is_gathering = False
        is_urgent = bool(self._urgent)
        if self._paging_in >= PAGE_INS_AT_ONCE or not (is_urgent or self._background):
            return
        if self._paging_in and not is_urgent:
            return  # It is called again when the job is done.
        selections = self._next_requests(is_urgent=is_urgent)
        self._paging_in += 1

        if not is_urgent:
            self._reading_background = dict.fromkeys(
                (selection.request.paged_out for selection in selections), False
            )

        def done(found: list[_PagedIn]) -> None:
            self._paging_in -= 1
            self._requeue(
                [selection.request for selection in selections[len(found) :]], is_urgent=is_urgent
            )
            self._found += found
            self._page_in_next()
            if not self._is_delivering:
                self._deliver()

        self._worker.run(lambda: self._read_requested(selections), done)

    def _requeue(self, rest: Sequence[_Request], *, is_urgent: bool) -> None:
        """Puts the requests that did not fit into a job back at the front."""
        hurried: dict[PagedOut, bool] = {}
        if not is_urgent:
            hurried, self._reading_background = self._reading_background, {}
        for request in reversed(rest):
            if is_urgent or hurried[request.paged_out]:
                self._urgent.appendleft(request)
            else:
                self._background[request.paged_out] = request
                self._background.move_to_end(request.paged_out, last=False)

    def _next_requests(self, *, is_urgent: bool) -> list[_Selection]:
        """Takes as many urgent or background requests as fit into a job."""
        selections: list[_Selection] = []
        room = read_size.JOB_RECORDS
        waiting = self._urgent if is_urgent else self._background
        while waiting and room > 0 and len(selections) < read_size.CHUNK_BATCHES:
            request = (
                self._urgent.popleft() if is_urgent else self._background.popitem(last=False)[1]
            )
            selections.append(_select(request))
            room -= len(selections[-1].ordinals)
        return selections

    def _read_requested(self, requested: Sequence[_Selection]) -> list[_PagedIn]:
        """Reads as many of the selections as fit into a chunk, at least one."""
        found: list[_PagedIn] = []
        locations: dict[Segment, set[tuple[int, int]]] = {}
        size_bytes = 0
        for selection in requested:
            chosen = self._choose_records(selection)
            known = locations.setdefault(selection.part.segment, set())
            new = [
                index_entry.location
                for _, index_entry in chosen.index_entries
                if index_entry.location not in known
            ]
            size_bytes += sum(size for _, size in new)
            if found and size_bytes > read_size.CHUNK_BYTES:
                break
            known.update(new)
            found.append(chosen)
        for segment, chosen_here in locations.items():
            here = [one for one in found if one.selection.part.segment is segment]
            try:
                records = self._loader.records(segment, chosen_here)
            except FileNotFoundError as error:
                for one in here:
                    one.missing = error
                continue
            for one in here:
                one.read = self._loader.select(segment.number, one.index_entries, records)
        return found

    def _choose_records(self, selection: _Selection) -> _PagedIn:
        part = selection.part
        if not selection.ordinals:
            return _PagedIn(selection, [])
        try:
            index = selection.open_index or self._loader.read_index(part)
        except FileNotFoundError as error:
            return _PagedIn(selection, [], missing=error)
        records = len(index)
        ordinals = selection.ordinals
        if ordinals[-1] >= records:
            ordinals = [at for at in ordinals if at < records]
        index_entries = read_size.limited(index, ordinals)
        if not index_entries:
            logger.error("%s: an index and its records are damaged", part.segment.name)
        return _PagedIn(selection, index_entries)

    def _deliver(self) -> None:
        """Delivers what was read, some in each turn, whichever job has read it."""
        steps = for_each(drain(self._found), self._complete)
        self._is_delivering = bool(run_slice(steps, self._clock, DELIVERY_SLICES))
        if self._is_delivering:
            self._worker.post(self._deliver)

    def _complete(self, found: _PagedIn) -> None:
        request, part, high, _, _ = found.selection
        paged_out, location, ready = request
        if not request.is_there or not part.has_paged_out(paged_out):
            ready(())  # The range was discarded or moved meanwhile.
            return
        if found.missing is not None:
            self._worker.failed(found.missing)
            return
        ranges = self._loader.make_entries(part, found.read)
        location.low = found.index_entries[-1][0] + 1 if found.index_entries else high
        for messages in ranges:
            paged_out.count -= messages.high - messages.low
        self._finish(paged_out, location)
        ready(ranges)

    def _finish(self, paged_out: PagedOut, location: PagedOutLocation) -> None:
        part = location.part
        while location.low < location.high and part.is_dead(location.low):
            location.low += 1
        if location.low >= location.high:
            paged_out.lost += paged_out.count
            paged_out.count = 0
            part.remove_paged_out(paged_out)


class _Request(NamedTuple):
    """A request for the front of a range."""

    paged_out: PagedOut
    location: PagedOutLocation
    ready: Callable[[Sequence[MessageRange]], None]

    @property
    def is_there(self) -> bool:
        """Whether the range has not been discarded since."""
        return self.paged_out.count > 0 and self.paged_out.location is self.location


class _Selection(NamedTuple):
    """The records of a part to be read for a request, by ordinal."""

    request: _Request
    part: SegmentPart
    high: int
    ordinals: Sequence[int]
    open_index: RecordIndex | None


def _select(request: _Request) -> _Selection:
    location = request.location
    part, high = location.part, location.high
    low = max(location.low, part.front) if request.is_there else high
    ordinals: Sequence[int] = range(low, min(high, low + read_size.CHUNK_RECORDS))
    if part.dead:
        living = (at for at in range(low, high) if at not in part.dead)
        ordinals = list(islice(living, read_size.CHUNK_RECORDS))
    return _Selection(request, part, high, ordinals, part.index)


@dataclass(slots=True)
class _PagedIn:
    """The records read for a request; `missing` is set if the segment's file is missing."""

    selection: _Selection
    index_entries: list[tuple[int, IndexEntry]]
    read: list[LoadedRecord] = field(default_factory=list)
    missing: FileNotFoundError | None = None
