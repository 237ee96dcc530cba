"""In-process publishing and consuming, for the hub and HTTP.

Messages take the same path as those of AMQP: `LocalPublish` calls `publish_one`, consumers are
members of the same ring. Here each message becomes an object, because an application reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING

from ..message.batch import MessageRange, SingleMessage, envelope, split_envelope
from ..message.model import Message, Properties, Table
from ..proto.basic_methods import read_priority
from ..queue.consumer import Consumer
from ..queue.queue import Queue
from ..route.route import Route
from ..wire import properties as wire
from .single import publish_one
from .target import MANDATORY, PublishTarget

if TYPE_CHECKING:
    from ..auth import User
    from ..broker import Broker
    from ..vhost import VirtualHost

_tags = count(1)


class LocalPublish:
    """A publish and its outcome; wait for `commit` before it is confirmed."""

    __slots__ = ("broker", "commit", "rejected", "unrouted", "user", "vhost")

    confirming = True
    reply_name = None

    def __init__(self, broker: Broker, vhost: VirtualHost, user: User) -> None:
        self.broker = broker
        self.vhost = vhost
        self.user = user
        self.commit = 0
        self.rejected = False
        self.unrouted = False

    def published(self, count: int, commit: int) -> None:
        self.commit = commit

    def refused(self) -> None:
        self.rejected = True

    def send_return(self, code: int, text: str, returned: MessageRange) -> None:
        self.unrouted = True

    def run(
        self,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
        queues: tuple[Queue, ...] = (),
    ) -> LocalPublish:
        """Publishes to an exchange, or straight into `queues`.

        Raises:
            ChannelError: 404 for an unknown exchange, 403 for an internal one, 406 for
                properties that AMQP refuses.
            ValueError: a name, key or property longer than AMQP can carry.
        """
        source = None if queues else self.vhost.publishable(exchange)
        if queues:
            route = Route(queues, uses_key=False, uses_headers=False)
        else:
            route = self.vhost.route(source, (routing_key,), None, watched=False)
        raw = wire.encode(properties)
        target = PublishTarget(
            self, 0, envelope(exchange, routing_key), source, routing_key, MANDATORY, route
        )
        publish_one(target, wire.read_attributes(raw, 0, len(raw)), raw, body)
        self.broker.on_work()
        return self


class LocalDelivery:
    """A message delivered to an application; settled exactly once, by `ack`, `nack` or
    `expire`."""

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

    def taken(self) -> tuple[Queue, MessageRange] | None:
        """Marks it as settled and returns what to settle; None if that was done before."""
        if not self._session.settled(self):
            return None
        self.release()
        return self._consumer.queue, self._messages

    def nack(self, *, requeue: bool) -> None:
        if self._session.settled(self):
            if requeue:
                self._consumer.queue.requeue(self._messages)
            else:
                self._consumer.queue.reject(self._messages)
            self.release()

    def expire(self, original: Message) -> None:
        """Dead-letters it as expired, in the form of the `original` message."""
        if self._session.settled(self):
            self._consumer.queue.expire_delivered(self._messages, _batch(original, self._messages))
            self.release()

    def release(self) -> None:
        """Frees its place in the prefetch for the next message; it is still to be settled."""
        if not self._released:
            self._released = True
            self._session.credit_back(self._consumer)

    def give_back(self) -> None:
        self._consumer.queue.requeue(self._messages)


def ack_all(deliveries: Iterable[LocalDelivery]) -> None:
    """Acknowledges many; neighbours in a queue are settled as one range."""
    by_queue: dict[Queue, list[MessageRange]] = {}
    for delivery in deliveries:
        taken = delivery.taken()
        if taken is not None:
            by_queue.setdefault(taken[0], []).append(taken[1])
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


class MessageReader:
    """Decodes messages. Consecutive ones with equal properties share one `Properties`, and so for
    exchange and key: most messages of a queue differ in little but their bodies."""

    __slots__ = ("_envelope", "_exchange_and_key", "_properties", "_raw")

    def __init__(self) -> None:
        self._envelope = self._raw = b""
        self._exchange_and_key = ("", "")
        self._properties = Properties()

    def read(self, messages: MessageRange) -> Message:
        batch, index = messages.entry.batch, messages.entry.index(messages.low)
        head, raw = batch.envelope(index), batch.properties(index)
        if head != self._envelope:
            self._exchange_and_key = split_envelope(head)
            self._envelope = head
        if raw != self._raw:
            self._properties = wire.decode(raw)
            self._raw = raw
        exchange, key = self._exchange_and_key
        return Message(exchange, key, self._properties, batch.body(index), messages.redelivered)


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
        self, consumer: Consumer, messages: MessageRange, shown: MessageRange | None = None
    ) -> None:
        seen = shown or messages
        for position in range(messages.low, messages.high):
            if not self.writable:
                # The application cancelled in a callback for an earlier message.
                rest = MessageRange(messages.entry, position, messages.high, messages.redelivered)
                consumer.queue.return_undelivered(rest)
                return
            piece = MessageRange(messages.entry, position, position + 1, messages.redelivered)
            at = seen.low + position - messages.low
            shape = MessageRange(seen.entry, at, at + 1, messages.redelivered)
            # Decoded at once: the batch may be paged out before the application reads it.
            delivery = LocalDelivery(self, consumer, piece, self._reader.read(shape))
            self._outstanding[delivery] = None
            consumer.unacked_count += 1
            self._broker.counters.delivered += 1
            self._on_delivery(delivery)

    def cancelled(self, consumer: Consumer) -> None:
        if self.writable:
            self._on_cancel()

    def cancel(self, *, comes_back: bool = False) -> None:
        """Cancels the consumer; its unacked messages stay valid. With `comes_back` another session
        will follow, and an auto-delete queue waits for it."""
        self.writable = False
        self._broker.tick()
        self.consumer.queue.remove_consumer(self.consumer, comes_back=comes_back)

    def close(self) -> None:
        """Cancels the consumer and requeues its unacked messages."""
        self.cancel()
        outstanding, self._outstanding = self._outstanding, {}
        for delivery in reversed(outstanding):
            delivery.give_back()
        self._broker.on_work()

    def age_ms(self, messages: MessageRange) -> int:
        """How long ago the message came to the queue."""
        return self._broker.clock.now_ms() - messages.entry.batch.arrived_ms

    def settled(self, delivery: LocalDelivery) -> bool:
        """Marks a delivery as settled; False if it was settled or requeued before."""
        if delivery not in self._outstanding:
            return False
        del self._outstanding[delivery]
        self._broker.tick()
        return True

    def credit_back(self, consumer: Consumer) -> None:
        consumer.unacked_count -= 1
        consumer.reopen()
        self._broker.on_work()
