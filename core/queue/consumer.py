"""Consumers of a queue, and whose turn it is.

A consumer is open while it can take a message. The ring keeps the open ones of each priority in
round-robin order, so finding the next and counting them costs the same for ten and ten thousand.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from ..message.batch import MessageRange
from ..message.model import Table

if TYPE_CHECKING:
    from .queue import Queue


class Session(Protocol):
    """Who consumers belong to: an AMQP channel, or an application in this process."""

    prefetch: int
    """Limit of unacked messages over all consumers of the session, 0 for none."""

    @property
    def unacked_count(self) -> int: ...

    @property
    def writable(self) -> bool:
        """False while the other side does not read."""

    def deliver(
        self, consumer: Consumer, messages: MessageRange, shown: MessageRange | None = None
    ) -> None:
        """Hands over messages; `shown` is what the other side gets to see, if not the same."""

    def cancelled(self, consumer: Consumer) -> None:
        """The queue of this consumer is gone."""


class Consumer:
    """One subscription to a queue (AMQP 0-9-1 1.8.3.3)."""

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
        """Its own x-consumer-timeout; 0: none; None: the queue's or the server's."""
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
        """How many messages it can take now, at most a million."""
        session = self.session
        if not session.writable:
            return 0
        credit = 1_000_000
        if self.prefetch and not self.no_ack:
            credit = self.prefetch - self.unacked_count
        if session.prefetch:
            left = session.prefetch - session.unacked_count
            # What needs no ack uses none of the session's credit, and still waits while it is out.
            if not self.no_ack or left <= 0:
                credit = min(credit, left)
        return credit

    def reopen(self) -> None:
        """Puts it back in line if it has credit again, and has its queue served."""
        if not self.open and self.credit() > 0:
            self.queue.open_consumer(self)


class ConsumerRing:
    """The consumers of one queue. Those that leave a line are not searched for: they stand in it,
    not `open`, until they come to its front or are more than half of it."""

    __slots__ = ("_gone", "_levels", "_open", "members")

    def __init__(self) -> None:
        self.members: dict[Consumer, None] = {}
        self._open: dict[int, deque[Consumer]] = {}
        self._levels: list[int] = []
        self._gone: dict[int, int] = {}

    def can_take_one(self) -> bool:
        """Whether a message that came now would find a consumer with credit."""
        return any(consumer.open and consumer.credit() > 0 for consumer in self.members)

    def add(self, consumer: Consumer) -> None:
        self.members[consumer] = None
        self.open(consumer)

    def remove(self, consumer: Consumer) -> None:
        del self.members[consumer]
        line = self._open.get(consumer.priority)
        if line is None:
            return
        if consumer.open:
            consumer.open = False
            self._count_gone(consumer.priority, line)
        if not line:
            # Clients choose priorities; each level that was ever used must not stay for good.
            del self._open[consumer.priority]
            self._gone.pop(consumer.priority, None)
            self._levels.remove(consumer.priority)

    def _count_gone(self, level: int, line: deque[Consumer]) -> None:
        gone = self._gone.get(level, 0) + 1
        if 2 * gone > len(line):
            living = [consumer for consumer in line if consumer.open]
            line.clear()
            line.extend(living)
            gone = 0
        self._gone[level] = gone

    def open(self, consumer: Consumer) -> None:
        line = self._open.get(consumer.priority)
        if line is None:
            line = self._open[consumer.priority] = deque()
            self._levels = sorted(self._open, reverse=True)
        line.append(consumer)
        consumer.open = True

    def ready_consumers(self) -> deque[Consumer] | None:
        """The open consumers of the highest priority that has any, next one first."""
        for level in self._levels:
            line = self._open[level]
            while line and not line[0].open:
                line.popleft()
                self._gone[level] -= 1
            if line:
                return line
        return None
