"""The store that forgets: everything stays in memory and is gone with the process."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy

from ..message.batch import Batch, MemoryUsage, MessageRange, PagedOut, QueueEntry
from ..slices import Pause, Steps
from .port import BEHIND_BYTES, Browsed, ManySettled, QueueIdentity, Split
from .record_cache import RecordCache


class _NoneSettled:
    """Nothing was written, so there is nothing to take back."""

    def note(self, queue_id: int, messages: MessageRange) -> None: ...
    def forget(self, queue_id: int) -> None: ...
    def log(self) -> None: ...
    def count(self, messages: MessageRange) -> None: ...
    def end(self) -> None: ...


class MemoryStore:
    """Commits at once and keeps every batch resident.

    Sequence numbers begin at the time of the start in nanoseconds: above all that an earlier
    process handed out, unless it handled more than one message a nanosecond. Receivers know
    messages by them and would drop a repeated one as a duplicate.
    """

    def __init__(self, first_sequence: int | None = None) -> None:
        self._next_sequence = time.time_ns() if first_sequence is None else first_sequence
        self.committed = 0
        self.refused = 0
        self.behind_bytes = 0
        self.behind_max_bytes = BEHIND_BYTES
        self.leaving_bytes = 0
        self.is_short = False
        self.definitions: dict[bytes, bytes] = {}
        self.memory = MemoryUsage()
        self.cache = RecordCache()
        self.is_damaged = False

    def reserve(self, count: int) -> int:
        first = self._next_sequence
        self._next_sequence += count
        return first

    def append(
        self,
        batch: Batch,
        entries: Sequence[tuple[QueueIdentity, QueueEntry]],
        offsets: Sequence[tuple[int, int]] = (),
    ) -> int:
        return 0

    def settle(self, queue: QueueIdentity, messages: MessageRange) -> None:
        """Nothing was written, so there is nothing to take back."""

    def many_settled(self) -> ManySettled:
        return _NoneSettled()

    def discard(self, queue: QueueIdentity, paged_out: PagedOut) -> Steps:
        raise AssertionError("nothing in memory is cold")

    def delivered(self, queue: QueueIdentity, sequence: int) -> int:
        return 0

    def define(self, key: bytes, value: bytes | None) -> int:
        if value is None:
            self.definitions.pop(key, None)
        else:
            self.definitions[key] = value
        return 0

    def recovered(
        self, queue: QueueIdentity, *, ranks: bool = False, in_order: bool = False
    ) -> Sequence[PagedOut]:
        return ()

    def next_offset(self, queue: QueueIdentity) -> int:
        return 0

    def restored(self) -> None:
        """Nothing was written."""

    @property
    def quarantine(self) -> Mapping[int, int]:
        return {}

    @property
    def unreadable(self) -> Mapping[str, str]:
        return {}

    def set_aside_files(self) -> Mapping[str, int]:
        return {}

    def drop(self, queue: QueueIdentity) -> Iterator[None]:
        return iter(())

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def barrier(self) -> int:
        return 0

    def on_commit(self, callback: Callable[[], None]) -> None:
        """Commits never grow here: `append` never asks anyone to wait."""

    def request(self) -> None:
        """Nobody ever waits."""

    def turned(self) -> int | None:
        return None

    def fetch(self, batch: Batch, ready: Callable[[], None]) -> None:
        raise AssertionError("a block in memory is always resident")

    def page_in(
        self,
        paged_out: PagedOut,
        ready: Callable[[Sequence[MessageRange]], None],
        *,
        is_urgent: bool = True,
    ) -> None:
        raise AssertionError("nothing in memory is cold")

    def hurry(self, paged_out: PagedOut) -> None:
        raise AssertionError("nothing in memory is cold")

    def browse(
        self, paged_out: PagedOut, position: int, ready: Callable[[Browsed | None], None]
    ) -> None:
        raise AssertionError("nothing in memory is cold")

    def size_of(self, entry: QueueEntry) -> int:
        return entry.batch.size_bytes * entry.count // entry.batch.count

    def weigh(self, paged_out: PagedOut) -> Generator[Pause, None, int]:
        raise AssertionError("nothing in memory is cold")

    def split(self, paged_out: PagedOut, size_bytes: int) -> Generator[Pause, None, Split | None]:
        raise AssertionError("nothing in memory is cold")

    def evict(self, batch: Batch) -> bool:
        return False

    def page_out(
        self, messages: MessageRange, before: PagedOut | None, *, in_order: bool = False
    ) -> PagedOut | None:
        return None


class ManualStore(MemoryStore):
    """A twin for tests: commits and reads arrive only when it is told, as from a slow disk.

    While it is `paging`, what is written leaves memory at once.
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
        """The disk has caught up."""
        self.committed = self._appended
        self._callback()

    def refuse(self) -> None:
        """The disk is full."""
        self.refused = self._appended
        self._callback()

    def evict_all(self) -> None:
        """Memory is short: every batch that was written leaves it."""
        for batch in self._written:
            self.evict(batch)

    def evict(self, batch: Batch) -> bool:
        if batch.resident:
            batch.body_bytes(0)  # Sizes can be asked when the data is gone: they are noted now.
            batch.evict()
        return True

    @property
    def reads(self) -> int:
        """How many are under way."""
        return len(self._reads)

    def arrive(self) -> int:
        """All reads under way arrive; gives how many there were."""
        reads, self._reads = self._reads, []
        for batch, _ in reads:
            if not batch.resident:
                batch.restore(self._written[batch])
        for _, ready in reads:
            ready()
        return len(reads)
