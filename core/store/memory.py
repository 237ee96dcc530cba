"""The store that forgets: everything stays in memory and is gone with the process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ..block import Block, Span
from .port import QueueIdentity, Share


class MemoryStore:
    """Commits at once and keeps every block resident.

    Sequence numbers begin at the time of the start in nanoseconds: above all that an earlier
    process handed out, unless it handled more than one message a nanosecond. Receivers know
    messages by them and would drop a repeated one as a duplicate.
    """

    def __init__(self, first_sequence: int | None = None) -> None:
        self._next_sequence = time.time_ns() if first_sequence is None else first_sequence
        self.committed = 0

    def reserve(self, count: int) -> int:
        first = self._next_sequence
        self._next_sequence += count
        return first

    def append(self, block: Block, shares: Sequence[Share]) -> int:
        return 0

    def settle(self, queue: QueueIdentity, span: Span) -> None:
        """Nothing was written, so there is nothing to take back."""

    def on_commit(self, callback: Callable[[], None]) -> None:
        """Commits never grow here: `append` never asks anyone to wait."""

    def fetch(self, block: Block, ready: Callable[[], None]) -> None:
        raise AssertionError("a block in memory is always resident")


class LateStore(MemoryStore):
    """A twin for tests: commits and reads arrive only when it is told, as from a slow disk.

    While it is `paging`, what is written leaves memory at once.
    """

    def __init__(self, first_sequence: int | None = None) -> None:
        super().__init__(first_sequence)
        self._appended = 0
        self._written: dict[Block, bytes] = {}
        self._reads: list[tuple[Block, Callable[[], None]]] = []
        self._callback: Callable[[], None] = lambda: None
        self.paging = True

    def append(self, block: Block, shares: Sequence[Share]) -> int:
        self._appended += 1
        self._written[block] = block.data
        if self.paging:
            self._page_out(block)
        return self._appended

    def on_commit(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def fetch(self, block: Block, ready: Callable[[], None]) -> None:
        self._reads.append((block, ready))

    def commit(self) -> None:
        """The disk has caught up."""
        self.committed = self._appended
        self._callback()

    def page_out(self) -> None:
        """Memory is short: every block that was written leaves it."""
        for block in self._written:
            self._page_out(block)

    def _page_out(self, block: Block) -> None:
        block.body_bytes(0)  # Sizes can be asked when the data is gone, so they are noted now.
        block.resident = False
        block.data = b""

    @property
    def reads(self) -> int:
        """How many are under way."""
        return len(self._reads)

    def arrive(self) -> int:
        """All reads under way arrive; gives how many there were."""
        reads, self._reads = self._reads, []
        for block, _ in reads:
            block.data = self._written[block]
            block.resident = True
        for _, ready in reads:
            ready()
        return len(reads)
