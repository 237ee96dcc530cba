"""The consumers of a queue and the order in which they get messages.

A consumer is open while it has credit. The ring keeps the open consumers of each priority in
round-robin order, so finding the next one costs the same for ten and ten thousand.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from ..message.model import Table
from ..message.queue_entry import MessageRange

if TYPE_CHECKING:
    from .queue import Queue


class Session(Protocol):
    """The owner of consumers: an AMQP channel, or an application in this process."""

    prefetch: int
    """Limit of unacked messages over all consumers of the session, 0 for none."""

    @property
    def unacked_count(self) -> int: ...

    @property
    def writable(self) -> bool:
        """False while the client does not read from its connection."""

    def deliver(
        self, consumer: Consumer, messages: MessageRange, rewritten: MessageRange | None = None
    ) -> None:
        """Delivers messages; `rewritten` are the same with headers added by the queue, if any."""

    def cancelled(self, consumer: Consumer) -> None:
        """Notifies the owner that the queue of a consumer was deleted."""


class Consumer:
    """A consumer of a queue, made by basic.consume (AMQP 0-9-1 1.8.3.3)."""

    __slots__ = (
        "arguments", "exclusive", "no_ack", "open", "prefetch", "priority", "queue", "session",
        "tag", "timeout_ms", "unacked_count",
    )  # fmt: skip

    def __init__(
        self,
        tag: str,
        queue: Queue,
        session: Session,
        *,
        no_ack: bool = False,
        exclusive: bool = False,
        priority: int = 0,
        prefetch: int = 0,
        arguments: Table | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        """Its own x-consumer-timeout; 0 for none, None for the queue's or the server's."""
        self.tag = tag
        self.queue = queue
        self.session = session
        self.no_ack = no_ack
        self.exclusive = exclusive
        self.priority = priority
        self.prefetch = prefetch
        self.arguments = arguments or {}
        self.unacked_count = 0
        self.open = False

    def credit(self) -> int:
        """Returns how many messages may be delivered to it now, at most a million."""
        session = self.session
        if not session.writable:
            return 0
        credit = 1_000_000
        if self.prefetch and not self.no_ack:
            credit = self.prefetch - self.unacked_count
        if session.prefetch:
            left = session.prefetch - session.unacked_count
            # Deliveries without ack use none of the session's credit, but wait while it has none.
            if not self.no_ack or left <= 0:
                credit = min(credit, left)
        return credit

    def reopen(self) -> None:
        """Adds it to the ready consumers if it has credit again, and has its queue dispatched."""
        if not self.open and self.credit() > 0:
            self.queue.open_consumer(self)


class ConsumerRing:
    """The consumers of one queue, in round-robin order for each priority.

    A consumer that is removed is not searched for: it stays in its line, not `open`, until it is at
    the front or more than half of the line has gone.
    """

    __slots__ = ("_gone", "_levels", "_open", "members")

    def __init__(self) -> None:
        self.members: dict[Consumer, None] = {}
        self._open: dict[int, deque[Consumer]] = {}
        self._levels: list[int] = []
        self._gone: dict[int, set[Consumer]] = {}
        """The removed consumers that are still in a line, by priority."""

    def can_take_one(self) -> bool:
        """Returns whether a message that arrived now would find a consumer with credit."""
        return any(consumer.open and consumer.credit() > 0 for consumer in self.members)

    def add(self, consumer: Consumer) -> None:
        gone = self._gone.get(consumer.priority)
        if gone is not None and consumer in gone:  # It was removed, and comes back.
            gone.remove(consumer)
            self._open[consumer.priority].remove(consumer)
        self.members[consumer] = None
        self.open(consumer)

    def remove(self, consumer: Consumer) -> None:
        del self.members[consumer]
        line = self._open.get(consumer.priority)
        if line is None:
            return
        if consumer.open:
            consumer.open = False
            self._count_gone(consumer, line)
        if not line:
            # Clients choose priorities: a level that was used once must not stay for good.
            del self._open[consumer.priority]
            self._gone.pop(consumer.priority, None)
            self._levels.remove(consumer.priority)

    def _count_gone(self, consumer: Consumer, line: deque[Consumer]) -> None:
        gone = self._gone.setdefault(consumer.priority, set())
        gone.add(consumer)
        if 2 * len(gone) > len(line):
            living = [other for other in line if other.open]
            line.clear()
            line.extend(living)
            gone.clear()

    def open(self, consumer: Consumer) -> None:
        line = self._open.get(consumer.priority)
        if line is None:
            line = self._open[consumer.priority] = deque()
            self._levels = sorted(self._open, reverse=True)
        line.append(consumer)
        consumer.open = True

    def ready_consumers(self) -> deque[Consumer] | None:
        """Returns the open consumers of the highest priority that has any, next one first."""
        for level in self._levels:
            line = self._open[level]
            while line and not line[0].open:
                self._gone[level].remove(line.popleft())
            if line:
                return line
        return None
