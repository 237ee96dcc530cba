"""A message store whose commits and reads are completed by the test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

from warrenmq.core.message.batch import Batch
from warrenmq.core.message.queue_entry import QueueEntry
from warrenmq.core.store.memory import MemoryStore
from warrenmq.core.store.port import Batches, QueueIdentity


class ManualBatches(Batches):
    """Batches that leave memory at once; `reads` are pending until the test calls `arrive`."""

    def __init__(self) -> None:
        self.written: dict[Batch, Batch] = {}
        self.reads: list[tuple[Batch, Callable[[], None]]] = []

    def fetch(self, batch: Batch, ready: Callable[[], None]) -> None:
        self.reads.append((batch, ready))

    def evict(self, batch: Batch) -> bool:
        if batch.resident:
            batch.body_bytes(0)  # Sizes may be needed later: noted now.
            batch.evict()
        return True


class ManualStore(MemoryStore):
    """A store in memory that behaves like a slow disk: commits, refusals and reads complete when
    the test calls `commit`, `refuse` and `arrive`.

    While it is `paging`, each batch is evicted as soon as it is written.
    """

    def __init__(self, first_sequence: int | None = None) -> None:
        super().__init__(first_sequence)
        self.batches: ManualBatches = ManualBatches()
        self._appended = 0
        self.paging = True

    def append(
        self,
        batch: Batch,
        entries: Sequence[tuple[QueueIdentity, QueueEntry]],
        offsets: Sequence[tuple[int, int]] = (),
    ) -> int:
        self.batches.written[batch] = copy(batch)
        if self.paging:
            self.batches.evict(batch)
        return self.barrier()

    def define(self, key: bytes, value: bytes | None) -> int:
        super().define(key, value)
        return self.barrier()

    def barrier(self) -> int:
        self._appended += 1
        return self._appended

    def commit(self) -> None:
        """Commits all that was appended."""
        self.progress.report(self._appended, 0, 0)

    def refuse(self) -> None:
        """Refuses all that was appended, as a full disk does."""
        self.progress.report(0, self._appended, 0)

    def evict_all(self) -> None:
        """Evicts every batch that was written."""
        for batch in self.batches.written:
            self.batches.evict(batch)

    @property
    def reads(self) -> int:
        """The number of pending reads."""
        return len(self.batches.reads)

    def take_reads(self) -> list[tuple[Batch, Callable[[], None]]]:
        """Takes the pending reads away; the caller completes them."""
        reads, self.batches.reads = self.batches.reads, []
        return reads

    def arrive(self) -> int:
        """Completes all pending reads; returns how many there were."""
        reads = self.take_reads()
        for batch, _ in reads:
            if not batch.resident:
                batch.restore(self.batches.written[batch])
        for _, ready in reads:
            ready()
        return len(reads)
