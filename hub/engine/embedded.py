"""The engine in this process: the hub's calls become calls of the core's broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import cast
from weakref import WeakValueDictionary

from ...core.auth import User
from ...core.broker import Broker
from ...core.errors import ChannelError, precondition_failed
from ...core.message.model import Properties, Table
from ...core.publish.local import LocalDelivery, LocalPublish, LocalSession, ack_all
from ...core.publish.local_batch import LocalBatch
from ...core.queue.queue import Queue
from ...core.route.exchange import Exchange
from ...core.vhost import VirtualHost
from ..requests import Kind
from .port import (
    BatchOutcome,
    BindingSpec,
    Delivery,
    ExchangeSpec,
    Outcome,
    Portion,
    QueueInfo,
    QueueSpec,
    Taken,
)
from .scan import Scan

PORTIONS_AT_ONCE = 500
_LETTERS: dict[str, Kind] = {"exchange": "x", "queue": "q"}
"""Of a batch, between two rounds of the loop: each may cost as much as a publish by itself."""

log = logging.getLogger(__name__)


class EmbeddedEngine:
    """Implements `Engine` on a `Broker` whose turns run in the same event loop."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._user = User("", tags=("impersonator",))
        self._cancels: set[asyncio.Future[None]] = set()
        self._scans: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def _vhost(self, name: str) -> VirtualHost:
        vhost = self._host(name)
        self._broker.tick()
        return vhost

    def _host(self, name: str) -> VirtualHost:
        """Within a turn, which has its time already."""
        vhost = self._broker.vhosts.get(name)
        if vhost is None:
            raise ChannelError(404, f"no vhost '{name}'")
        return vhost

    def shortage(self) -> str:
        return self._broker.alarms.reason

    # -- exchanges

    async def exchange(self, vhost: str, name: str) -> ExchangeSpec | None:
        found = self._vhost(vhost).exchanges.get(name)
        if found is None:
            return None
        return ExchangeSpec(
            found.name,
            found.type_name,
            found.durable,
            found.auto_delete,
            found.internal,
            dict(found.arguments),
        )

    async def declare_exchange(self, vhost: str, spec: ExchangeSpec) -> None:
        host = await self._is_free(vhost, "exchange", spec.name)
        host.declare_exchange(
            spec.name,
            spec.type,
            durable=spec.durable,
            auto_delete=spec.auto_delete,
            internal=spec.internal,
            arguments=spec.arguments,
        )
        await self._is_free(vhost, "exchange", spec.name)

    async def delete_exchange(self, vhost: str, name: str, *, if_unused: bool = False) -> None:
        host = await self._is_free(vhost, "exchange", name)
        host.delete_exchange(name, if_unused=if_unused)
        await self._is_free(vhost, "exchange", name)

    # -- queues

    async def queue(self, vhost: str, name: str) -> QueueInfo | None:
        found = self._vhost(vhost).queues.get(name)
        return None if found is None else _info(found)

    async def declare_queue(self, vhost: str, spec: QueueSpec) -> QueueInfo:
        host = await self._is_free(vhost, "queue", spec.name)
        declared = host.declare_queue(
            spec.name,
            durable=spec.durable,
            exclusive=spec.exclusive,
            auto_delete=spec.auto_delete,
            arguments=spec.arguments,
            owner=self,
        )
        await self._is_free(vhost, "queue", spec.name)
        return _info(declared)

    async def delete_queue(
        self, vhost: str, name: str, *, if_unused: bool = False, if_empty: bool = False
    ) -> int:
        host = await self._is_free(vhost, "queue", name)
        if name in host.queues:
            self._broker.settle(host.queues[name])
        deleted = host.delete_queue(name, if_unused=if_unused, if_empty=if_empty, owner=self)
        await self._is_free(vhost, "queue", name)
        return deleted

    # -- bindings

    async def bind(self, vhost: str, binding: BindingSpec) -> None:
        bound: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done = partial(_done, bound)
        await self._are_free(vhost, binding)
        host, source, destination = self._ends(vhost, binding)
        host.bind(source, destination, binding.routing_key, binding.arguments, done)
        self._broker.on_work()
        await bound

    def _bind_made(self, host: VirtualHost, made: Exchange | Queue, binding: BindingSpec) -> None:
        """An exchange has no name yet."""
        source, destination = self._ends_in(host, binding, made)
        host.bind(source, destination, binding.routing_key, binding.arguments)

    async def unbind(self, vhost: str, binding: BindingSpec) -> None:
        await self._are_free(vhost, binding)
        host, source, destination = self._ends(vhost, binding)
        host.unbind(source, destination, binding.routing_key, binding.arguments)
        await self._is_free(vhost, "exchange", binding.source)

    def _ends(
        self, vhost: str, binding: BindingSpec
    ) -> tuple[VirtualHost, Exchange, Exchange | Queue]:
        host = self._host(vhost)
        source, destination = self._ends_in(host, binding)
        return host, source, destination

    def _ends_in(
        self, host: VirtualHost, binding: BindingSpec, made: Exchange | Queue | None = None
    ) -> tuple[Exchange, Exchange | Queue]:
        def exchange(name: str) -> Exchange:
            if isinstance(made, Exchange) and made.name == name:
                return made
            return host.exchange(name)

        host.refuse_default(binding.source)
        if binding.destination_is_queue:
            return exchange(binding.source), host.queue(binding.destination, self)
        return exchange(binding.source), exchange(binding.destination)

    async def _are_free(self, vhost: str, binding: BindingSpec) -> None:
        destination = "queue" if binding.destination_is_queue else "exchange"
        await self._is_free(vhost, "exchange", binding.source)
        await self._is_free(vhost, destination, binding.destination)

    async def _is_free(self, vhost: str, kind: str, name: str) -> VirtualHost:
        """Returns when no sliced work goes on with it; the turn's time is taken then."""
        host = self._vhost(vhost)
        while host.under_way.is_busy(kind, name):
            free: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            host.under_way.wait_for(kind, name)(partial(_done, free))
            self._broker.on_work()
            await free
            host = self._vhost(vhost)
        return host

    async def route_count(self, vhost: str, exchange: str, routing_key: str) -> int:
        host = self._vhost(vhost)
        source = host.exchange(exchange) if exchange else None
        return len(host.route(source, (routing_key,), None, watched=False).queues)

    def watch_deleted(self, deleted: Callable[[str, Kind, str], Iterator[None]]) -> None:
        def told(vhost: str, kind: str, name: str) -> None:
            self._broker.slices.start(deleted(vhost, _LETTERS[kind], name))

        self._broker.on_deleted = told

    def watch_declared(self, declared: Callable[[str, Kind, str], Iterator[BindingSpec]]) -> None:
        def told(host: VirtualHost, made: Exchange | Queue) -> Iterator[None]:
            kind: Kind = "x" if isinstance(made, Exchange) else "q"
            for binding in declared(host.name, kind, made.name):
                try:
                    self._bind_made(host, made, binding)
                except ChannelError as error:
                    log.info("not bound again: %s", error)
                yield

        self._broker.on_declared = told

    # -- messages

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
        host = self._vhost(vhost)
        targets = () if queue is None else (host.queue(queue, self),)
        return await self._publish(host, exchange, routing_key, properties, body, targets)

    async def publish_to(
        self,
        vhost: str,
        queues: Sequence[str],
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> Outcome:
        host = self._vhost(vhost)
        targets = tuple(host.queue(name, self) for name in queues if name in host.queues)
        if not targets:
            return Outcome.UNROUTED
        return await self._publish(host, "", routing_key, properties, body, targets)

    async def _publish(
        self,
        host: VirtualHost,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
        targets: tuple[Queue, ...],
    ) -> Outcome:
        self._check_size(len(body))
        done = LocalPublish(self._broker, host, self._user).run(
            exchange, routing_key, properties, body, targets
        )
        if not await self._is_kept(done.commit):
            return Outcome.NOT_KEPT
        if done.rejected:
            return Outcome.REJECTED
        return Outcome.UNROUTED if done.unrouted else Outcome.ROUTED

    async def publish_batch(
        self, vhost: str, exchange: str, portions: Sequence[Portion], *, queue: str | None = None
    ) -> BatchOutcome:
        host = self._vhost(vhost)
        self._check_size(max((len(body) for one in portions for body in one.bodies), default=0))
        batch = LocalBatch(self._broker, host, self._user)
        for place, one in enumerate(portions):
            if place % PORTIONS_AT_ONCE == PORTIONS_AT_ONCE - 1:
                await asyncio.sleep(0)
            target = None if queue is None else host.queue(queue, self)
            batch.run_all(exchange, one.routing_key, one.properties, one.bodies, target)
        is_kept = await self._is_kept(batch.commit)
        return BatchOutcome(batch.unrouted_count, batch.rejected_count, is_kept)

    def _check_size(self, size: int) -> None:
        limit = self._broker.limits.max_message_bytes
        if size > limit:
            raise precondition_failed(
                f"message size {size} is larger than configured max size {limit}"
            )

    async def _is_kept(self, commit: int) -> bool:
        """Returns when the commit is durable, or false when the disk has refused it."""
        store = self._broker.store
        while commit > store.committed:
            if commit <= store.refused:
                return False
            await self._next_commit()
        return True

    def _next_commit(self) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._broker.on_commit(lambda: None if future.done() else future.set_result(None))
        return future

    async def consume(
        self,
        vhost: str,
        queue: str,
        *,
        prefetch: int,
        on_delivery: Callable[[Delivery], None],
        on_cancel: Callable[[], Awaitable[None]],
        arguments: Table | None = None,
    ) -> LocalConsumption:
        found = self._vhost(vhost).queue(queue, self)
        if found.exclusive_consumer is not None:
            raise ChannelError(403, f"queue '{queue}' in vhost '{vhost}' in exclusive use")

        def deliver(delivery: LocalDelivery) -> None:
            on_delivery(delivery)

        def cancelled() -> None:
            future = asyncio.ensure_future(on_cancel())
            self._cancels.add(future)
            future.add_done_callback(self._cancels.discard)

        session = LocalSession(
            self._broker,
            found,
            prefetch=prefetch,
            on_delivery=deliver,
            on_cancel=cancelled,
            arguments=arguments,
        )
        return LocalConsumption(session)

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        ack_all(cast(Sequence[LocalDelivery], deliveries))

    async def scan(
        self,
        vhost: str,
        queue: str,
        look: Callable[[Sequence[Taken]], Awaitable[bool]],
        *,
        limit: int,
    ) -> bool:
        async with self._scans.setdefault((vhost, queue), asyncio.Lock()):
            found = self._vhost(vhost).queue(queue, self)
            return await Scan(self._broker, found).run(look, limit)


class LocalConsumption:
    """A running consumer of the embedded engine."""

    def __init__(self, session: LocalSession) -> None:
        self._session = session

    async def cancel(self) -> None:
        self._session.cancel(comes_back=True)

    async def end(self) -> None:
        self._session.cancel()

    async def close(self) -> None:
        self._session.close()


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _info(queue: Queue) -> QueueInfo:
    spec = QueueSpec(
        queue.name,
        queue.durable,
        queue.auto_delete,
        queue.owner is not None,
        dict(queue.arguments),
    )
    return QueueInfo(spec, queue.ready_count, queue.consumer_count)
