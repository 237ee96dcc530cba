"""What queues need of their broker, and nothing more: it makes them testable without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ..message.batch import Batch, MessageRange

if TYPE_CHECKING:
    from ..clock import Clock
    from ..definitions.facts import Facts
    from ..slices import Slices
    from ..store.port import Store
    from ..timers import Timers
    from .queue import Queue


class QueueContext(Protocol):
    """What a queue needs of its broker."""

    store: Store
    facts: Facts
    timers: Timers
    slices: Slices
    clock: Clock
    now_ms: int
    always_kept: int
    """How many queues keep transient messages too."""

    @property
    def on_work(self) -> Callable[[], None]:
        """Asks for a turn, by what comes from the store and not from a client."""

    def when_kept(self, commit: int, action: Callable[[], None]) -> None:
        """Runs `action` when that commit is true, or never will be."""

    def on_commit(self, callback: Callable[[], None]) -> None:
        """`callback` runs once, at the next commit, which this asks for."""

    def wake(self, queue: Queue) -> None:
        """Has the queue dispatched in the next turn."""

    def note_timeout(self, timeout_ms: int | None) -> None:
        """Deliveries are to be watched for this x-consumer-timeout."""

    def dead_letter(self, queue: Queue, messages: MessageRange, reason: str) -> None:
        """Takes over messages that left the queue without being consumed, and settles them."""

    def dead_letter_as(
        self, queue: Queue, messages: MessageRange, reason: str, shown: Batch
    ) -> None:
        """As `dead_letter` of a single message, which goes as it is shown."""

    def drop_queue(self, queue: Queue) -> None:
        """The queue's time is over: auto-delete, expiry."""
