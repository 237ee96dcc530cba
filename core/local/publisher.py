"""Publishes from inside the process, by the same rules as AMQP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ..message.model import Properties
from ..message.queue_entry import MessageRange
from ..publish.buffer import PublishBuffer
from ..publish.buffered_batch import BATCH_BYTES
from ..publish.checks import check_header
from ..publish.single import RoutedPublish, publish_one
from ..publish.target import PublishTarget, check_keys, exchange_target, queue_target
from ..wire import properties as wire

if TYPE_CHECKING:
    from ..auth import User
    from ..broker import Broker
    from ..queue.queue import Queue
    from ..vhost import VirtualHost


class LocalPublisher:
    """Publishes messages of one user, None for the server itself, and counts their outcomes; wait
    for `commit` before they are confirmed.

    Of copies, messages that were published before, the user-ids are not checked again.
    """

    __slots__ = (
        "_buffer", "_buffered", "author", "broker", "commit", "rejected_count", "unrouted_count",
        "user", "vhost",
    )  # fmt: skip

    number: Final = 0
    confirming: Final = True
    transaction: Final = None
    reply_name: Final = None
    counted: Final = None

    def __init__(
        self, broker: Broker, vhost: VirtualHost, user: User | None, *, are_copies: bool = False
    ) -> None:
        self.broker = broker
        self.vhost = vhost
        self.user = user
        self.author = None if are_copies else user
        self.commit = 0
        self.rejected_count = 0
        self.unrouted_count = 0
        self._buffer = PublishBuffer(broker)
        self._buffered = 0

    def published(self, count: int, commit: int) -> None:
        self.commit = max(self.commit, commit)

    def refused(self) -> None:
        self.rejected_count += 1

    def send_return(self, code: int, text: str, returned: MessageRange) -> None:
        self.unrouted_count += 1

    def publish(
        self,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
        queues: tuple[Queue, ...] = (),
    ) -> None:
        """Publishes to an exchange, or straight into `queues`.

        Raises:
            ChannelError: 404 for an unknown exchange, 403 for an internal one or without
                permission, 406 for properties that AMQP refuses.
            Shortage: during an alarm, unless it is the server's own.
            ValueError: a name, key or property longer than AMQP can carry.
        """
        target = self._target(exchange, routing_key, queues)
        raw = self._encoded(properties)
        publish_one(target, wire.read_attributes(raw, 0, len(raw)), raw, body)
        self.broker.on_work()

    def check(self, exchange: str, routing_keys: Iterable[str]) -> None:
        """Raises `ChannelError` 403 or 404 unless the user may publish there with these keys."""
        check_keys(self, exchange, routing_keys)

    def add(
        self,
        exchange: str,
        routing_key: str,
        properties: Properties,
        bodies: Sequence[bytes],
        queues: tuple[Queue, ...] = (),
    ) -> None:
        """As `publish` for messages that differ only in their bodies; call `flush` next, before
        anything else happens in the broker."""
        target = self._target(exchange, routing_key, queues)
        raw = self._encoded(properties)
        attributes = wire.read_attributes(raw, 0, len(raw))
        message = RoutedPublish(
            target, target.envelope, raw, b"", attributes, target.queues, [routing_key], {}, ()
        )
        max_bytes = -1 if attributes.inspected else target.batched_max_bytes - len(raw)
        for part in _split(bodies, max_bytes):
            if len(part[0]) > max_bytes:
                self._publish_buffered()
                publish_one(target, attributes, raw, part[0])
            else:
                self._buffer.add_alike(message, part)
                self._buffered += len(part)

    def flush(self) -> None:
        """Publishes what was added."""
        self._publish_buffered()
        self.broker.on_work()

    def _publish_buffered(self) -> None:
        if self._buffered:
            count, self._buffered = self._buffered, 0
            self.published(count, self._buffer.publish_all()[1])

    def _encoded(self, properties: Properties) -> bytes:
        """Returns the property list. That of a copy, and of the server's own messages, may have
        grown by what was added to the list of a client."""
        raw = wire.encode(properties)
        if self.author is not None:
            check_header(len(raw), self.broker.limits.frame_max)
        return raw

    def _target(self, exchange: str, key: str, queues: tuple[Queue, ...]) -> PublishTarget:
        if self.user is not None:
            self.broker.alarms.require_none()
        if queues:
            return queue_target(self, queues, key)
        return exchange_target(self, exchange, key)


def _split(bodies: Sequence[bytes], max_bytes: int) -> Iterator[Sequence[bytes]]:
    """Splits bodies, in order, into those of one batch each; one above `max_bytes` is alone."""
    start = size = 0
    for at, body in enumerate(bodies):
        if start < at and (size + len(body) > BATCH_BYTES or len(body) > max_bytes):
            yield bodies[start:at]
            start, size = at, 0
        size += len(body)
        if len(body) > max_bytes:
            yield bodies[at : at + 1]
            start, size = at + 1, 0
    if start < len(bodies):
        yield bodies[start:]
