"""Collects the messages of one output as items."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from ...core.clock import Clock
from ...core.errors import WarrenError
from ...core.message.model import Table
from ..engine.port import Delivery, Engine
from ..feeds.items import ItemStore
from ..tasks import Tasks
from ..workers.pool import Workers, WorkFailed, WorkRefused
from .batches import BatchConsumer
from .collecting import CollectResult, Selection, collect
from .contents import OutputContents
from .first_items import first_items
from .messages import CollectedMessage, scope_of
from .output import FIRST_OF_SOURCE, Output, OutputBinding, OutputKey, StreamPosition
from .sources import MARKS

OFFSET_HEADER = "x-stream-offset"
OFFSET_IN_EXCHANGE_HEADER = "x-offset"

log = logging.getLogger(__name__)


class Collector:
    """Collects the messages of one output as items. `output` may be replaced by a changed one,
    after which `restart` is called.

    `changed` is called with its key after a change of its items.
    """

    def __init__(
        self,
        output: Output,
        engine: Engine,
        workers: Workers,
        contents: OutputContents,
        items: ItemStore,
        clock: Clock,
        changed: Callable[[OutputKey], None],
    ) -> None:
        self.output = output
        self.refusal = ""
        """Why the last message was dropped that could not be read; empty if there was none."""
        self.storage_failure = ""
        """Why messages wait that could not be stored; empty if none do."""
        self._engine = engine
        self._workers = workers
        self._contents = contents
        self._items = items
        self._clock = clock
        self._changed = changed
        self._tasks = Tasks()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._incarnations: dict[str, str] = {}
        """Those of the streams that it consumes."""
        self._lock = asyncio.Lock()
        """Held while a batch is stored: its queue and its streams take turns."""

    async def restart(self, streams: Sequence[str]) -> None:
        """Consumes its queue and these streams, and no other stream any more."""
        wanted = dict.fromkeys(streams, self._stream_consumer)
        wanted[""] = self._queue_consumer
        await self._end([name for name in self._running if name not in wanted])
        for name, consumer in wanted.items():
            if name not in self._running:
                self._running[name] = self._tasks.own(consumer(name).run())

    async def begin_with(self, feeds: Sequence[str]) -> None:
        """Stores the items that new sources have already. Raises `StorageFailed`."""
        async with self._lock:
            found = await first_items(self._items, feeds, self._collected)
            await self._put(found)

    async def stop(self) -> None:
        """Ends consuming; what is not stored yet returns to its queue."""
        await self._end(list(self._running))

    async def _end(self, names: Sequence[str]) -> None:
        tasks = [self._running.pop(name) for name in names]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task

    def _queue_consumer(self, stream: str) -> BatchConsumer:
        async def no_arguments() -> Table:
            return {}

        key, queue = self.output.key, self.output.queue.name
        return BatchConsumer(self._engine, key.vhost, queue, self._take, no_arguments)

    def _stream_consumer(self, stream: str) -> BatchConsumer:
        async def take(batch: Sequence[Delivery]) -> None:
            await self._take(batch, stream)

        async def arguments() -> Table:
            position = await self._position(stream)
            self._incarnations[stream] = position.incarnation
            return {"x-stream-offset": position.offset}

        return BatchConsumer(self._engine, self.output.key.vhost, stream, take, arguments)

    async def _position(self, stream: str) -> StreamPosition:
        """Returns where to go on: behind what is stored, or near the end of another stream."""
        found = await self._engine.stream(self.output.key.vhost, "q", stream)
        state = None if found is None else found.state()
        if state is None:
            return StreamPosition("", 0)
        stored = self.output.offsets.get(stream)
        if stored is not None and stored.incarnation == state.incarnation:
            return stored
        first = max(state.first, state.next_offset - FIRST_OF_SOURCE)
        return StreamPosition(state.incarnation, first)

    async def _take(self, batch: Sequence[Delivery], stream: str = "") -> None:
        """Stores what the messages bring. Raises `StorageFailed`."""
        try:
            await self._store(batch, stream)
        except WarrenError as error:
            self.storage_failure = f"messages wait, as they can't be stored: {error}"
            raise
        self.storage_failure = ""

    async def _store(self, batch: Sequence[Delivery], stream: str) -> None:
        async with self._lock:
            messages = [await self._message(one, stream) for one in batch]
            await self._put(await self._collected(messages))
            if stream:
                await self._put_offset(stream, batch[-1])

    async def _put(self, collected: CollectResult) -> None:
        if await self._contents.store(self.output.key, collected):
            self._changed(self.output.key)

    async def _collected(self, messages: list[CollectedMessage]) -> CollectResult:
        """Returns the items of messages. If they can't be read together they are read one by one: a
        message that can't be read alone is dropped, and the others are not."""
        try:
            return await self._collect(messages)
        except (WorkFailed, WorkRefused) as error:
            if len(messages) == 1:
                self.refusal = str(error)
                log.warning("%s: unreadable message dropped: %s", self.output.key, error)
                return CollectResult([], [])
        found = CollectResult([], [])
        for message in messages:
            one = await self._collected([message])
            found.items += one.items
            found.near_duplicates += one.near_duplicates
        return found

    async def _collect(self, messages: list[CollectedMessage]) -> CollectResult:
        definition = self.output.definition
        selection = Selection(definition.filter, definition.transform, self._clock.wall_s())
        return await collect(self._workers, str(self.output.key), selection, messages)

    async def _message(self, delivery: Delivery, stream: str) -> CollectedMessage:
        message = delivery.message
        properties = message.properties
        at_s = properties.timestamp or self._clock.wall_s() - delivery.age_s
        place = OutputBinding(message.exchange, message.routing_key)
        return CollectedMessage(
            id=properties.message_id or await self._own_id(delivery, stream),
            routing_key=message.routing_key,
            content_type=properties.content_type or "",
            body=message.body,
            feed=stream or scope_of(*place),
            at_s=float(at_s),
            exchange=message.exchange,
            is_mark=place == MARKS and self.output.definition.filter.drop_near_duplicates,
        )

    async def _own_id(self, delivery: Delivery, stream: str) -> str:
        """Returns the id of a message without one: the same for each copy, although streams, and
        exchanges that keep messages, give them out again."""
        message = delivery.message
        headers = message.properties.headers or {}
        offset = headers.get(OFFSET_HEADER if stream else OFFSET_IN_EXCHANGE_HEADER)
        incarnation = self._incarnations.get(stream)
        if not stream:
            kept = await self._engine.stream(self.output.key.vhost, "x", message.exchange)
            state = None if kept is None else kept.state()
            incarnation = None if state is None else state.incarnation
        name = f"{delivery.sequence:x}"
        if incarnation is not None and isinstance(offset, int):
            name = f"{incarnation}:{offset:x}"
        return f"urn:warren:message:{name}"

    async def _put_offset(self, stream: str, last: Delivery) -> None:
        offset = (last.message.properties.headers or {}).get(OFFSET_HEADER)
        assert isinstance(offset, int), "each message of a stream has its offset"
        position = StreamPosition(self._incarnations[stream], offset + 1)
        offsets = {**self.output.offsets, stream: position}
        await self._contents.put_offsets(self.output.key, offsets)
        self.output = replace(self.output, offsets=offsets)
