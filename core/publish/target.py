"""Publish targets: publish method frames resolved to channel, exchange, permissions and route.

A target is cached until its route changes, and decides which of its messages are published in
batches: those of up to `batched_max_bytes` whose attributes are not `inspected`. All others go
through `publish_one` (`single.py`). The scanner of AMQP reads, which takes messages as they are
framed, tests `special` instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, cast

from ..auth.authorization import at_topics, to_publish
from ..message.envelope import envelope
from ..queue.deduplication import SeenIds
from ..route.exchange import Exchange
from ..route.route import Route
from ..vhost import DEFAULT_EXCHANGE
from ..wire.tables import syntax_error
from .shares import FRAMED_MAX_BYTES, takes_batch

if TYPE_CHECKING:
    from ..auth import TopicRights
    from ..queue.queue import Queue
    from .publisher import Publisher

MANDATORY: Final = 1
IMMEDIATE: Final = 2
UNDECODABLE: Final = "exchange or routing key of a publish can't be decoded"


class PublishTarget:
    """The destination of a publisher's messages; `exchange` is None for the default exchange.

    With `each_message` every message is routed by itself, and `queues` are not to be used.
    With `checks_each` its messages can't be published in batches: each is routed by itself (by a
    header, or at random), mandatory messages have no route, a queue may refuse them, or their
    routing key is not permitted. It is `special` if so, or if a transaction buffers its messages.
    """

    __slots__ = (
        "_channel", "_published", "_vhost", "checks_each", "confirming", "each_message", "envelope",
        "exchange", "immediate", "mandatory", "number", "publisher",
        "queues", "route", "routing_key", "special", "topics", "transaction",
    )  # fmt: skip

    def __init__(
        self,
        publisher: Publisher,
        envelope: bytes,
        exchange: Exchange | None,
        routing_key: str,
        flags: int,
        route: Route,
        topics: TopicRights | None = None,
    ) -> None:
        self.publisher = publisher
        self._published = publisher.broker.statistics.published
        self._vhost = publisher.vhost.name
        self._channel = publisher.counted
        self.number = publisher.number
        self.confirming = publisher.confirming
        self.envelope = envelope
        self.exchange = exchange
        self.routing_key = routing_key
        self.mandatory = bool(flags & MANDATORY)
        self.immediate = bool(flags & IMMEDIATE)
        self.route = route
        self.transaction = publisher.transaction
        self.topics = topics
        self._set_route(route)

    def set_routing_key(self, envelope: bytes, key: bytes) -> None:
        """Changes the routing key and the queues; `route` stays the watched one."""
        self.envelope = envelope
        self.routing_key = decode_key(key)
        if self.route.uses_key and not self.route.uses_headers:
            route = self.publisher.vhost.route(
                self.exchange, (self.routing_key,), None, watched=False
            )
            self._set_route(route)

    @property
    def seen(self) -> SeenIds | None:
        """The message ids the exchange has seen, if it deduplicates."""
        return None if self.exchange is None else self.exchange.seen

    @property
    def batched_max_bytes(self) -> int:
        """The maximum size of a message in a batch, properties included; -1: none may be in one."""
        if self.checks_each:
            return -1
        return min(FRAMED_MAX_BYTES, self.publisher.broker.limits.max_message_bytes)

    def takes_batch(self, queues: tuple[Queue, ...]) -> bool:
        """Whether messages to these queues can be published in batches, unless their properties
        need a check."""
        if self.immediate or (self.mandatory and not queues) or self.seen is not None:
            return False
        return takes_batch(queues)

    def count(self, count: int, routed: int, unrouted: int) -> None:
        """Counts publishes, for statistics; see `Statistics.published`."""
        self._published(
            self._vhost, self._channel, self.exchange, count, routed, unrouted, self.confirming
        )

    def _set_route(self, route: Route) -> None:
        # Exchanges among the destinations have been followed: queues are what is left.
        self.queues = queues = cast("tuple[Queue, ...]", route.queues)
        self.each_message = route.uses_headers or route.each_message
        self.checks_each = (
            self.each_message
            or (self.topics is not None and not self.topics.allow("write", self.routing_key))
            or not self.takes_batch(queues)
        )
        self.special = self.checks_each or self.transaction is not None


def read_target(publisher: Publisher, payload: bytes, *, watched: bool) -> PublishTarget:
    """Resolves the payload of a publish method frame (AMQP 0-9-1 1.8.3.7).

    Raises:
        ChannelError: 403 without write permission or for an internal exchange, 404 for an
            unknown one.
        ConnectionFault: 502 if the payload can't be decoded.
    """
    exchange, routing_key = check_publish(publisher, payload)
    return _target(publisher, exchange, routing_key, payload[6:-1], payload[-1], watched=watched)


def exchange_target(
    publisher: Publisher,
    name: str,
    routing_key: str,
    *,
    flags: int = MANDATORY,
    watched: bool = False,
) -> PublishTarget:
    """Resolves publishes to an exchange. Raises `ChannelError` as `read_target`, and `ValueError`
    for a name or key longer than AMQP can carry."""
    head = envelope(name, routing_key)
    exchange = _permitted(publisher, name)
    return _target(publisher, exchange, routing_key, head, flags, watched=watched)


def queue_target(
    publisher: Publisher, queues: tuple[Queue, ...], routing_key: str
) -> PublishTarget:
    """Returns the target of publishes that are enqueued in these queues, whatever their keys.

    Raises `ChannelError` 403 without write permission for one of them, `ValueError` for a key
    longer than AMQP can carry.
    """
    if publisher.user is not None:
        for queue in queues:
            to_publish(publisher.user, publisher.vhost.name, "queue", queue.name)
    route = Route(queues, uses_key=False, uses_headers=False)
    head = envelope(DEFAULT_EXCHANGE, routing_key)
    return PublishTarget(publisher, head, None, routing_key, MANDATORY, route)


def check_publish(publisher: Publisher, payload: bytes) -> tuple[Exchange | None, str]:
    """Checks a publish method before its content comes; returns exchange and routing key.

    Raises as `read_target`.
    """
    name, routing_key = split_publish(payload)
    return _permitted(publisher, name), routing_key


def check_keys(publisher: Publisher, name: str, routing_keys: Iterable[str]) -> None:
    """Raises `ChannelError` as `read_target`, also 403 for a key against the topic permissions."""
    topics = _topics(publisher, _permitted(publisher, name))
    if topics is not None:
        for key in routing_keys:
            topics.require("write", key)


def _permitted(publisher: Publisher, name: str) -> Exchange | None:
    """Returns the exchange, None for the default one. Raises `ChannelError` as `read_target`."""
    user, vhost = publisher.user, publisher.vhost
    if user is not None:
        to_publish(user, vhost.name, "exchange", name)
    return vhost.publishable(name)


def _target(
    publisher: Publisher,
    exchange: Exchange | None,
    routing_key: str,
    head: bytes,
    flags: int,
    *,
    watched: bool,
) -> PublishTarget:
    route = publisher.vhost.route(exchange, (routing_key,), None, watched=watched)
    topics = _topics(publisher, exchange)
    return PublishTarget(publisher, head, exchange, routing_key, flags, route, topics)


def _topics(publisher: Publisher, exchange: Exchange | None) -> TopicRights | None:
    """Returns the topic permissions that routing keys are checked against, if any."""
    user = None if exchange is None else publisher.user
    if exchange is None or user is None:
        return None
    vhost = publisher.vhost.name
    return at_topics(user, vhost, exchange.name, exchange.type_name, exchange.arguments)


def decode_key(key: bytes) -> str:
    """Raises `ConnectionFault` 502 unless the routing key is UTF-8."""
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise syntax_error(UNDECODABLE) from None


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
