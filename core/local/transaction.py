"""Transactions of an application: publishes that take effect together, and at most once."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ..clock import wall_ms
from ..definitions.committed import CommittedTransaction
from ..errors import ChannelError, precondition_failed
from ..message.framing import FramedMessages, publish_frame
from ..message.model import Row
from ..message.queue_entry import MessageRange
from ..publish.buffer import BATCHED_BYTES, PublishBuffer
from ..publish.buffered_batch import BATCH_BYTES, BufferedBatch
from ..publish.checks import check_header
from ..publish.single import RoutedPublish, publish_one
from ..publish.target import PublishTarget, decode_key, exchange_target
from ..wire import properties as wire
from ..wire.properties import MessageAttributes
from .capacity_check import CapacityCheck

if TYPE_CHECKING:
    from ..auth import User
    from ..broker import Broker
    from ..queue.queue import Queue
    from ..vhost import VirtualHost

_PROPERTY_LISTS_MAX: Final = 1_000
_PROPERTY_LIST_KEPT_BYTES: Final = 1_024
_TARGETS_MAX: Final = 4_096
"""Routing keys whose routes are kept; those of others are looked up again for each run of rows."""


class LocalTransaction:
    """Publishes to one exchange by one user, None for the server itself; a `Publisher`.

    `add` checks, routes and buffers messages, by the rules for every publish; `commit` publishes
    all of them as one group of the log.
    """

    __slots__ = (
        "_attributes", "_bytes", "_exchange", "_max_bytes", "_publishes", "_room", "_targets",
        "broker", "messages", "unrouted_count", "user", "vhost",
    )  # fmt: skip

    number: Final = 0
    confirming: Final = True
    reply_name: Final = None
    counted: Final = None

    def __init__(
        self,
        broker: Broker,
        vhost: VirtualHost,
        user: User | None,
        exchange: str,
        max_bytes: int,
    ) -> None:
        self.broker = broker
        self.vhost = vhost
        self.user = user
        self.messages = 0
        self.unrouted_count = 0
        size = len(exchange.encode())
        if size > 255:
            raise precondition_failed(f"an exchange name of {size} bytes; at most 255 fit")
        self._exchange = exchange
        self._max_bytes = max_bytes
        self._publishes = PublishBuffer(broker)
        self._bytes = 0
        self._targets: dict[bytes, tuple[PublishTarget, bytes, int]] = {}
        """By routing key: the publish target, its method frame, and the maximum size of a message
        in a batch."""
        self._attributes: dict[bytes, MessageAttributes] = {}
        self._room = CapacityCheck(vhost)

    @property
    def author(self) -> User | None:
        return self.user

    @property
    def transaction(self) -> LocalTransaction:
        return self

    def add(self, rows: Iterable[Row]) -> None:
        """Buffers messages, in order.

        Raises:
            ChannelError: 404 for an unknown exchange, 403 without permission, 406 for properties
                that are refused or a body above the server's limit, 311 above `max_bytes`.
            ConnectionFault: 502 for a key or properties that can't be decoded.
        """
        known, attributes_of = self._targets, self._attributes
        batch: BufferedBatch | None = None
        last: MessageAttributes | None = None
        queues: tuple[Queue, ...] | None = None
        frames, share = FramedMessages(), array("I")
        memory = 0
        for key, properties, body in rows:
            found = known.get(key)
            if found is None or found[0].route.dead:
                found = self._target(key)
            target, frame, max_bytes = found
            attributes = attributes_of.get(properties) or self._read_attributes(properties)
            self.messages += 1
            size = len(body) + len(properties)
            if size > max_bytes or attributes.inspected:
                batch = None
                publish_one(target, attributes, properties, body)
                continue
            if batch is None or attributes is not last or frames.size_bytes >= BATCH_BYTES:
                batch, last, queues = self._batch_for(target, attributes), attributes, None
                frames = batch.frames
            if target.queues is not queues:
                queues = target.queues
                share = batch.share(queues)
            share.append(frames.add(frame, properties, body))
            if not queues:
                self.unrouted_count += 1
            memory += size + BATCHED_BYTES
        self._take(memory)

    def _batch_for(self, target: PublishTarget, attributes: MessageAttributes) -> BufferedBatch:
        return self._publishes.batch_for(
            RoutedPublish(
                target, target.envelope, b"", b"", attributes, target.queues,
                [target.routing_key], {}, (),
            )
        )  # fmt: skip

    def buffer(self, publish: RoutedPublish) -> None:
        if not publish.queues:
            self.unrouted_count += 1
        self._room.count(publish.queues, len(publish.body))
        self._take(self._publishes.add(publish))

    def _take(self, size: int) -> None:
        self._bytes += size
        self.broker.memory.resident_bytes += size
        if self._bytes > self._max_bytes:
            raise ChannelError(
                311,
                f"the transaction would hold more than max_transaction_bytes, which is "
                f"{self._max_bytes} bytes of memory, after {self.messages} rows; publish fewer "
                "rows at once, or raise the setting",
            )

    def commit(self, series: bytes, transaction_number: int) -> int:
        """Publishes all messages and remembers the transaction, as one group of the log; returns
        the commit number to wait for.

        Raises `QueueFull` if a queue would reject a message; nothing was published then.
        """
        # One step, not slices: between these, consumers would get a part of the transaction, and
        # what others publish would belong to its group, which a crash before its end discards.
        self._room.check()
        broker = self.broker
        last = CommittedTransaction(transaction_number, self.messages, wall_ms(broker.clock))
        with broker.store.together():
            self._publishes.publish_all()
            self.vhost.committed.store(series, last)
        self._release()
        broker.on_work()
        return broker.store.barrier()

    def drop(self) -> None:
        """Drops the buffered messages, in slices: freeing very many at once takes a while."""
        dropped, self._publishes = self._publishes, PublishBuffer(self.broker)
        self.broker.slices.start(dropped.drop())
        self._release()
        self.broker.on_work()

    def published(self, count: int, commit: int) -> None:
        """Does nothing: the commit counts."""

    def refused(self) -> None:
        """Does nothing: `CapacityCheck.check` has refused the transaction before."""

    def send_return(self, code: int, text: str, returned: MessageRange) -> None:
        """Does nothing: messages without a route are counted when they are buffered."""

    def _target(self, key: bytes) -> tuple[PublishTarget, bytes, int]:
        if len(key) > 255:
            raise precondition_failed(f"a routing key of {len(key)} bytes; at most 255 fit")
        keep = len(self._targets) < _TARGETS_MAX or key in self._targets
        target = exchange_target(self, self._exchange, decode_key(key), flags=0, watched=keep)
        if not target.checks_each:
            self._room.note_uncounted(target.queues)
        found = target, publish_frame(target.envelope), target.batched_max_bytes
        if keep:
            self._targets[key] = found
        return found

    def _read_attributes(self, properties: bytes) -> MessageAttributes:
        known = self._attributes
        found = known.get(properties)
        if found is None:
            check_header(len(properties), self.broker.limits.frame_max)
            if len(known) >= _PROPERTY_LISTS_MAX:
                known.clear()
            found = wire.read_attributes(properties, 0, len(properties))
            if len(properties) <= _PROPERTY_LIST_KEPT_BYTES:
                known[properties] = found
        return found

    def _release(self) -> None:
        for target, _, _ in self._targets.values():
            target.route.release()
        self._targets.clear()
        self.broker.memory.resident_bytes -= self._bytes
        self._bytes = 0
