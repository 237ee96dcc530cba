"""The part of the broker that queues use, so that they can be tested without one."""

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
    """The broker as seen by its queues."""

    store: Store
    facts: Facts
    timers: Timers
    slices: Slices
    clock: Clock
    now_ms: int
    always_kept: int
    """The number of queues that keep transient messages on disk too."""

    @property
    def on_work(self) -> Callable[[], None]:
        """Requests a turn of the broker after work that no client's bytes have caused."""

    def when_kept(self, commit: int, action: Callable[[], None]) -> None:
        """Runs `action` once the commit is on disk, or is known to have failed."""

    def on_commit(self, callback: Callable[[], None]) -> None:
        """Requests a commit and runs `callback` once, when it is done."""

    def wake(self, queue: Queue) -> None:
        """Schedules the queue for dispatch in the next turn."""

    def note_timeout(self, timeout_ms: int | None) -> None:
        """Notes that deliveries must be checked for this x-consumer-timeout."""

    def dead_letter(self, queue: Queue, messages: MessageRange, reason: str) -> None:
        """Dead-letters or drops messages that left the queue without being consumed, and settles
        them."""

    def dead_letter_as(
        self, queue: Queue, messages: MessageRange, reason: str, content: Batch
    ) -> None:
        """As `dead_letter` for a single message, with `content` as the dead letter."""

    def drop_queue(self, queue: Queue) -> None:
        """Deletes a queue that was auto-deleted or has expired."""
