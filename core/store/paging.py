"""Paging: the parts of a store that move messages between memory and disk."""

from __future__ import annotations

from ..clock import Clock
from ..message.batch import MemoryUsage
from .batch_eviction import BatchEviction
from .browser import LogBrowser
from .disk import Disk
from .entry_loader import EntryLoader
from .page_in_scheduler import PageInScheduler
from .paged_out_ranges import PagedOutRanges
from .reader import RecordReader
from .stored_marks import StoredMarks
from .stream_records import LogRecords
from .work import Worker
from .writer import Writer


class Paging:
    """The parts of a store that read the log while it is open."""

    def __init__(
        self,
        disk: Disk,
        worker: Worker,
        writer: Writer,
        clock: Clock,
        marks: StoredMarks,
        memory: MemoryUsage,
    ) -> None:
        self.reader = RecordReader(disk)
        self.loader = EntryLoader(self.reader, clock, marks, memory)
        self.batches = BatchEviction(disk, worker, writer, self.reader)
        self.ranges = PagedOutRanges(self.loader, worker, writer)
        self.page_in = PageInScheduler(self.loader, worker, clock)
        self.browser = LogBrowser(self.loader, worker)
        self.records = LogRecords(self.loader, worker)

    def close(self) -> None:
        """Closes the files."""
        self.reader.close()
