"""A message store whose commits and reads are completed by the test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

from warrenmq.core.message.batch import Batch, QueueEntry
from warrenmq.core.store.memory import MemoryStore
from warrenmq.core.store.port import QueueIdentity


class ManualStore(MemoryStore):
    """A store in memory that behaves like a slow disk: commits, refusals and reads complete when
    the test calls `commit`, `refuse` and `arrive`.

    While it is `paging`, each batch is evicted as soon as it is written.
    """

    def __init__(self, first_sequence: int | None = None) -> None:
        super().__init__(first_sequence)
        self._appended = 0
        self._written: dict[Batch, Batch] = {}
        self._reads: list[tuple[Batch, Callable[[], None]]] = []
        self._callback: Callable[[], None] = lambda: None
        self.paging = True

    def append(
        self,
        batch: Batch,
        entries: Sequence[tuple[QueueIdentity, QueueEntry]],
        offsets: Sequence[tuple[int, int]] = (),
    ) -> int:
        self._written[batch] = copy(batch)
        if self.paging:
            self.evict(batch)
        return self.barrier()

    def define(self, key: bytes, value: bytes | None) -> int:
        super().define(key, value)
        return self.barrier()

    def barrier(self) -> int:
        self._appended += 1
        return self._appended

    def on_commit(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def fetch(self, batch: Batch, ready: Callable[[], None]) -> None:
        self._reads.append((batch, ready))

    def commit(self) -> None:
        """Commits all that was appended."""
        self.committed = self._appended
        self._callback()

    def refuse(self) -> None:
        """Refuses all that was appended, as a full disk does."""
        self.refused = self._appended
        self._callback()

    def evict_all(self) -> None:
        """Evicts every batch that was written."""
        for batch in self._written:
            self.evict(batch)

    def evict(self, batch: Batch) -> bool:
        if batch.resident:
            batch.body_bytes(0)  # Sizes can be asked when the data is gone: they are noted now.
            batch.evict()
        return True

    @property
    def reads(self) -> int:
        """How many reads are pending."""
        return len(self._reads)

    def arrive(self) -> int:
        """Completes all pending reads; returns how many there were."""
        reads, self._reads = self._reads, []
        for batch, _ in reads:
            if not batch.resident:
                batch.restore(self._written[batch])
        for _, ready in reads:
            ready()
        return len(reads)
