"""The engine in this process: the hub's calls become calls of the core's broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import cast
from weakref import WeakValueDictionary

from ...core.auth import User
from ...core.broker import Broker
from ...core.errors import ChannelError, precondition_failed
from ...core.local import LocalDelivery, LocalPublish, LocalSession, ack_all
from ...core.local_batch import LocalBatch
from ...core.model import Properties, Table
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
        self._vhost(vhost).declare_exchange(
            spec.name,
            spec.type,
            durable=spec.durable,
            auto_delete=spec.auto_delete,
            internal=spec.internal,
            arguments=spec.arguments,
        )

    async def delete_exchange(self, vhost: str, name: str, *, if_unused: bool = False) -> None:
        self._vhost(vhost).delete_exchange(name, if_unused=if_unused)

    # -- queues

    async def queue(self, vhost: str, name: str) -> QueueInfo | None:
        found = self._vhost(vhost).queues.get(name)
        return None if found is None else _info(found)

    async def declare_queue(self, vhost: str, spec: QueueSpec) -> QueueInfo:
        return _info(
            self._vhost(vhost).declare_queue(
                spec.name,
                durable=spec.durable,
                exclusive=spec.exclusive,
                auto_delete=spec.auto_delete,
                arguments=spec.arguments,
                owner=self,
            )
        )

    async def delete_queue(
        self, vhost: str, name: str, *, if_unused: bool = False, if_empty: bool = False
    ) -> int:
        host = self._vhost(vhost)
        if name in host.queues:
            self._broker.settle(host.queues[name])
        return host.delete_queue(name, if_unused=if_unused, if_empty=if_empty, owner=self)

    # -- bindings

    async def bind(self, vhost: str, binding: BindingSpec) -> None:
        bound: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done() -> None:
            if not bound.done():
                bound.set_result(None)

        self._broker.tick()
        self._bind(vhost, binding, done)
        self._broker.on_work()
        await bound

    def _bind(
        self, vhost: str, binding: BindingSpec, done: Callable[[], None] = lambda: None
    ) -> None:
        host, source, destination = self._ends(vhost, binding)
        host.bind(source, destination, binding.routing_key, binding.arguments, done)

    async def unbind(self, vhost: str, binding: BindingSpec) -> None:
        self._broker.tick()
        host, source, destination = self._ends(vhost, binding)
        host.unbind(source, destination, binding.routing_key, binding.arguments)

    def _ends(
        self, vhost: str, binding: BindingSpec
    ) -> tuple[VirtualHost, Exchange, Exchange | Queue]:
        host = self._host(vhost)
        host.refuse_default(binding.source)
        source = host.exchange(binding.source)
        if binding.destination_is_queue:
            return host, source, host.queue(binding.destination, self)
        return host, source, host.exchange(binding.destination)

    async def route_count(self, vhost: str, exchange: str, routing_key: str) -> int:
        host = self._vhost(vhost)
        source = host.exchange(exchange) if exchange else None
        return len(host.route(source, (routing_key,), None, watched=False).queues)

    def watch_deleted(self, deleted: Callable[[str, Kind, str], None]) -> None:
        self._broker.on_deleted = lambda vhost, kind, name: deleted(vhost, _LETTERS[kind], name)

    def watch_declared(self, declared: Callable[[str, Kind, str], Sequence[BindingSpec]]) -> None:
        def told(vhost: str, kind: str, name: str) -> None:
            for binding in declared(vhost, _LETTERS[kind], name):
                try:
                    self._bind(vhost, binding)
                except ChannelError as error:
                    log.info("not bound again: %s", error)

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


def _info(queue: Queue) -> QueueInfo:
    spec = QueueSpec(
        queue.name,
        queue.durable,
        queue.auto_delete,
        queue.owner is not None,
        dict(queue.arguments),
    )
    return QueueInfo(spec, queue.ready_count, queue.consumer_count)
