"""Dead letters of a transaction, which are published all at once when it is committed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..message.queue_entry import MessageRange
from ..publish.buffer import PublishBuffer
from ..slices import drain
from .dead_letters import DeadLetterCopies
from .fifo import RepublishFifo

if TYPE_CHECKING:
    from ..context import BrokerContext
    from ..queue.queue import Queue
    from ..store.port import ManySettled
    from ..vhost import VirtualHost


class DeadLettered(NamedTuple):
    """Messages that a queue dead-letters, and the reason for x-death."""

    queue: Queue
    messages: MessageRange
    reason: str


class RepublishGroup:
    """Dead letters of unacknowledged messages that take effect together."""

    def __init__(
        self,
        broker: BrokerContext,
        vhosts: Mapping[str, VirtualHost],
        fifo: RepublishFifo,
        ready: Callable[[], None],
        many: ManySettled | None,
    ) -> None:
        self.copies = PublishBuffer(broker)
        self._broker = broker
        self._vhosts = vhosts
        self._fifo = fifo
        self._ready = ready
        self._many = many
        self._remaining = 1
        """Messages that are not copied yet, and one until it is complete."""
        self._copied: deque[tuple[Queue, MessageRange]] = deque()
        self._unreadable: deque[tuple[Queue, MessageRange]] = deque()

    @property
    def is_ready(self) -> bool:
        return not self._remaining

    def add(self, dead_letter: DeadLettered) -> None:
        """Adds dead letters of a queue that has a dead-letter exchange."""
        queue, messages, reason = dead_letter
        assert queue.rules is not None
        republishing = DeadLetterCopies(
            self._broker.clock, self._vhosts, queue, queue.rules, reason
        )
        self._broker.statistics.dead_lettered(reason, messages.count)
        self._remaining += messages.count
        own = MessageRange(messages.entry, messages.low, messages.high)
        self._fifo.add(queue, own, republishing, self)

    def complete(self) -> None:
        """Ends the adding."""
        self._count(1)

    def copied(self, queue: Queue, messages: MessageRange) -> None:
        if self._many is not None:
            queue.note_settled(messages, self._many)
        self._copied.append((queue, messages))
        self._count(messages.count)

    def unreadable(self, queue: Queue, messages: MessageRange) -> None:
        self._unreadable.append((queue, messages))
        self._count(messages.count)

    def _count(self, count: int) -> None:
        self._remaining -= count
        if not self._remaining:
            self._ready()

    def publish_all(self) -> int:
        """Publishes the copies, inside of `store.together()`; `settle` the originals next.

        Returns the commit number to wait for, 0 for none.
        """
        return self.copies.publish_all()[1]

    def settle(self) -> Iterator[None]:
        """Settles the originals, some at a step; inside of `store.together()`, unless they were
        marked and logged as settled."""
        many = self._many
        for queue, messages in drain(self._copied):
            if many is None:
                queue.settle(messages)
            else:
                queue.count_settled(messages, many)
            yield
        for queue, messages in drain(self._unreadable):
            queue.unacked_count -= messages.count
            yield
