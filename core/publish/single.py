"""Publishes one message, with every check: the general path beside the batches of the scanner.

For multi-frame content, headers that route, returns, CC and BCC, direct reply-to, user ids and
queues that may refuse. AMQP channels, HTTP and transactions all call `publish_one`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from ..errors import precondition_failed
from ..message.batch import Batch, MessageRange, QueueEntry, SingleMessage
from ..message.equivalence import type_name
from ..message.model import MessageHeaders, Table
from ..queue.retained import RetainedQueue
from ..vhost import REPLY_TO
from ..wire import properties as wire
from ..wire.properties import MessageAttributes
from ..wire.tables import decode_table, entries, join_entries
from .offset_header import marked

if TYPE_CHECKING:
    from ..auth import User
    from ..broker import Broker
    from ..queue.queue import Queue
    from ..vhost import VirtualHost
    from .target import PublishTarget

NO_ROUTE = 312
NO_CONSUMERS = 313


class Publisher(Protocol):
    """The source of publishes: an AMQP channel, or an application in this process."""

    @property
    def broker(self) -> Broker: ...
    @property
    def vhost(self) -> VirtualHost: ...
    @property
    def user(self) -> User: ...
    @property
    def confirming(self) -> bool:
        """Whether `published` is called for each publish."""

    @property
    def reply_name(self) -> str | None:
        """The queue name that replaces `amq.rabbitmq.reply-to` in its requests."""

    def published(self, count: int, commit: int) -> None:
        """Notes accepted publishes; they are confirmed with that commit."""

    def refused(self) -> None:
        """Notes a publish that a queue refused."""

    def send_return(self, code: int, text: str, returned: MessageRange) -> None:
        """Returns a message that could not be routed (312) or delivered (313)."""


@dataclass(slots=True)
class RoutedPublish:
    """A message that was checked and routed, for a transaction to publish at its commit.

    `envelope` is a copy: the target may be given another routing key meanwhile.
    """

    target: PublishTarget
    envelope: bytes
    queues: tuple[Queue, ...]
    keys: list[str]
    headers: Table
    attributes: MessageAttributes
    properties: bytes
    body: bytes
    blind: tuple[str, ...]


def publish_one(
    target: PublishTarget, attributes: MessageAttributes, properties: bytes, body: bytes
) -> None:
    """Publishes one message and notes its confirm; in a transaction, buffers it for the commit.

    Raises:
        ChannelError: 406 for a bad expiration, 403 for a key against the topic permissions, 406
            for a bad user-id or CC, in the order of RabbitMQ.
    """
    publisher = target.publisher
    headers: Table = {}
    blind: list[str] = []
    keys: list[str] = [target.routing_key]
    topics = target.topics
    if topics is not None:
        if attributes.expiration is not None:
            _check_expiration(attributes.expiration)
        topics.require("write", target.routing_key)
    # With `immediate`, an alternate exchange may route by headers though its own does not.
    if attributes.inspected or target.each_message or target.immediate:
        properties, headers = _inspect(publisher, attributes, properties)
        blind = _extra_keys(headers, "BCC")
        keys += [*_extra_keys(headers, "CC"), *blind]
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
    if target.transaction is not None:
        target.transaction.hold(
            RoutedPublish(
                target, target.envelope, queues, keys, headers, attributes, properties, body,
                tuple(blind),
            )
        )  # fmt: skip
        return
    if not target.immediate:  # That one may be returned instead of stored.
        properties = marked(queues, properties)
    broker = publisher.broker
    batch = SingleMessage(
        target.envelope,
        properties,
        body,
        broker.store.reserve(1),
        attributes,
        broker.now_ms,
        tuple(blind),
    )
    accepted, commit = publish_all(target, batch, queues, keys, headers)
    if accepted:
        publisher.published(1, commit)
    else:
        publisher.refused()


def publish_all(
    target: PublishTarget, batch: Batch, queues: tuple[Queue, ...], keys: list[str], headers: Table
) -> tuple[bool, int]:
    """Puts the message into its queues, or returns it; gives the result of `Broker.offer`."""
    seen, store = target.seen, target.publisher.broker.store
    if seen is None:
        return _route_or_return(target, batch, queues, keys, headers)
    if seen.has_seen(batch):
        # A dropped duplicate is as durable as the message it repeats.
        return True, store.barrier() if batch.attributes.persistent else 0
    with store.together():
        accepted, commit = _route_or_return(target, batch, queues, keys, headers)
        if accepted and queues:
            seen.remember(batch)
    return accepted, commit


def _route_or_return(
    target: PublishTarget, batch: Batch, queues: tuple[Queue, ...], keys: list[str], headers: Table
) -> tuple[bool, int]:
    publisher = target.publisher
    returned = MessageRange(QueueEntry(batch, None), 0, 1)
    if not queues and target.mandatory:
        publisher.send_return(NO_ROUTE, "NO_ROUTE", returned)
    elif target.immediate:
        queues = _ready_queues(target, queues, keys, headers)
        if not queues:
            publisher.send_return(NO_CONSUMERS, "NO_CONSUMERS", returned)
    return publisher.broker.offer(batch, queues)


def _ready_queues(
    target: PublishTarget, queues: tuple[Queue, ...], keys: list[str], headers: Table
) -> tuple[Queue, ...]:
    """For `immediate`: returns the queues that would deliver at once, trying the alternate
    exchanges in turn."""
    vhost = target.publisher.vhost
    exchange = target.exchange
    passed = set()
    kept: tuple[Queue, ...] = ()
    while True:
        for queue in queues:
            target.publisher.broker.settle(queue)
        ready = tuple(queue for queue in queues if queue.has_ready_consumer)
        kept += tuple(queue for queue in queues if isinstance(queue, RetainedQueue))
        passed.add(exchange)
        name = None if exchange is None else exchange.alternate
        exchange = None if name is None else vhost.exchanges.get(name)
        if ready or exchange is None or exchange in passed:
            return ready and ready + kept
        route = vhost.route(exchange, keys, headers, watched=False)
        queues = cast("tuple[Queue, ...]", route.queues)


def _inspect(
    publisher: Publisher, attributes: MessageAttributes, properties: bytes
) -> tuple[bytes, MessageHeaders]:
    """Checks the properties; returns the list to store, and the headers as published."""
    parts = wire.split(properties)
    if attributes.expiration is not None:
        _check_expiration(attributes.expiration)
    if wire.USER_ID in parts:
        _check_user_id(publisher, parts[wire.USER_ID][1:].decode())
    headers: Table = {}
    table = parts.get(wire.HEADERS)
    if table is not None:
        headers = decode_table(table, 0, len(table))[0]
        if "BCC" in headers:
            pairs = dict(entries(table))
            del pairs[b"BCC"]
            parts[wire.HEADERS] = join_entries(pairs)
    if parts.get(wire.REPLY_TO, b"")[1:] == REPLY_TO.encode():
        if publisher.reply_name is None:
            raise precondition_failed("fast reply consumer does not exist")
        name = publisher.reply_name.encode()
        parts[wire.REPLY_TO] = bytes((len(name),)) + name
    return wire.join(parts), MessageHeaders(headers, properties)


def _check_expiration(text: str) -> None:
    if not (text.isascii() and text.isdigit()) or int(text) > 315_360_000_000:
        raise precondition_failed(
            f"invalid expiration '{text}': milliseconds from 0 to 315360000000 are needed"
        )


def _check_user_id(publisher: Publisher, user_id: str) -> None:
    user = publisher.user
    if user_id != user.name and "impersonator" not in user.tags:
        raise precondition_failed(
            f"user_id property set to '{user_id}' but authenticated user was '{user.name}'"
        )


def _extra_keys(headers: Table, name: str) -> list[str]:
    """Returns the keys of a CC or BCC header. Raises 406 unless it is an array of strings."""
    if name not in headers:
        return []
    value = headers[name]
    if not isinstance(value, list):
        raise precondition_failed(f"invalid {name} header: {type_name(value)}, an array is needed")
    keys = [key for key in value if isinstance(key, str)]
    if len(keys) != len(value):
        raise precondition_failed(f"invalid {name} header: an array of strings is needed")
    return keys
