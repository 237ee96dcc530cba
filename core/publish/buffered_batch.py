"""Messages that are published together as one batch, framed like those of a socket read."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from ..message.framing import FramedMessages
from .routed import RoutedMessage
from .shares import Shares, in_order

if TYPE_CHECKING:
    from ..context import BrokerContext
    from ..message.framed_batch import FramedBatch
    from ..queue.queue import Queue
    from ..route.exchange import Exchange

BATCH_BYTES: Final = 262_144
"""As large as a socket read: a batch is paged out and in as a whole."""


class BufferedBatch:
    """Messages of one batch, published in the same way as the first of them.

    Messages of the same exchange may be added to `frames` and to their `share` directly.
    """

    __slots__ = ("_first", "_is_split", "_others", "_shares", "frames")

    def __init__(self, first: RoutedMessage) -> None:
        self.frames = FramedMessages()
        self._first = first
        self._shares: Shares = {}
        self._is_split = False
        """Whether each message has to be published alone after all."""
        self._others: dict[Exchange | None, tuple[RoutedMessage, int, int]] = {}
        """Messages that were published to other exchanges than the first one, for statistics: how
        many, and their copies in queues."""

    def takes(self, message: RoutedMessage) -> bool:
        return self.frames.size_bytes < BATCH_BYTES and message.joins(self._first)

    def add(self, message: RoutedMessage, bodies: Sequence[bytes]) -> None:
        first = self.frames.count
        self.share(message.queues).extend(range(first, first + len(bodies)))
        self.frames.add_alike(message.envelope, message.properties, bodies)
        exchange = message.exchange
        if exchange is not self._first.exchange:
            _, count, routed = self._others.get(exchange, (message, 0, 0))
            count, routed = count + len(bodies), routed + len(bodies) * len(message.queues)
            self._others[exchange] = message, count, routed

    def share(self, queues: tuple[Queue, ...]) -> array[int]:
        """Returns the indexes in `frames` of the messages that these queues get."""
        share = self._shares.get(queues)
        if share is None:
            share = self._shares[queues] = array("I")
        return share

    def update_queues(self) -> None:
        """Replaces queues that were deleted; the batch is split if the new ones take none."""
        shares = self._shares
        if not any(queue.deleted for queue in chain.from_iterable(shares)):
            return
        updated: Shares = {}
        for queues, taken in shares.items():
            existing = self._first.existing(queues)
            self._is_split |= not self._first.takes_batch(existing)
            updated.setdefault(existing, array("I")).extend(taken)
        self._shares = {queues: array("I", sorted(taken)) for queues, taken in updated.items()}

    def publish(self, broker: BrokerContext) -> tuple[bool, int]:
        """Publishes the messages; returns what `Broker.publish_checked` does."""
        if not self._is_split:
            self._count()
            return True, broker.publish(self._batch(broker), in_order(self._shares))
        accepted, commit = True, 0
        for message in self._messages(broker):
            taken, number = message.publish(broker)
            accepted &= taken
            commit = max(commit, number)
        return accepted, commit

    def _batch(self, broker: BrokerContext) -> FramedBatch:
        """Returns the messages with new sequence numbers."""
        frames = self.frames
        sequence = broker.store.reserve(frames.count)
        return frames.batch(sequence, self._first.attributes, broker.now_ms)

    def _count(self) -> None:
        """Counts the publishes of clients, by exchange."""
        count = routed = unrouted = 0
        for queues, taken in self._shares.items():
            count += len(taken)
            routed += len(taken) * len(queues)
            unrouted += 0 if queues else len(taken)
        for message, others, copies in self._others.values():
            message.count(others, copies, 0)
            count, routed = count - others, routed - copies
        self._first.count(count, routed, unrouted)

    def _messages(self, broker: BrokerContext) -> Iterator[RoutedMessage]:
        queues = {index: queues for queues, taken in self._shares.items() for index in taken}
        batch = self._batch(broker)
        for index in range(batch.count):
            message = self._first.like(
                batch.envelope(index), batch.properties(index), batch.body(index)
            )
            message.queues = queues[index]
            yield message
