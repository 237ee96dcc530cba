"""What the hub needs of a message engine, and no more.

Any AMQP 0-9-1 broker can be behind it: `embedded` is the core in this process, `amqp` (to
come) a RabbitMQ cluster. Every call may wait for a network, so all are coroutines; errors are
`warrenmq.core.errors.ChannelError` with the AMQP reply code whichever engine raised them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from ...core.message.model import Message, Properties, Table
from ..requests import Kind

__all__ = [
    "BatchOutcome", "BindingSpec", "Consumption", "Delivery", "Engine", "ExchangeSpec", "Message",
    "Outcome", "Portion", "Properties", "QueueInfo", "QueueSpec", "Taken",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExchangeSpec:
    name: str
    type: str = "fanout"
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: Table = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """An empty name asks the engine to make one (`amq.gen-...`)."""

    name: str
    durable: bool = True
    auto_delete: bool = False
    exclusive: bool = False
    arguments: Table = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueInfo:
    spec: QueueSpec
    messages_ready: int
    consumers: int


@dataclass(frozen=True, slots=True)
class BindingSpec:
    source: str
    destination: str
    destination_is_queue: bool = True
    routing_key: str = ""
    arguments: Table = field(default_factory=dict)


class Outcome(Enum):
    """What became of a publish, once the engine has confirmed it."""

    ROUTED = "routed"
    UNROUTED = "unrouted"
    """Confirmed, but no queue wanted it."""
    REJECTED = "rejected"
    """A queue nacked it (overflow `reject-publish`)."""
    NOT_KEPT = "not kept"
    """Nacked, because the disk takes no more."""


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """What became of the messages of a batch, once the engine has confirmed them."""

    unrouted: int = 0
    rejected: int = 0
    is_kept: bool = True
    """False if the disk took none of them."""


@dataclass(frozen=True, slots=True)
class Portion:
    """Neighbours in a batch that differ in nothing but their bodies."""

    routing_key: str
    properties: Properties
    bodies: Sequence[bytes]


class Taken(Protocol):
    """A message that a queue holds for the moment; exactly one of `ack`, `nack` is called, once."""

    @property
    def message(self) -> Message: ...
    @property
    def sequence(self) -> int:
        """Identity of the message in its queue: the same over redeliveries, never reused."""

    def ack(self) -> None: ...
    def nack(self, *, requeue: bool) -> None: ...


class Delivery(Taken, Protocol):
    """A message handed to a consumer."""

    @property
    def age_s(self) -> float:
        """Seconds since it came to its queue."""

    @property
    def time_to_live_s(self) -> float | None:
        """How old it may become in its queue, by the queue's time to live and its own expiration,
        None without either."""

    def expire(self, original: Message) -> None:
        """Instead of `ack`: it is dropped, or where its queue has a dead-letter exchange the
        original goes there, as whatever expires in that queue."""

    def release(self) -> None:
        """Lets the next message come before this one is settled; at most once matters.

        Whoever waits for something beside the target, as for a batch of outcomes to be durable,
        need not hold up what is behind.
        """


class Consumption(Protocol):
    """A running consumer."""

    async def cancel(self) -> None:
        """Stops deliveries; those not settled yet stay valid. An auto-delete queue stays too: who
        pauses is still somebody who wants its messages."""

    async def end(self) -> None:
        """The same for good: the last consumer takes an auto-delete queue with it."""


class Engine(Protocol):
    """Raises `ChannelError` 403, 404, 405 or 406 where AMQP would close a channel with it."""

    async def exchange(self, vhost: str, name: str) -> ExchangeSpec | None: ...
    async def declare_exchange(self, vhost: str, spec: ExchangeSpec) -> None: ...
    async def delete_exchange(self, vhost: str, name: str, *, if_unused: bool = False) -> None: ...

    async def queue(self, vhost: str, name: str) -> QueueInfo | None: ...
    async def declare_queue(self, vhost: str, spec: QueueSpec) -> QueueInfo: ...
    async def delete_queue(
        self, vhost: str, name: str, *, if_unused: bool = False, if_empty: bool = False
    ) -> int:
        """Gives the number of ready messages that went with it."""

    async def bind(self, vhost: str, binding: BindingSpec) -> None: ...
    async def unbind(self, vhost: str, binding: BindingSpec) -> None: ...

    async def route_count(self, vhost: str, exchange: str, routing_key: str) -> int:
        """How many queues a message with this key and no headers would go to."""

    def shortage(self) -> str:
        """Why publishers have to wait, memory or disk being low; empty where they need not."""

    def watch_deleted(self, deleted: Callable[[str, Kind, str], Iterator[None]]) -> None:
        """Calls `deleted(vhost, kind, name)` soon after an exchange (x) or queue (q) has gone,
        with its bindings, and takes the steps that it gives, beside other work; an engine that is
        not told of it looks now and then."""

    def watch_declared(self, declared: Callable[[str, Kind, str], Iterator[BindingSpec]]) -> None:
        """Calls `declared(vhost, kind, name)` when an exchange or queue is made, and makes the
        bindings that it gives, beside other work, before the declaration is answered: what is
        published there from the first message on is routed by them. One that can't be made is left
        out; an engine that is not told looks now and then."""

    async def publish(
        self,
        vhost: str,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
        *,
        queue: str | None = None,
    ) -> Outcome:
        """Publishes and waits for the confirm.

        With `queue` the message goes straight to that queue and keeps `routing_key` as its
        key; `exchange` is then "".
        """

    async def publish_to(
        self,
        vhost: str,
        queues: Sequence[str],
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> Outcome:
        """Publishes one message straight to those of the queues that exist, and waits for the
        confirm; the message keeps `routing_key` as its key."""

    async def publish_batch(
        self,
        vhost: str,
        exchange: str,
        portions: Sequence[Portion],
        *,
        queue: str | None = None,
    ) -> BatchOutcome:
        """Publishes all bodies in order, as `publish` would, and waits for their confirms."""

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
        """`on_delivery` must not batch; `on_cancel` is called when the queue goes away."""

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """As `ack` of each, and cheaper: to be preferred for many."""

    async def scan(
        self,
        vhost: str,
        queue: str,
        look: Callable[[Sequence[Taken]], Awaitable[bool]],
        *,
        limit: int,
    ) -> bool:
        """Shows the messages that are ready now, or the `limit` oldest, a piece at a time.

        What `look` acks of a piece leaves the queue. All else goes back to its place when the
        scan is over, also when that is the end of the process; until then others don't get it.
        `look` gives False to end the scan. Gives whether all of them were shown. A second scan
        of the same queue waits for the first. Raises `ChannelError` 404 without the queue.
        """
