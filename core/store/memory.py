"""A message store in memory: nothing outlives the process."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from ..message.batch import Batch, MemoryUsage, MessageRange, PagedOut, QueueEntry
from ..slices import Pause, Steps
from .port import BEHIND_BYTES, Browsed, ManySettled, QueueIdentity, Split
from .record_cache import RecordCache


class _NothingSettled:
    """Implements `ManySettled`: nothing was written, so nothing has to be settled."""

    def note(self, queue_id: int, messages: MessageRange) -> None: ...
    def forget(self, queue_id: int) -> None: ...
    def log(self) -> None: ...
    def count(self, messages: MessageRange) -> None: ...
    def end(self) -> None: ...


class MemoryStore:
    """Commits at once and keeps every batch resident.

    Sequence numbers begin at the time of the start in nanoseconds: above all that an earlier
    process reserved. Receivers know messages by them and would drop a repeated one as a duplicate.
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
        """Does nothing: nothing was written."""

    def many_settled(self) -> ManySettled:
        return _NothingSettled()

    def discard(self, queue: QueueIdentity, paged_out: PagedOut) -> Steps:
        raise AssertionError("a store in memory pages nothing out")

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
        """Does nothing: nothing was written."""

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
        """Does nothing: all is committed at once."""

    def request(self) -> None:
        """Does nothing: nobody waits for a commit."""

    def turned(self) -> int | None:
        return None

    def fetch(self, batch: Batch, ready: Callable[[], None]) -> None:
        raise AssertionError("a batch of a store in memory is always resident")

    def page_in(
        self,
        paged_out: PagedOut,
        ready: Callable[[Sequence[MessageRange]], None],
        *,
        is_urgent: bool = True,
    ) -> None:
        raise AssertionError("a store in memory pages nothing out")

    def hurry(self, paged_out: PagedOut) -> None:
        raise AssertionError("a store in memory pages nothing out")

    def browse(
        self, paged_out: PagedOut, position: int, ready: Callable[[Browsed | None], None]
    ) -> None:
        raise AssertionError("a store in memory pages nothing out")

    def size_of(self, entry: QueueEntry) -> int:
        return entry.batch.size_bytes * entry.count // entry.batch.count

    def weigh(self, paged_out: PagedOut) -> Generator[Pause, None, int]:
        raise AssertionError("a store in memory pages nothing out")

    def split(self, paged_out: PagedOut, size_bytes: int) -> Generator[Pause, None, Split | None]:
        raise AssertionError("a store in memory pages nothing out")

    def evict(self, batch: Batch) -> bool:
        return False

    def page_out(
        self, messages: MessageRange, before: PagedOut | None, *, in_order: bool = False
    ) -> PagedOut | None:
        return None
