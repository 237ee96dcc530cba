"""Paging: messages that are on disk and not in memory, and how they leave and enter it."""

from __future__ import annotations

from collections.abc import Mapping

from ..clock import Clock
from .batch_eviction import BatchEviction
from .browser import Browser
from .disk import Disk
from .entry_loader import EntryLoader
from .page_in_scheduler import PageInScheduler
from .paged_out_ranges import PagedOutRanges
from .reader import Reader
from .recovered_ranges import RecoveredRanges
from .work import Worker
from .writer import Writer


class Paging:
    """The parts of a store that read the log while it is open; see `EntryLoader` for the marks."""

    def __init__(
        self,
        disk: Disk,
        worker: Worker,
        writer: Writer,
        clock: Clock,
        old_marks: Mapping[int, int],
        old_priority_marks: Mapping[tuple[int, int], int],
    ) -> None:
        self.reader = Reader(disk)
        self.loader = EntryLoader(self.reader, clock, old_marks, old_priority_marks)
        self.batches = BatchEviction(disk, worker, writer, self.reader)
        self.ranges = PagedOutRanges(self.loader, worker, writer)
        self.recovered = RecoveredRanges(self.loader)
        self.page_in = PageInScheduler(self.loader, worker)
        self.browser = Browser(self.loader, worker)

    def close(self) -> None:
        """Closes the files."""
        self.reader.close()
