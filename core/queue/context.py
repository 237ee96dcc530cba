"""The part of the broker that queues use, so that they can be tested without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ..message.batch import Batch
from ..message.queue_entry import MessageRange

if TYPE_CHECKING:
    from ..clock import Clock
    from ..commits import Commits
    from ..definitions.facts import Facts
    from ..slices import Slices
    from ..store.port import Store
    from ..timers import Timers
    from .queue import Queue


class QueueContext(Protocol):
    """The broker as seen by its queues."""

    store: Store
    commits: Commits
    facts: Facts
    timers: Timers
    slices: Slices
    clock: Clock
    now_ms: int
    persisting_queues: int
    """The number of queues that keep transient messages on disk too."""

    @property
    def on_work(self) -> Callable[[], None]:
        """Requests a turn of the broker after work that no client's bytes have caused."""

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

    def delete_queue(self, queue: Queue) -> None:
        """Deletes a queue that was auto-deleted or has expired."""
