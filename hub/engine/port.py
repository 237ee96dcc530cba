"""What the hub needs of a message engine, and no more.

Any AMQP 0-9-1 broker can be behind it: `embedded` is the core in this process, `amqp` (to
come) a RabbitMQ cluster. Every call may wait for a network, so all are coroutines; errors are
`warren.core.errors.ChannelError` with the AMQP reply code whichever engine raised them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from ...core.model import Message, Properties, Table

__all__ = [
    "BindingSpec", "Consumption", "Delivery", "Engine", "ExchangeSpec", "Message", "Outcome",
    "Properties", "QueueInfo", "QueueSpec",
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


class Delivery(Protocol):
    """A message handed to a consumer; exactly one of `ack`, `nack` is called, once."""

    @property
    def message(self) -> Message: ...
    @property
    def sequence(self) -> int:
        """Identity of the message in its queue: the same over redeliveries, never reused."""

    def ack(self) -> None: ...
    def nack(self, *, requeue: bool) -> None: ...


class Consumption(Protocol):
    """A running consumer."""

    async def cancel(self) -> None:
        """Stops deliveries; those not settled yet stay valid."""


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
        """`on_delivery` must not block; `on_cancel` is called when the queue goes away."""
