"""What the broker asks of a message store.

Asynchronous from the first day: `append` gives a commit number that becomes true later, and a
block may not be resident, so whoever needs its bytes asks for them and comes back. The store
never calls into a queue on its own except through the callbacks that it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ..block import Block, Span


class QueueIdentity(Protocol):
    """What the store knows of a queue; ids are never reused."""

    @property
    def id(self) -> int: ...
    @property
    def durable(self) -> bool: ...


Share = tuple[Sequence[QueueIdentity], Sequence[int] | None]
"""Queues and which messages of a block they get, None for all."""


class Store(Protocol):
    def reserve(self, count: int) -> int:
        """The first of `count` sequence numbers that nobody had before, in this life or a
        former one."""

    def append(self, block: Block, shares: Sequence[Share]) -> int:
        """Keeps a block of persistent messages for the durable queues among its shares.

        Gives the commit number to wait for, 0 if there is nothing to wait for.
        """

    def settle(self, queue: QueueIdentity, span: Span) -> None:
        """These messages are done with in this queue."""

    @property
    def committed(self) -> int:
        """All commit numbers up to this one are true."""

    def on_commit(self, callback: Callable[[], None]) -> None:
        """`callback` runs on the broker's thread whenever `committed` has grown."""

    def fetch(self, block: Block, ready: Callable[[], None]) -> None:
        """Makes a block resident, then calls `ready` in a later turn."""
