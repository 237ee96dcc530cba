"""The engine in this process: the hub's calls become calls of the core's broker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ...core.auth import User
from ...core.broker import Broker
from ...core.errors import ChannelError, precondition_failed
from ...core.local import LocalDelivery, LocalPublish, LocalSession
from ...core.model import Properties, Table
from ...core.queue.queue import Queue
from ...core.route.exchange import Exchange
from ...core.vhost import VirtualHost
from .port import BindingSpec, Delivery, ExchangeSpec, Outcome, QueueInfo, QueueSpec


class EmbeddedEngine:
    """Implements `Engine` on a `Broker` whose turns run in the same event loop."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._user = User("", tags=("impersonator",))
        self._cancels: set[asyncio.Future[None]] = set()

    def _vhost(self, name: str) -> VirtualHost:
        vhost = self._broker.vhosts.get(name)
        if vhost is None:
            raise ChannelError(404, f"no vhost '{name}'")
        self._broker.tick()
        return vhost

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
        host, source, destination = self._ends(vhost, binding)
        bound: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done() -> None:
            if not bound.done():
                bound.set_result(None)

        host.bind(source, destination, binding.routing_key, binding.arguments, done)
        self._broker.on_work()
        await bound

    async def unbind(self, vhost: str, binding: BindingSpec) -> None:
        host, source, destination = self._ends(vhost, binding)
        host.unbind(source, destination, binding.routing_key, binding.arguments)

    def _ends(
        self, vhost: str, binding: BindingSpec
    ) -> tuple[VirtualHost, Exchange, Exchange | Queue]:
        host = self._vhost(vhost)
        host.refuse_default(binding.source)
        source = host.exchange(binding.source)
        if binding.destination_is_queue:
            return host, source, host.queue(binding.destination, self)
        return host, source, host.exchange(binding.destination)

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
        limit = self._broker.limits.max_message_bytes
        if len(body) > limit:
            raise precondition_failed(
                f"message size {len(body)} is larger than configured max size {limit}"
            )
        target = None if queue is None else host.queue(queue, self)
        done = LocalPublish(self._broker, host, self._user).run(
            exchange, routing_key, properties, body, target
        )
        store = self._broker.store
        while done.commit > store.committed:
            if done.commit <= store.refused:
                return Outcome.NOT_KEPT
            await self._next_commit()
        if done.rejected:
            return Outcome.REJECTED
        return Outcome.UNROUTED if done.unrouted else Outcome.ROUTED

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


class LocalConsumption:
    """A running consumer of the embedded engine."""

    def __init__(self, session: LocalSession) -> None:
        self._session = session

    async def cancel(self) -> None:
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
