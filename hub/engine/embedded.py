"""The engine in this process: the hub's calls become calls of the core's broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import cast

from ...core.auth import Kind as CoreKind
from ...core.broker import Broker
from ...core.errors import ChannelError
from ...core.local.bulk_session import BulkSession
from ...core.local.session import LocalDelivery, LocalSession, ack_all
from ...core.message.model import Table
from ...core.queue.queue import Queue
from ...core.route.exchange import Exchange
from ..keyed_locks import KeyedLocks
from ..requests import Kind
from .names import set_done
from .port import (
    BindingSpec,
    Delivery,
    ExchangeSpec,
    Numbered,
    QueueInfo,
    QueueSpec,
    UnackedMessage,
)
from .publishing import EmbeddedPublisher
from .scan import Scan
from .streams import EmbeddedStream, SharedMatchers, archived_streams, captures, find_stream

_KINDS: dict[str, Kind] = {"exchange": "x", "queue": "q"}

log = logging.getLogger(__name__)


class EmbeddedEngine(EmbeddedPublisher):
    """Implements `Engine` on a `Broker` whose turns run in the same event loop."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.on_short: Callable[[], None] = lambda: None  # queues here send as many as there are
        self._cancels: set[asyncio.Future[None]] = set()
        self._scans: KeyedLocks[tuple[str, str]] = KeyedLocks()
        self._matchers = SharedMatchers()

    def max_message_bytes(self) -> int:
        return self._broker.limits.max_message_bytes

    def shortage(self) -> str:
        return self._broker.alarms.reason

    def vhosts(self) -> Sequence[str]:
        return list(self._broker.vhosts)

    # -- exchanges

    async def exchange(self, vhost: str, name: str) -> ExchangeSpec | None:
        found = self._names.vhost(vhost).exchanges.get(name)
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

    async def distributes(self, vhost: str, exchange: str) -> bool:
        found = self._names.vhost(vhost).exchanges.get(exchange)
        return found is not None and found.distributes

    async def declare_exchange(self, vhost: str, spec: ExchangeSpec) -> None:
        host = await self._names.free(vhost, "exchange", spec.name)
        host.declare_exchange(
            spec.name,
            spec.type,
            durable=spec.durable,
            auto_delete=spec.auto_delete,
            internal=spec.internal,
            arguments=spec.arguments,
        )
        await self._names.free(vhost, "exchange", spec.name)

    async def delete_exchange(self, vhost: str, name: str, *, if_unused: bool = False) -> None:
        host = await self._names.free(vhost, "exchange", name)
        host.delete_exchange(name, if_unused=if_unused)
        await self._names.free(vhost, "exchange", name)

    # -- queues

    async def queue(self, vhost: str, name: str) -> QueueInfo | None:
        found = self._names.vhost(vhost).queues.get(name)
        return None if found is None else _info(found)

    async def declare_queue(self, vhost: str, spec: QueueSpec) -> QueueInfo:
        host = await self._names.free(vhost, "queue", spec.name)
        declared = host.declare_queue(
            spec.name,
            durable=spec.durable,
            exclusive=spec.exclusive,
            auto_delete=spec.auto_delete,
            arguments=spec.arguments,
            owner=self,
        )
        await self._names.free(vhost, "queue", spec.name)
        return _info(declared)

    async def delete_queue(
        self, vhost: str, name: str, *, if_unused: bool = False, if_empty: bool = False
    ) -> int:
        host = await self._names.free(vhost, "queue", name)
        if name in host.queues:
            self._broker.dispatch_now(host.queues[name])
        deleted = host.delete_queue(name, if_unused=if_unused, if_empty=if_empty, owner=self)
        await self._names.free(vhost, "queue", name)
        return deleted

    async def stream(self, vhost: str, kind: Kind, name: str) -> EmbeddedStream | None:
        return find_stream(self._broker, self._names.vhost(vhost), kind, name, self._matchers)

    def captures(self, vhost: str) -> AsyncIterator[BindingSpec]:
        return captures(self._names.vhost(vhost))

    def archived_streams(self, vhost: str) -> Iterator[tuple[Kind, str, EmbeddedStream]]:
        return archived_streams(self._broker, self._names.vhost(vhost))

    # -- bindings

    async def bind(self, vhost: str, binding: BindingSpec) -> None:
        bound: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        host = await self._names.free_ends(vhost, binding)
        source, destination = self._names.ends(host, binding)
        done = partial(set_done, bound)
        host.bindings.add(source, destination, binding.routing_key, binding.arguments, done)
        self._broker.on_work()
        await bound

    async def unbind(self, vhost: str, binding: BindingSpec) -> None:
        host = await self._names.free_ends(vhost, binding)
        source, destination = self._names.ends(host, binding)
        host.bindings.remove(source, destination, binding.routing_key, binding.arguments)
        await self._names.free(vhost, "exchange", binding.source)

    async def route_count(self, vhost: str, exchange: str, routing_key: str) -> int:
        host = self._names.vhost(vhost)
        source = host.exchange(exchange) if exchange else None
        return len(host.route(source, (routing_key,), None, watched=False).queues)

    def watch_deleted(self, deleted: Callable[[str, Kind, str], Iterator[None]]) -> None:
        before = self._broker.on_deleted

        def on_deleted(vhost: str, kind: CoreKind, name: str) -> None:
            before(vhost, kind, name)
            self._broker.slices.start(deleted(vhost, _KINDS[kind], name))

        self._broker.on_deleted = on_deleted

    def watch_declared(self, declared: Callable[[str, Kind, str], Iterator[BindingSpec]]) -> None:
        before = self._broker.on_declared

        def on_declared(vhost: str, made: Exchange | Queue) -> Iterator[None]:
            yield from before(vhost, made)
            host = self._broker.vhosts.get(vhost)
            if host is None:
                return  # It is being deleted, with all that is in it.
            kind: Kind = "x" if isinstance(made, Exchange) else "q"
            for binding in declared(vhost, kind, made.name):
                try:
                    source, destination = self._names.ends(host, binding, made)
                    host.bindings.add(source, destination, binding.routing_key, binding.arguments)
                except ChannelError as error:
                    log.info("rebinding failed: %s", error)
                yield

        self._broker.on_declared = on_declared

    # -- messages

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
        found = self._consumable(vhost, queue)

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

    async def consume_unacked(
        self,
        vhost: str,
        queue: str,
        *,
        on_messages: Callable[[Sequence[Numbered]], None],
        on_cancel: Callable[[Exception | None], None],
    ) -> BulkSession:
        found = self._consumable(vhost, queue)
        return BulkSession(self._broker, found, on_messages, on_cancel)

    def _consumable(self, vhost: str, queue: str) -> Queue:
        found = self._names.vhost(vhost).queue(queue, self)
        if found.exclusive_consumer is not None:
            raise ChannelError(403, f"queue '{queue}' in vhost '{vhost}' in exclusive use")
        return found

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        ack_all(cast(Sequence[LocalDelivery], deliveries))

    async def scan(
        self,
        vhost: str,
        queue: str,
        look: Callable[[Sequence[UnackedMessage]], Awaitable[bool]],
        *,
        limit: int,
    ) -> bool:
        async with self._scans.of((vhost, queue)):
            found = self._names.vhost(vhost).queue(queue, self)
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
