"""The port between the hub and a message engine: `embedded`, the core in this process.

Most calls may wait, so they are coroutines; errors are `ChannelError` with the AMQP reply code.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from ...core.definitions.archives import ArchiveReport
from ...core.message.model import Message, Numbered, Properties, ReadMessages, Row, Table
from ...core.message.stream_read import StreamRead
from ..requests import Kind
from .logs import BulkConsumer, Stream, TransactionLog
from .values import (
    BatchOutcome,
    BatchPart,
    BindingSpec,
    ExchangeSpec,
    PublishOutcome,
    QueueInfo,
    QueueSpec,
    SinglePublish,
    StreamArchives,
    StreamState,
    TransactionOutcome,
)

if TYPE_CHECKING:
    from ...core.auth import User

__all__ = [
    "ArchiveReport",
    "BatchOutcome",
    "BatchPart",
    "BindingSpec",
    "BulkConsumer",
    "Consumption",
    "Delivery",
    "Engine",
    "ExchangeSpec",
    "Message",
    "Numbered",
    "Properties",
    "PublishOutcome",
    "QueueInfo",
    "QueueSpec",
    "ReadMessages",
    "Row",
    "SinglePublish",
    "Stream",
    "StreamArchives",
    "StreamRead",
    "StreamState",
    "TransactionLog",
    "TransactionOutcome",
    "UnackedMessage",
]  # fmt: skip


class UnackedMessage(Protocol):
    """An unacknowledged message of a queue; exactly one of `ack`, `nack` is called, once."""

    @property
    def message(self) -> Message: ...
    @property
    def sequence(self) -> int:
        """The sequence number of the message: the same over redeliveries, never reused."""

    def ack(self) -> None: ...
    def nack(self, *, requeue: bool) -> None: ...


class Delivery(UnackedMessage, Protocol):
    """A message that was delivered to a consumer."""

    @property
    def age_s(self) -> float:
        """The seconds since it arrived in its queue."""

    @property
    def time_to_live_s(self) -> float | None:
        """The seconds that it may stay in its queue, by the queue's and its own limit, if any."""

    def expire(self, original: Message) -> None:
        """Settles it as an expired message: if its queue has a dead-letter exchange, `original` is
        published there."""

    def release(self) -> None:
        """Lets the next message be delivered before this one is settled, as while its outcome
        becomes durable. Repeating it has no effect."""


class Consumption(Protocol):
    """A running consumer."""

    async def cancel(self) -> None:
        """Stops deliveries; those in flight stay valid. An auto-delete queue stays too."""

    async def end(self) -> None:
        """Stops deliveries, and deletes an auto-delete queue with its last consumer."""

    async def close(self) -> None:
        """Stops deliveries as `end` does, and returns to the queue what is not settled."""


class Engine(Protocol):
    """The message engine: all that the hub asks of a broker. Raises `ChannelError` 403, 404, 405 or
    406 as AMQP closes a channel."""

    on_short: Callable[[], None]
    """Called when a queue soon sends no more messages unless some are settled."""

    def vhosts(self) -> Sequence[str]: ...
    async def exchange(self, vhost: str, name: str) -> ExchangeSpec | None: ...
    async def distributes(self, vhost: str, exchange: str) -> bool:
        """Returns whether the exchange gives each message to one of its bindings."""

    async def declare_exchange(self, vhost: str, spec: ExchangeSpec) -> None: ...
    async def delete_exchange(self, vhost: str, name: str, *, if_unused: bool = False) -> None: ...

    async def queue(self, vhost: str, name: str) -> QueueInfo | None: ...
    async def declare_queue(self, vhost: str, spec: QueueSpec) -> QueueInfo: ...
    async def delete_queue(
        self, vhost: str, name: str, *, if_unused: bool = False, if_empty: bool = False
    ) -> int:
        """Returns the number of ready messages that were deleted with it."""

    async def stream(self, vhost: str, kind: Kind, name: str) -> Stream | None:
        """Returns the stored messages of a queue (q) or exchange (x) as it is now; None if it does
        not exist, or is no durable stream."""

    def captures(self, vhost: str) -> AsyncIterator[BindingSpec]:
        """Yields the bindings of durable stream queues."""

    def archived_streams(self, vhost: str) -> Iterator[tuple[Kind, str, Stream]]:
        """Yields kind, name and stream of those that archives have reported on, or that wait for
        one."""

    async def bind(self, vhost: str, binding: BindingSpec) -> None: ...
    async def unbind(self, vhost: str, binding: BindingSpec) -> None: ...

    async def route_count(self, vhost: str, exchange: str, routing_key: str) -> int:
        """Returns how many queues a message with this key and no headers would be routed to."""

    def max_message_bytes(self) -> int:
        """Returns how long the body of a message may be."""

    def shortage(self) -> str:
        """Returns the alarm for which publishers have to wait, "" if there is none."""

    def watch_deleted(self, deleted: Callable[[str, Kind, str], Iterator[None]]) -> None:
        """Calls `deleted(vhost, kind, name)` after an exchange (x) or queue (q) was deleted with
        its bindings, and runs its steps in slices."""

    def watch_declared(self, declared: Callable[[str, Kind, str], Iterator[BindingSpec]]) -> None:
        """Calls `declared(vhost, kind, name)` when an exchange or queue is declared, and makes the
        bindings that it yields, in slices, before the declaration is answered: all messages
        published there are routed by them. A binding that can't be made is left out. Several
        functions are called one after the other."""

    async def publish(
        self,
        user: User | None,
        vhost: str,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
        *,
        queue: str | None = None,
    ) -> PublishOutcome:
        """Publishes with the user's permissions, None for the hub itself, and waits for the
        confirm. During an alarm only the hub itself publishes; others get `Shortage`.

        With `queue` the message is enqueued there, with `routing_key` as its key; `exchange` is
        then "".
        """

    async def publish_to(
        self,
        vhost: str,
        queues: Sequence[str],
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> PublishOutcome:
        """Enqueues one message of the hub itself in those of the queues that exist, with
        `routing_key` as its key, and waits for the confirm."""

    async def publish_batch(
        self,
        user: User | None,
        vhost: str,
        exchange: str,
        parts: Sequence[BatchPart],
        *,
        queue: str | None = None,
    ) -> BatchOutcome:
        """Publishes all bodies in order, as `publish` would, and waits for their confirms. Nothing
        is published if one of the keys is not permitted."""

    async def publish_each(
        self,
        user: User | None,
        vhost: str,
        publishes: Sequence[SinglePublish],
        *,
        are_copies: bool = False,
    ) -> Sequence[PublishOutcome | Exception]:
        """Publishes in order, with the user's permissions, and waits for all confirms at once; in
        the place of each message that may not be published is its `ChannelError`, `Shortage` or
        `ValueError`.

        The user-ids of copies, messages that were published before, are not checked again.
        """

    def has_transactions(self) -> bool:
        """Returns whether the engine records in one step that messages are published, and what
        for. Without that a crash may repeat them (`SinglePublish.is_repeatable`)."""

    def transactions(self, vhost: str) -> TransactionLog:
        """Returns what publishes the transactions of a virtual host. Raises `NotOnThisEngine`."""

    async def consume(
        self,
        vhost: str,
        queue: str,
        *,
        prefetch: int,
        on_delivery: Callable[[Delivery], None],
        on_cancel: Callable[[], Awaitable[None]],
        arguments: Table | None = None,
    ) -> Consumption:
        """Starts a consumer; `on_cancel` is called when the queue is deleted."""

    async def consume_unacked(
        self,
        vhost: str,
        queue: str,
        *,
        on_messages: Callable[[Sequence[Numbered]], None],
        on_cancel: Callable[[Exception | None], None],
    ) -> BulkConsumer:
        """Starts a consumer without acks; `on_cancel` is called when the queue is deleted, and
        with the error that `on_messages` raised."""

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledges many deliveries, cheaper than `ack` of each."""

    async def scan(
        self,
        vhost: str,
        queue: str,
        look: Callable[[Sequence[UnackedMessage]], Awaitable[bool]],
        *,
        limit: int,
    ) -> bool:
        """Calls `look` with the ready messages, or the `limit` oldest of them, in chunks. Returns
        whether all of them were shown.

        Messages that `look` acknowledges leave the queue. All others return to their places when
        the scan is over; until then consumers don't get them. `look` returns False to end the
        scan. A second scan of the same queue waits for the first. Raises `ChannelError` 404 if
        there is no such queue.
        """
