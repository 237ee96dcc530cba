"""Consumers in this process, dispatched to like those of AMQP.

Each message becomes an object here, because an application reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING

from ..message.batch import SingleMessage
from ..message.envelope import envelope
from ..message.model import Message, Table
from ..message.queue_entry import MessageRange
from ..queue.consumer import Consumer
from ..queue.consumer_arguments import read_priority
from ..queue.queue import Queue
from ..wire import properties as wire
from .reader import MessageReader

if TYPE_CHECKING:
    from ..broker import Broker

_tags = count(1)


class LocalDelivery:
    """A message delivered to an application, and settled once by `ack`, `nack` or `expire`."""

    __slots__ = ("_consumer", "_messages", "_released", "_session", "message")

    def __init__(
        self, session: LocalSession, consumer: Consumer, messages: MessageRange, message: Message
    ) -> None:
        self._session = session
        self._consumer = consumer
        self._messages = messages
        self._released = False
        self.message = message

    @property
    def sequence(self) -> int:
        return self._messages.sequence

    @property
    def age_s(self) -> float:
        return self._session.age_ms(self._messages) / 1000

    @property
    def time_to_live_s(self) -> float | None:
        entry = self._messages.entry
        if entry.deadline_ms is None:
            return None
        return (entry.deadline_ms - entry.batch.arrived_ms) / 1000

    def ack(self) -> None:
        ack_all((self,))

    def settlement(self) -> tuple[Queue, MessageRange] | None:
        """Marks it as settled and returns what its queue has to settle; None if it was settled."""
        if not self._session.mark_settled(self):
            return None
        self.release()
        self._session.count_ack(self._consumer)
        return self._consumer.queue, self._messages

    def nack(self, *, requeue: bool) -> None:
        if self._session.mark_settled(self):
            self._session.count_reject(self._consumer)
            if requeue:
                self._consumer.queue.requeue(self._messages)
            else:
                self._consumer.queue.reject(self._messages)
            self.release()

    def expire(self, original: Message) -> None:
        """Dead-letters it as expired, in the form of the `original` message."""
        if self._session.mark_settled(self):
            self._consumer.queue.expire_delivered(self._messages, _batch(original, self._messages))
            self.release()

    def release(self) -> None:
        """Frees its place in the prefetch for the next message; it is still to be settled."""
        if not self._released:
            self._released = True
            self._session.credit_back(self._consumer)

    def requeue(self) -> None:
        """Requeues a message of a session that is closed."""
        self._consumer.queue.requeue(self._messages)


def ack_all(deliveries: Iterable[LocalDelivery]) -> None:
    """Acknowledges deliveries; consecutive ones of a queue are settled as one range."""
    by_queue: dict[Queue, list[MessageRange]] = {}
    for delivery in deliveries:
        settlement = delivery.settlement()
        if settlement is not None:
            by_queue.setdefault(settlement[0], []).append(settlement[1])
    for queue, ranges in by_queue.items():
        for messages in _joined(ranges):
            queue.settle(messages)


def _joined(ranges: list[MessageRange]) -> Iterator[MessageRange]:
    if len(ranges) > 1:
        ranges.sort(key=lambda messages: messages.sequence)
    current, *rest = ranges
    for messages in rest:
        if messages.entry is current.entry and messages.low == current.high:
            current = MessageRange(messages.entry, current.low, messages.high, current.redelivered)
        else:
            yield current
            current = messages
    yield current


def _batch(message: Message, messages: MessageRange) -> SingleMessage:
    """Returns a batch of one message, with the sequence number and arrival of the range."""
    raw = wire.encode(message.properties)
    return SingleMessage(
        envelope(message.exchange, message.routing_key),
        raw,
        message.body,
        messages.sequence,
        wire.read_attributes(raw, 0, len(raw)),
        messages.entry.batch.arrived_ms,
    )


class LocalSession:
    """A consumer of an application, with its unacked messages."""

    prefetch = 0

    def __init__(
        self,
        broker: Broker,
        queue: Queue,
        *,
        prefetch: int,
        on_delivery: Callable[[LocalDelivery], None],
        on_cancel: Callable[[], None],
        arguments: Table | None = None,
    ) -> None:
        self._broker = broker
        self._on_delivery = on_delivery
        self._on_cancel = on_cancel
        self._outstanding: dict[LocalDelivery, None] = {}
        self._reader = MessageReader()
        self.writable = True
        """False once cancelled."""
        self.consumer = Consumer(
            f"amq.ctag-local-{next(_tags)}",
            queue,
            self,
            priority=read_priority(arguments or {}),
            prefetch=prefetch,
            arguments=arguments,
        )
        queue.check_consumer(self.consumer)
        queue.add_consumer(self.consumer)
        broker.on_work()

    @property
    def unacked_count(self) -> int:
        return len(self._outstanding)

    def deliver(
        self, consumer: Consumer, messages: MessageRange, rewritten: MessageRange | None = None
    ) -> None:
        source = rewritten or messages
        for position in range(messages.low, messages.high):
            if not self.writable:
                # The application cancelled in a callback for an earlier message.
                rest = MessageRange(messages.entry, position, messages.high, messages.redelivered)
                consumer.queue.return_undelivered(rest)
                return
            piece = MessageRange(messages.entry, position, position + 1, messages.redelivered)
            at = source.low + position - messages.low
            content = MessageRange(source.entry, at, at + 1, messages.redelivered)
            # Decoded at once: the batch may be paged out before the application reads it.
            delivery = LocalDelivery(self, consumer, piece, self._reader.read(content))
            self._outstanding[delivery] = None
            consumer.unacked_count += 1
            self._broker.statistics.delivered(consumer.queue, None, 1, False, messages.redelivered)
            self._on_delivery(delivery)

    def cancelled(self, consumer: Consumer) -> None:
        if self.writable:
            self._on_cancel()

    def cancel(self, *, comes_back: bool = False) -> None:
        """Cancels the consumer; its deliveries can still be settled. With `comes_back` an
        auto-delete queue stays, because another session will follow."""
        self.writable = False
        self._broker.tick()
        self.consumer.queue.remove_consumer(self.consumer, comes_back=comes_back)

    def close(self) -> None:
        """Cancels the consumer and requeues its unacked messages."""
        self.cancel()
        outstanding, self._outstanding = self._outstanding, {}
        for delivery in reversed(outstanding):
            delivery.requeue()
        self._broker.on_work()

    def age_ms(self, messages: MessageRange) -> int:
        """Returns how long ago the message was published to the queue."""
        return self._broker.clock.now_ms() - messages.entry.batch.arrived_ms

    def mark_settled(self, delivery: LocalDelivery) -> bool:
        """Marks a delivery as settled; False if it was settled or requeued before."""
        if delivery not in self._outstanding:
            return False
        del self._outstanding[delivery]
        self._broker.tick()
        return True

    def count_ack(self, consumer: Consumer) -> None:
        self._broker.statistics.acknowledged(consumer.queue, None, 1)

    def count_reject(self, consumer: Consumer) -> None:
        self._broker.statistics.rejected(consumer.queue, None, 1)

    def credit_back(self, consumer: Consumer) -> None:
        consumer.unacked_count -= 1
        consumer.reopen()
        self._broker.on_work()
