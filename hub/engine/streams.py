"""The streams of this process: the calls of `Stream` become calls of the core."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeGuard, TypeVar
from weakref import WeakValueDictionary

from ...core.broker import Broker
from ...core.clock import wall_ms
from ...core.definitions.archives import ArchiveReport
from ...core.local.stream_follower import StreamFollower
from ...core.queue.stream import StreamQueue
from ...core.queue.stream_records import StreamRecordReader
from ...core.replay.matcher import Matcher
from ...core.route.binding import Binding
from ...core.route.exchange import Exchange
from ...core.vhost import VirtualHost
from ..requests import Kind
from .commits import is_durable
from .port import BindingSpec, ReadMessages, StreamArchives, StreamRead, StreamState

QUEUES_AT_ONCE: Final = 1_000

Result = TypeVar("Result")


class SharedMatchers:
    """Matches kept messages with binding keys, once for all readers with the same key."""

    def __init__(self) -> None:
        self._matchers: WeakValueDictionary[tuple[Exchange, str], Matcher] = WeakValueDictionary()

    def of(self, exchange: Exchange, queue: StreamQueue, key: str) -> Matcher:
        """Returns the matcher of these keys; raises `ChannelError` for a key that can't be
        bound."""
        found = self._matchers.get((exchange, key))
        if found is None:
            found = Matcher(exchange, Binding(queue, key, {}))
            self._matchers[exchange, key] = found
        return found


def find_stream(
    broker: Broker, host: VirtualHost, kind: Kind, name: str, matchers: SharedMatchers
) -> EmbeddedStream | None:
    """Returns a stream queue, or the stream in which an exchange keeps messages. None if there is
    none, or if it does not survive a restart: its messages are not in the log."""
    queue: object = host.queues.get(name)
    exchange = None
    if kind == "x":
        exchange = host.exchanges.get(name)
        queue = None if exchange is None else exchange.inner
    if not isinstance(queue, StreamQueue) or not queue.durable:
        return None
    if exchange is None:
        return EmbeddedStream(broker, queue)
    return EmbeddedStream(broker, queue, partial(matchers.of, exchange, queue))


async def captures(host: VirtualHost) -> AsyncIterator[BindingSpec]:
    """Yields the bindings of durable streams; others have their turn between some queues."""
    for place, queue in enumerate(tuple(host.queues.values())):
        if place % QUEUES_AT_ONCE == 0:
            await asyncio.sleep(0)
        if isinstance(queue, StreamQueue) and queue.durable:
            for source in tuple(queue.bound or ()):
                for binding in tuple(source.bindings_to(queue)):
                    yield BindingSpec(source.name, queue.name, routing_key=binding.routing_key)


def archived_streams(
    broker: Broker, host: VirtualHost
) -> Iterator[tuple[Kind, str, EmbeddedStream]]:
    """Yields kind, name and stream of those with archives."""
    for queue in host.queues.values():
        if _has_archives(queue):
            yield "q", queue.name, EmbeddedStream(broker, queue)
    for exchange in host.exchanges.values():
        if _has_archives(exchange.inner):
            yield "x", exchange.name, EmbeddedStream(broker, exchange.inner)


def _has_archives(queue: object) -> TypeGuard[StreamQueue]:
    return isinstance(queue, StreamQueue) and bool(
        queue.archives.reports or (queue.rules and queue.rules.archive)
    )


class EmbeddedStream:
    """Implements `Stream` on a stream queue of a `Broker`."""

    def __init__(
        self,
        broker: Broker,
        queue: StreamQueue,
        matcher: Callable[[str], Matcher] | None = None,
    ) -> None:
        self._broker = broker
        self._queue = queue
        self._matcher = matcher
        """Returns the matcher of a binding key; None for a queue, which has no bindings here."""
        self._reader = StreamRecordReader(queue, broker.store.records)

    def state(self) -> StreamState | None:
        if self._queue.deleted:
            return None
        log = self._queue.log
        size_bytes = log.size_bytes if log.compute_sizes(_nothing) else None
        self._broker.on_work()
        incarnation = f"{self._queue.id:x}-{self._broker.store.store_id.hex()}"
        return StreamState(log.first, log.committed, incarnation, size_bytes, self._queue.id)

    async def chunks(
        self, start: int, end: int, limit_bytes: int, *, skip_damaged: bool
    ) -> StreamRead | None:
        read = partial(self._reader.read, start, end, limit_bytes, skip_damaged=skip_damaged)
        return await _result(read)

    async def measure(self, start: int, limit_bytes: int) -> int | None:
        return await _result(partial(self._reader.measure, start, limit_bytes))

    async def find_moment(self, wall_ms: int) -> int:
        return await _result(partial(self._reader.find_moment, wall_ms))

    def follow(
        self,
        start: int,
        keys: Sequence[str],
        *,
        on_messages: Callable[[Sequence[int], ReadMessages], None],
        on_gap: Callable[[int, int], None],
        on_end: Callable[[Exception | None], None],
    ) -> StreamFollower:
        matchers = [self._matcher(key) for key in keys] if self._matcher else []
        self._broker.tick()
        return StreamFollower(
            self._broker, self._queue, start, matchers, on_messages, on_gap, on_end
        )

    def archives(self) -> StreamArchives:
        queue = self._queue
        waited_for = None if queue.rules is None else queue.rules.archive
        return StreamArchives(queue.archives.reports, waited_for, queue.exceeded())

    async def report_archive(self, archive: str, offset: int, manifest: str) -> bool:
        report = ArchiveReport(offset, wall_ms(self._broker.clock), manifest)
        commit = self._queue.report_archive(archive, report)
        self._broker.on_work()
        return await is_durable(self._broker, commit)

    async def forget_archive(self, archive: str) -> bool:
        commit = self._queue.forget_archive(archive)
        self._broker.on_work()
        return await is_durable(self._broker, commit)


async def _result(call: Callable[[Callable[[Result], None]], None]) -> Result:
    """Calls a function that takes a callback, and waits for what the callback gets."""
    future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    def done(result: Result) -> None:
        if not future.done():
            future.set_result(result)

    call(done)
    return await future


def _nothing() -> None:
    """Does nothing."""
