"""Publish targets: publish method frames resolved to channel, exchange, rights and route.

A target is cached until its route changes. It is `special` when each of its messages needs the
general path: each is routed by itself (by a header, or at random), a mandatory message has no
route, a queue may refuse, a transaction buffers it, its key is not permitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..auth.authorization import at_topics, to_publish
from ..queue.deduplication import SeenIds
from ..route.exchange import Exchange
from ..route.route import Route
from ..wire.tables import syntax_error

if TYPE_CHECKING:
    from ..auth import TopicRights
    from ..proto.channel import Channel
    from ..proto.transaction import Transaction
    from ..queue.queue import Queue
    from .single import Publisher

MANDATORY = 1
IMMEDIATE = 2
UNDECODABLE = "exchange or routing key of a publish can't be decoded"


class PublishTarget:
    """Where a publisher's messages go; `exchange` is None for the default exchange.

    `number` is the publisher's channel. With `each_message` every message is routed by itself, and
    `queues` are not to be used.
    """

    __slots__ = (
        "confirming", "each_message", "envelope", "exchange", "immediate",
        "mandatory", "number", "publisher", "queues", "route", "routing_key", "special", "topics",
        "transaction",
    )  # fmt: skip

    def __init__(
        self,
        publisher: Publisher,
        number: int,
        envelope: bytes,
        exchange: Exchange | None,
        routing_key: str,
        flags: int,
        route: Route,
        transaction: Transaction | None = None,
        topics: TopicRights | None = None,
    ) -> None:
        self.publisher = publisher
        self.number = number
        self.confirming = publisher.confirming
        self.envelope = envelope
        self.exchange = exchange
        self.routing_key = routing_key
        self.mandatory = bool(flags & MANDATORY)
        self.immediate = bool(flags & IMMEDIATE)
        self.route = route
        self.transaction = transaction
        self.topics = topics
        self._set_route(route)

    def set_routing_key(self, envelope: bytes, key: bytes) -> None:
        """Changes the routing key and the queues; `route` stays the watched one."""
        self.envelope = envelope
        try:
            self.routing_key = key.decode()
        except UnicodeDecodeError:
            raise syntax_error(UNDECODABLE) from None
        if self.route.uses_key and not self.route.uses_headers:
            route = self.publisher.vhost.route(
                self.exchange, (self.routing_key,), None, watched=False
            )
            self._set_route(route)

    @property
    def seen(self) -> SeenIds | None:
        """The message ids the exchange has seen, if it deduplicates."""
        seen = None if self.exchange is None else self.exchange.seen
        return seen if isinstance(seen, SeenIds) else None

    def _set_route(self, route: Route) -> None:
        # Exchanges among the destinations have been followed: queues are what is left.
        self.queues = queues = cast("tuple[Queue, ...]", route.queues)
        self.each_message = route.uses_headers or route.each_message
        self.special = self.immediate or (self.mandatory and not queues) or self.each_message
        if self.transaction is not None or self.seen is not None:
            self.special = True
            return
        if self.topics is not None and not self.topics.allow("write", self.routing_key):
            self.special = True
        for queue in queues:
            if queue.rules is not None and (queue.rules.checks_publishes or queue.adds_offsets):
                self.special = True


def read_target(channel: Channel, payload: bytes, *, watched: bool) -> PublishTarget:
    """Resolves the payload of a publish method frame (AMQP 0-9-1 1.8.3.7).

    Raises:
        ChannelError: 403 without write permission or for an internal exchange, 404 for an
            unknown one.
        ConnectionFault: 502 if the payload can't be decoded.
    """
    exchange, routing_key = check_publish(channel, payload)
    vhost = channel.vhost
    route = vhost.route(exchange, (routing_key,), None, watched=watched)
    return PublishTarget(
        channel,
        channel.number,
        payload[6:-1],
        exchange,
        routing_key,
        payload[-1],
        route,
        channel.transaction,
        _topics(channel, exchange),
    )


def check_publish(channel: Channel, payload: bytes) -> tuple[Exchange | None, str]:
    """Checks a publish method before its content comes; returns exchange and routing key.

    Raises as `read_target`.
    """
    name, routing_key = split_publish(payload)
    vhost = channel.vhost
    to_publish(channel.connection.user, vhost.name, "exchange", name)
    return vhost.publishable(name), routing_key


def _topics(channel: Channel, exchange: Exchange | None) -> TopicRights | None:
    """Returns the topic permissions that routing keys are checked against, if any."""
    if exchange is None:
        return None
    user, vhost = channel.connection.user, channel.vhost.name
    return at_topics(user, vhost, exchange.name, exchange.type_name, exchange.arguments)


def split_publish(payload: bytes) -> tuple[str, str]:
    """Returns exchange and routing key of a publish method frame. Raises as `read_target`."""
    try:
        exchange_end = 7 + payload[6]
        key_end = exchange_end + 1 + payload[exchange_end]
        name = payload[7:exchange_end].decode()
        routing_key = payload[exchange_end + 1 : key_end].decode()
    except (IndexError, UnicodeDecodeError):
        raise syntax_error(UNDECODABLE) from None
    if len(payload) != key_end + 1:
        raise syntax_error(f"publish method of {len(payload)} bytes, {key_end + 1} expected")
    return name, routing_key
