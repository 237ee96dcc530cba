"""Implements the port on a RabbitMQ cluster."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, TypeVar, cast

from aiormq.abc import AbstractChannel

from ....core.broker import Broker
from ....core.errors import ChannelError
from ....core.message.model import Numbered, Table
from ...keyed_locks import KeyedLocks
from ...requests import Kind
from ...tasks import Tasks
from ..errors import NotOnThisEngine
from ..port import (
    BindingSpec,
    Delivery,
    ExchangeSpec,
    QueueInfo,
    QueueSpec,
    Stream,
    TransactionLog,
    UnackedMessage,
)
from . import bindings, check, topology
from .address import EngineAddress
from .bulk import AmqpBulkConsumer
from .connections import TAKEN_OVER, Connections, connection_name
from .consuming import AHEAD_OWN, AHEAD_SHARED, AmqpConsumption
from .delivery import AmqpDelivery
from .exchanges import Exchanges
from .failures import translated
from .management import Management
from .messages import AmqpPublisher
from .mirror import Mirror
from .probing import DeliveryProbes
from .returned import ReturnedNumbers
from .scan import scan
from .streams import AmqpStream, AmqpStreams

MAX_MESSAGE_BYTES: Final = 128 * 1024 * 1024
"""RabbitMQ's default."""
STOP_S: Final = 3.0
DISTRIBUTING: Final = ("x-consistent-hash", "x-modulus-hash", "x-random", "x-jms-topic")
_QUEUE_COLUMNS: Final = "name,durable,auto_delete,exclusive,arguments,messages_ready,consumers"

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)


class AmqpEngine(AmqpPublisher):
    """Implements `Engine`. The broker is the register of virtual hosts and users of this process;
    `on_taken_over` is called when another hub has closed this one's connections."""

    def __init__(
        self, address: EngineAddress, broker: Broker, hub_id: str, on_taken_over: Callable[[], None]
    ) -> None:
        self._broker, self._address = broker, address
        self.on_short: Callable[[], None] = lambda: None
        self._connections = Connections(address, hub_id, on_taken_over)
        self._management = Management(address)
        exchanges = Exchanges(self._management, self.bind)
        self._mirror = Mirror(self._management, broker, exchanges, address.user)
        super().__init__(self._connections, exchanges, self._mirror)
        self._channels: dict[str, AbstractChannel] = {}
        """The channel for declarations in each virtual host."""
        self._calls: KeyedLocks[str] = KeyedLocks()
        self._prepared: set[str] = set()
        self._consumers: dict[tuple[str, str], AmqpConsumption] = {}
        self._returned = ReturnedNumbers()
        self._probes = DeliveryProbes(self._connections)
        self._stream_connections = Connections(address, hub_id, on_taken_over)
        """Of their own: what a reader is sent does not hold up deliveries."""
        self._streams = AmqpStreams(
            self._stream_connections,
            self._management,
            lambda vhost: self.declare_exchange(vhost, topology.STREAMS),
            self.bind,
        )
        self._tasks = Tasks()

    @property
    def is_reachable(self) -> bool:
        return self._mirror.is_current

    async def check(self) -> Sequence[str]:
        """Returns why the cluster can't keep the hub's promises, empty if it can.

        Raises `EngineUnavailable`.
        """
        return await check.findings(self._management, self._address.user)

    async def start(self) -> None:
        """Reads what the cluster has, and connects. Raises `EngineUnavailable`."""
        await self._mirror.start()
        for vhost in self.vhosts()[:1]:
            await self._prepare(vhost)

    async def stop(self) -> None:
        await self._mirror.stop()
        with suppress(TimeoutError):  # RabbitMQ returns the messages of a channel that is closed
            async with asyncio.timeout(STOP_S):
                for one in tuple(self._consumers.values()):
                    await (one.ended.wait() if one.is_cancelled else one.close())
        await self._tasks.stop()
        await self._probes.stop()
        await self._connections.close()
        await self._stream_connections.close()
        await self._management.close()

    async def take_over(self, hub_id: str) -> None:
        """Closes another hub's connections: what it has not acknowledged returns to its queues."""
        await self._management.close_connections(connection_name(hub_id), TAKEN_OVER)

    def vhosts(self) -> Sequence[str]:
        return list(self._broker.vhosts)

    def max_message_bytes(self) -> int:
        return min(MAX_MESSAGE_BYTES, self._broker.limits.max_message_bytes)

    def shortage(self) -> str:
        return str(self._mirror.shortage or "")

    # -- exchanges

    async def exchange(self, vhost: str, name: str) -> ExchangeSpec | None:
        self._require_vhost(vhost)
        return await self._exchanges.find(vhost, name) if name else None

    async def distributes(self, vhost: str, exchange: str) -> bool:
        found = await self.exchange(vhost, exchange)
        return found is not None and found.type in DISTRIBUTING

    async def declare_exchange(self, vhost: str, spec: ExchangeSpec) -> None:
        is_known = (vhost, spec.name) in self._exchanges.known
        await self._call(
            vhost,
            lambda channel: channel.exchange_declare(
                spec.name, exchange_type=spec.type, durable=spec.durable,
                auto_delete=spec.auto_delete, internal=spec.internal,
                arguments=bindings.arguments_of(spec.arguments),
            ),
        )  # fmt: skip
        self._exchanges.known[vhost, spec.name] = spec
        if not is_known:
            await self._exchanges.declared(vhost, spec.name)

    async def delete_exchange(self, vhost: str, name: str, *, if_unused: bool = False) -> None:
        await self._call(vhost, lambda channel: channel.exchange_delete(name, if_unused=if_unused))
        self._exchanges.deleted(vhost, name)

    # -- queues

    async def queue(self, vhost: str, name: str) -> QueueInfo | None:
        self._require_vhost(vhost)
        found = name and await self._management.get("queues", vhost, name, columns=_QUEUE_COLUMNS)
        if not found:
            return None
        spec = QueueSpec(
            name, found["durable"], found["auto_delete"], found["exclusive"],
            dict(found["arguments"]),
        )  # fmt: skip
        try:
            counts = await self._call(
                vhost, lambda channel: channel.queue_declare(name, passive=True)
            )
        except ChannelError as error:
            if error.code == 404:
                return None
            if error.code != 405:
                raise
            return QueueInfo(spec, found.get("messages_ready", 0), found.get("consumers", 0))
        return QueueInfo(spec, counts.message_count or 0, counts.consumer_count or 0)

    async def declare_queue(self, vhost: str, spec: QueueSpec) -> QueueInfo:
        if not spec.name:
            prefix = topology.LIVE_PREFIX if spec.exclusive else "gen-"
            spec = replace(spec, name=prefix + secrets.token_hex(16))
        if spec.name.startswith(topology.OWN_PREFIX):
            await self._prepare(vhost)
        made = topology.own_queue(spec)
        answer = await self._call(
            vhost,
            lambda channel: channel.queue_declare(
                made.name, durable=made.durable, exclusive=made.exclusive,
                auto_delete=made.auto_delete, arguments=bindings.arguments_of(made.arguments),
            ),
        )  # fmt: skip
        return QueueInfo(made, answer.message_count or 0, answer.consumer_count or 0)

    async def delete_queue(
        self, vhost: str, name: str, *, if_unused: bool = False, if_empty: bool = False
    ) -> int:
        answer = await self._call(
            vhost,
            lambda channel: channel.queue_delete(name, if_unused=if_unused, if_empty=if_empty),
        )
        return answer.message_count or 0

    async def stream(self, vhost: str, kind: Kind, name: str) -> AmqpStream | None:
        self._require_vhost(vhost)
        return await self._streams.find(vhost, kind, name)

    def captures(self, vhost: str) -> AsyncIterator[BindingSpec]:
        return self._streams.captures(vhost)

    def archived_streams(self, vhost: str) -> Iterator[tuple[Kind, str, Stream]]:
        return iter(())

    # -- bindings

    async def bind(self, vhost: str, binding: BindingSpec) -> None:
        await self._call(vhost, lambda channel: bindings.bind(channel, binding))

    async def unbind(self, vhost: str, binding: BindingSpec) -> None:
        await self._call(vhost, lambda channel: bindings.unbind(channel, binding))

    async def route_count(self, vhost: str, exchange: str, routing_key: str) -> int:
        """Counts bindings: those of a direct or topic exchange that match the key, else all."""
        spec = await self._exchanges.require(vhost, exchange)
        found = await self._management.get(
            "exchanges", vhost, exchange, "bindings", "source", columns="routing_key"
        )
        keys = [one["routing_key"] for one in found or ()]
        return bindings.count_matching(spec.type, keys, routing_key)

    def watch_deleted(self, deleted: Callable[[str, Kind, str], Iterator[None]]) -> None:
        """Calls it a few seconds after an exchange was deleted by others; a queue that is deleted
        cancels its consumer."""
        self._exchanges.watch_deleted(deleted)

    def watch_declared(self, declared: Callable[[str, Kind, str], Iterator[BindingSpec]]) -> None:
        """Makes the bindings a few seconds after an exchange was declared by others."""
        self._exchanges.watch_declared(declared)

    # -- messages

    def has_transactions(self) -> bool:
        return False

    def transactions(self, vhost: str) -> TransactionLog:
        raise NotOnThisEngine(
            "a transaction over all queues", instead="publish messages or batches to /endpoint"
        )

    async def consume(
        self,
        vhost: str,
        queue: str,
        *,
        prefetch: int,
        on_delivery: Callable[[Delivery], None],
        on_cancel: Callable[[], Awaitable[None]],
        arguments: Table | None = None,
    ) -> AmqpConsumption:
        before = self._consumers.get((vhost, queue))
        if before is not None and before.is_cancelled:
            await before.ended.wait()  # what it returns comes first
        await self._prepare(vhost)
        await self.bind(vhost, topology.return_binding(queue))
        is_own = queue.startswith(topology.OWN_PREFIX)
        consumer = AmqpConsumption(
            self._connections, vhost, queue,
            prefetch=prefetch, ahead=AHEAD_OWN if is_own else AHEAD_SHARED, is_shared=not is_own,
            on_delivery=on_delivery, on_cancel=on_cancel, arguments=arguments,
            returned=self._returned, on_short=self.on_short,
        )  # fmt: skip
        await consumer.start()
        self._probes.start()
        self._consumers[vhost, queue] = consumer
        self._tasks.own(self._forget(consumer, (vhost, queue)))
        return consumer

    async def _forget(self, consumer: AmqpConsumption, place: tuple[str, str]) -> None:
        await consumer.ended.wait()
        if self._consumers.get(place) is consumer:
            del self._consumers[place]

    async def consume_unacked(
        self,
        vhost: str,
        queue: str,
        *,
        on_messages: Callable[[Sequence[Numbered]], None],
        on_cancel: Callable[[Exception | None], None],
    ) -> AmqpBulkConsumer:
        consumer = AmqpBulkConsumer(self._connections, vhost, queue, on_messages, on_cancel)
        await consumer.start()
        self._probes.start()
        return consumer

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in cast(Sequence[AmqpDelivery], deliveries):
            delivery.ack()

    async def scan(
        self,
        vhost: str,
        queue: str,
        look: Callable[[Sequence[UnackedMessage]], Awaitable[bool]],
        *,
        limit: int,
    ) -> bool:
        async with self._calls.of(f"{vhost}\n{queue}"):
            return await scan(self._connections, vhost, queue, look, limit)

    # -- calls

    def _require_vhost(self, vhost: str) -> None:
        if vhost not in self._broker.vhosts:
            raise ChannelError(404, f"no vhost '{vhost}'")

    async def _call(
        self, vhost: str, operation: Callable[[AbstractChannel], Awaitable[Answer]]
    ) -> Answer:
        """Runs a declaration or deletion: one at a time, for one that fails closes its channel."""
        self._require_vhost(vhost)
        async with self._calls.of(vhost):
            channel = self._channels.get(vhost)
            if channel is None or channel.is_closed:
                channel = self._channels[vhost] = await self._connections.channel(vhost)
            with translated():
                return await operation(channel)

    async def _prepare(self, vhost: str) -> None:
        """Declares, once, where messages return from retry queues."""
        if vhost in self._prepared:
            return
        for exchange in (topology.GONE, topology.RETURNED):
            await self.declare_exchange(vhost, exchange)
        self._prepared.add(vhost)
        await self.declare_queue(vhost, topology.GONE_QUEUE)
        await self.bind(vhost, topology.GONE_BINDING)
