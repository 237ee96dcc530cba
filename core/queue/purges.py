"""Purges of one queue: each is answered when it, and those that began before it, are kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .context import QueueContext


class Purge:
    """One of them; `is_over` when all that it dropped is settled."""

    __slots__ = ("done", "is_over")

    def __init__(self, done: Callable[[], None]) -> None:
        self.done = done
        self.is_over = False


class Purges:
    """Those that are not answered yet, in the order in which they began."""

    __slots__ = ("_broker", "_commit", "_pending")

    def __init__(self, broker: QueueContext) -> None:
        self._broker = broker
        self._pending: deque[Purge] = deque()
        self._commit = 0

    def begin(self, done: Callable[[], None]) -> Purge:
        """`done` is called when it is kept: what it found purged was dropped by those before it."""
        purge = Purge(done)
        self._pending.append(purge)
        return purge

    def end(self, purge: Purge, commit: int) -> None:
        """All that it dropped is settled, and kept with that commit."""
        purge.is_over = True
        self._commit = max(self._commit, commit)
        line = self._pending
        while line and line[0].is_over:
            self._broker.when_kept(self._commit, line.popleft().done)
