"""A message store in memory, which is empty at each start."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

from ..message.batch import Batch, MemoryUsage
from ..message.queue_entry import MessageRange, PagedOut, QueueEntry
from ..slices import Steps
from .port import (
    Batches,
    Browser,
    ManySettled,
    PageIn,
    QueueIdentity,
    Ranges,
    Recovered,
    Store,
    StreamRecords,
)
from .progress import CommitProgress
from .record_cache import RecordCache
from .write_metrics import WriteMetrics


class MemoryStore(Store):
    """Commits at once and keeps every batch resident.

    Sequence numbers begin at the time of the start in nanoseconds: above all that an earlier
    process reserved. Receivers identify messages by them and would drop a repeated one as a
    duplicate.
    """

    def __init__(self, first_sequence: int | None = None) -> None:
        super().__init__(time.time_ns() if first_sequence is None else first_sequence)
        self.progress = CommitProgress()
        self.batches = Batches()
        self.ranges = Ranges()
        self.page_in = PageIn()
        self.browser = Browser()
        self.records = StreamRecords()
        self.store_id = b""
        self.recovered = Recovered()
        self.memory = MemoryUsage()
        self.write_metrics = WriteMetrics()
        self.cache = RecordCache()
        self.definitions = {}

    def append(
        self,
        batch: Batch,
        entries: Sequence[tuple[QueueIdentity, QueueEntry]],
        offsets: Sequence[tuple[int, int]] = (),
    ) -> int:
        return 0

    def settle(self, queue: QueueIdentity, messages: MessageRange) -> None:
        """Does nothing: nothing was written."""

    def persistent_count(self, queue: QueueIdentity) -> int:
        return 0

    def many_settled(self) -> ManySettled:
        return ManySettled()

    def discard(self, queue: QueueIdentity, paged_out: PagedOut) -> Steps:
        raise AssertionError("paging is not supported by the in-memory store")

    def delivered(self, queue: QueueIdentity, sequence: int) -> int:
        return 0

    def drop(self, queue: QueueIdentity) -> Iterator[None]:
        return iter(())

    def define(self, key: bytes, value: bytes | None) -> int:
        if value is None:
            self.definitions.pop(key, None)
        else:
            self.definitions[key] = value
        return 0

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def barrier(self) -> int:
        return 0

    def request(self) -> None:
        """Does nothing: no commit is pending."""

    def turned(self) -> int | None:
        return None
