"""Publishes one message, with every check: the general path beside the batches of a read.

For content in several frames, headers that route, returns, CC and BCC, direct reply-to, user ids
and queues that may refuse. AMQP channels, HTTP and transactions all call `publish_one`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ..message.model import Table
from ..message.queue_entry import MessageRange, QueueEntry
from ..queue.retained import RetainedQueue
from ..wire.properties import MessageAttributes
from .checks import check_expiration, check_size, extra_keys, inspect
from .routed import RoutedMessage

if TYPE_CHECKING:
    from ..context import BrokerContext
    from ..queue.queue import Queue
    from ..route.exchange import Exchange
    from .target import PublishTarget

_NO_ROUTE: Final = 312, "NO_ROUTE"
_NO_CONSUMERS: Final = 313, "NO_CONSUMERS"


def publish_one(
    target: PublishTarget, attributes: MessageAttributes, properties: bytes, body: bytes
) -> None:
    """Publishes one message and notes its confirm; in a transaction, buffers it for the commit.

    Raises:
        ChannelError: 406 for a body above the limit or a bad expiration, 403 for a key against the
            topic permissions, 406 for a bad user-id or CC, in the order of RabbitMQ.
    """
    publish = _routed(target, attributes, properties, body)
    if target.transaction is not None:
        target.transaction.buffer(publish)
        return
    publisher = target.publisher
    accepted, commit = publish.publish(publisher.broker)
    if accepted:
        publisher.published(1, commit)
    else:
        publisher.refused()


def _routed(
    target: PublishTarget, attributes: MessageAttributes, properties: bytes, body: bytes
) -> RoutedPublish:
    """Checks and routes a message. Raises as `publish_one`."""
    publisher = target.publisher
    limit = publisher.broker.limits.max_message_bytes
    if len(body) > limit:
        check_size(len(body), limit)
    headers: Table = {}
    bcc_keys: list[str] = []
    keys: list[str] = [target.routing_key]
    topics = target.topics
    if topics is not None:
        check_expiration(attributes.expiration)
        topics.require("write", target.routing_key)
    # With `immediate`, an alternate exchange may route by headers though its own does not.
    if attributes.inspected or target.each_message or target.immediate:
        properties, headers = inspect(publisher, attributes, properties)
        bcc_keys = extra_keys(headers, "BCC")
        keys += [*extra_keys(headers, "CC"), *bcc_keys]
        if topics is not None:
            for key in keys[1:]:
                topics.require("write", key)
    queues, route = target.queues, target.route
    if target.each_message or route.dead or (len(keys) > 1 and route.uses_key):
        route = publisher.vhost.route(target.exchange, keys, headers, watched=False)
        queues = cast("tuple[Queue, ...]", route.queues)
    if target.special:
        for seen in (target.seen, *(queue.seen for queue in queues)):
            if seen is not None:
                seen.check(properties)
    return RoutedPublish(
        target,
        target.envelope,
        properties,
        body,
        attributes,
        queues,
        keys,
        headers,
        tuple(bcc_keys),
    )


class RoutedPublish(RoutedMessage):
    """A publish that was checked and routed; it is returned where no queue takes it.

    `envelope` is its own, because the routing key of a target may change.
    """

    __slots__ = ("headers", "keys", "target")

    def __init__(
        self,
        target: PublishTarget,
        envelope: bytes,
        properties: bytes,
        body: bytes,
        attributes: MessageAttributes,
        queues: tuple[Queue, ...],
        keys: list[str],
        headers: Table,
        bcc_keys: tuple[str, ...],
    ) -> None:
        super().__init__(envelope, properties, body, attributes, queues, bcc_keys)
        self.target = target
        self.keys = keys
        self.headers = headers

    def takes_batch(self, queues: tuple[Queue, ...]) -> bool:
        return self.target.takes_batch(queues)

    def joins(self, first: RoutedMessage) -> bool:
        return (
            self.attributes is first.attributes
            and isinstance(first, RoutedPublish)
            and self.target.mandatory is first.target.mandatory
        )

    def existing(self, queues: tuple[Queue, ...]) -> tuple[Queue, ...]:
        """Replaces deleted queues by those that have their names now, if there are any."""
        vhost = self.target.publisher.vhost
        found = (
            (vhost.queues.get(queue.name) or vhost.inner_queues.get(queue.name))
            if queue.deleted
            else queue
            for queue in queues
        )
        return tuple(queue for queue in found if queue is not None)

    def route_again(self) -> tuple[Queue, ...]:
        vhost, exchange = self.target.publisher.vhost, self.target.exchange
        exchange = None if exchange is None else vhost.exchanges.get(exchange.name)
        if exchange is None:
            return self.queues
        route = vhost.route(exchange, self.keys, self.headers, watched=False)
        return cast("tuple[Queue, ...]", route.queues)

    def like(self, envelope: bytes, properties: bytes, body: bytes) -> RoutedPublish:
        return RoutedPublish(
            self.target, envelope, properties, body, self.attributes, self.queues, self.keys,
            self.headers, self.bcc_keys,
        )  # fmt: skip

    def publish(self, broker: BrokerContext) -> tuple[bool, int]:
        """Puts the message into its queues, or returns it to its publisher.

        The result is that of `Broker.publish_checked`.
        """
        reason = self._reason_to_return()
        batch, seen = self.as_batch(broker), self.target.seen
        if seen is not None and seen.has_seen(batch):
            # A dropped duplicate is as durable as the message it repeats.
            return True, broker.store.barrier() if batch.attributes.persistent else 0
        if reason is not None:
            returned = MessageRange(QueueEntry(batch, None), 0, 1)
            self.target.publisher.send_return(*reason, returned)
            self._count_return()
        self.count(1, len(self.queues), 0 if self.queues or reason is not None else 1)
        if seen is None or not self.queues:
            return broker.publish_checked(batch, self.queues)
        with broker.store.together():
            accepted, commit = broker.publish_checked(batch, self.queues)
            if accepted:
                seen.remember(batch)
        return accepted, commit

    def count(self, count: int, routed: int, unrouted: int) -> None:
        self.target.count(count, routed, unrouted)

    def _count_return(self) -> None:
        publisher = self.target.publisher
        publisher.broker.statistics.returned(publisher.vhost.name, publisher.counted)

    @property
    def exchange(self) -> Exchange | None:
        return self.target.exchange

    def _reason_to_return(self) -> tuple[int, str] | None:
        """Returns the reply code and text with which it is to be returned, if it is.

        With `immediate`, only the queues that would deliver it at once stay in `queues`.
        """
        target = self.target
        if target.mandatory and not self.queues:
            return _NO_ROUTE
        if target.immediate:
            self.queues = self._ready_queues()
            if not self.queues:
                return _NO_CONSUMERS
        return None

    def _ready_queues(self) -> tuple[Queue, ...]:
        """Returns the queues that would deliver an `immediate` message at once, trying the
        alternate exchanges in turn."""
        publisher, exchange, queues = self.target.publisher, self.target.exchange, self.queues
        vhost = publisher.vhost
        passed = set()
        logs: tuple[Queue, ...] = ()
        while True:
            for queue in queues:
                publisher.broker.dispatch_now(queue)
            ready = tuple(queue for queue in queues if queue.has_ready_consumer)
            logs += tuple(queue for queue in queues if isinstance(queue, RetainedQueue))
            passed.add(exchange)
            name = None if exchange is None else exchange.alternate
            exchange = None if name is None else vhost.exchanges.get(name)
            if ready or exchange is None or exchange in passed:
                return ready and ready + logs
            route = vhost.route(exchange, self.keys, self.headers, watched=False)
            queues = cast("tuple[Queue, ...]", route.queues)
