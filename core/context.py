"""The broker and its connections, as the rooms below them see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections import deque

    from .auth import Kind, User
    from .clock import Clock
    from .commits import Commits
    from .definitions.facts import Facts
    from .definitions.set_aside import UnappliedDefinitions
    from .message.batch import Batch, MemoryUsage
    from .message.queue_entry import MessageRange
    from .publish.shares import Share
    from .queue.queue import Queue
    from .resources.alarms import Alarms
    from .route.exchange import Exchange
    from .slices import Slices
    from .statistics.statistics import Statistics
    from .store.port import Store
    from .timers import Timers


@dataclass(slots=True)
class BrokerLimits:
    """Limits that clients are offered in tune, and others that they have to respect."""

    frame_max: int = 131_072
    channel_max: int = 2047
    heartbeat_s: int = 60
    max_message_bytes: int = 16 * 1024 * 1024
    consumer_timeout_ms: int = 30 * 60 * 1000
    """How long a delivery may wait for its ack, unless queue or consumer set it; 0: no limit."""
    strict_arguments: bool = False
    """Whether unknown `x-` arguments are refused."""


DEFAULT_LIMITS: Final = BrokerLimits()


class Outgoing(Protocol):
    """A connection with output to write at the end of the turn."""

    def flush(self) -> None: ...


class ClientConnection:
    """The connection of an AMQP client, which `core.proto` implements."""

    user: User

    @property
    def channel_count(self) -> int:
        """The number of its channels, those included that wait for close-ok."""
        raise NotImplementedError

    @property
    def open_channel_count(self) -> int:
        raise NotImplementedError

    def unacked(self) -> Iterator[MessageRange]:
        """Yields the unacknowledged deliveries of each channel, oldest first."""
        raise NotImplementedError

    def check_timeouts(self, shortest_ms: int) -> None:
        """Closes the channels with a delivery that has waited for its ack longer than it may; no
        timeout is below `shortest_ms`."""
        raise NotImplementedError

    def force(self, reason: str) -> None:
        """Closes the connection on an operator's behalf (320)."""
        raise NotImplementedError


class BrokerContext:
    """The broker, which `core.broker` implements."""

    active: deque[Queue]
    """Queues to dispatch at the end of this turn or in the next."""
    alarms: Alarms
    clock: Clock
    commits: Commits
    connections: dict[ClientConnection, None]
    facts: Facts
    limits: BrokerLimits
    memory: MemoryUsage
    now_ms: int
    on_declared: Callable[[str, Exchange | Queue], Iterator[None]]
    """Returns the steps that bind a new exchange or queue of a virtual host; its declaration is
    answered after them, so that these bindings miss no message."""
    on_deleted: Callable[[str, Kind, str], None]
    """Called with virtual host, kind and name of each deleted exchange and queue; the hub binds
    again when it is declared anew."""
    on_work: Callable[[], None]
    """Called when a turn is due though no bytes came in; the server runs one soon."""
    outgoing: list[Outgoing]
    persisting_queues: int
    """The number of queues that store transient messages too (streams)."""
    set_aside: UnappliedDefinitions
    slices: Slices
    statistics: Statistics
    store: Store
    timers: Timers

    # -- publishing

    def publish(self, batch: Batch, shares: Sequence[Share]) -> int:
        """Puts the messages of a batch into queues, and into the store if they are persistent.

        Returns the commit number to wait for before they are confirmed, 0 for none.
        """
        raise NotImplementedError

    def publish_checked(
        self, batch: Batch, queues: Sequence[Queue], *, is_accepted: bool = False
    ) -> tuple[bool, int]:
        """As `publish` for one message and queues that may refuse it.

        Returns whether all accepted it, and the commit number. A queue that refuses (overflow
        `reject-publish`) stores nothing; the others store theirs. A message that `is_accepted` was
        accepted before: it is neither refused nor dropped as a duplicate.
        """
        raise NotImplementedError

    # -- queues, as `QueueContext`

    def wake(self, queue: Queue) -> None:
        raise NotImplementedError

    def dispatch_now(self, queue: Queue) -> None:
        """Dispatches what this queue can now, so that its counts are what a client expects."""
        raise NotImplementedError

    def dead_letter(self, queue: Queue, messages: MessageRange, reason: str) -> None:
        raise NotImplementedError

    def dead_letter_as(
        self, queue: Queue, messages: MessageRange, reason: str, content: Batch
    ) -> None:
        raise NotImplementedError

    def note_timeout(self, timeout_ms: int | None) -> None:
        raise NotImplementedError

    def delete_queue(self, queue: Queue) -> None:
        raise NotImplementedError
