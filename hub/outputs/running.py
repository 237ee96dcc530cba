"""The outputs that collect: bound and consumed by their sources and permissions of now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..engine.port import BindingSpec, Engine
from ..feeds.items import ItemStore
from ..keyed_locks import KeyedLocks
from ..owner_rights import SubscriberRights
from ..requests import Kind
from ..tasks import Tasks
from ..workers.pool import Workers
from .attachment import QueueAttachment
from .collector import Collector
from .contents import OutputContents
from .output import Output, OutputKey
from .sources import feeds_of, permitted_streams

if TYPE_CHECKING:
    from .repository import OutputRepository

AGAIN_S = 10.0
"""How soon outputs are bound again when that failed after a change of permissions."""

log = logging.getLogger(__name__)


class ActiveOutputs:
    """Binds and consumes all outputs. `changed` is called after a change of the items of an output.

    `locks` are held, by output, while one is changed.
    """

    def __init__(
        self,
        engine: Engine,
        workers: Workers,
        rights: SubscriberRights,
        clock: Clock,
        rows: Callable[[], Awaitable[OutputRepository]],
        contents: OutputContents,
        items: ItemStore,
        locks: KeyedLocks[OutputKey],
        changed: Callable[[OutputKey], None],
    ) -> None:
        self._engine = engine
        self._workers = workers
        self._rights = rights
        self._clock = clock
        self._contents = contents
        self._items = items
        self._locks = locks
        self._changed = changed
        self._attachment = QueueAttachment(engine, rights, rows)
        self._collectors: dict[OutputKey, Collector] = {}
        self._bound_to: dict[tuple[str, str], set[OutputKey]] = {}
        """The outputs that are bound to an exchange, by virtual host and name."""
        self._tasks = Tasks()
        engine.watch_declared(self._declared)

    async def stop(self) -> None:
        """Ends collecting; messages wait in the queues."""
        await self._tasks.stop()
        await asyncio.gather(*(one.stop() for one in self._collectors.values()))

    def get(self, key: OutputKey) -> Output | None:
        found = self._collectors.get(key)
        return None if found is None else found.output

    def all(self) -> list[Output]:
        """Returns all, in no order."""
        return [one.output for one in self._collectors.values()]

    def notice(self, key: OutputKey) -> str:
        """Returns why messages wait, or why the last one was dropped; "" if none does or was."""
        collector = self._collectors[key]
        return collector.storage_failure or collector.refusal

    async def begin(self, output: Output) -> None:
        """Goes on with a stored output, also if a source is gone."""
        try:
            await self.attach(output)
        except WarrenError as error:
            log.warning("%s: collecting postponed: %s", output.key, error)
            await self._collect(output)

    async def attach(self, output: Output) -> None:
        """Stores and binds an output, and collects its messages, and the items that new sources
        have already; raises as `QueueAttachment.attach`."""
        attached = await self._attachment.attach(output)
        await self._collect(attached)
        await self._collectors[output.key].begin_with(feeds_of(attached.bound - output.bound))

    async def end(self, output: Output) -> None:
        """Ends collecting; its queue stays."""
        collector = self._collectors.pop(output.key, None)
        if collector is None:
            return
        self._index(collector.output, is_there=False)
        await collector.stop()
        if not any(one.owner == output.owner for one in self.all()):
            self._rights.unwatch(output.owner, self._recheck)

    async def delete_queue(self, output: Output) -> None:
        """Deletes its queue, if it is there."""
        await self._attachment.detach(output)

    async def _collect(self, output: Output) -> None:
        collector = self._collectors.get(output.key)
        if collector is None:
            self._rights.watch(output.owner, self._recheck)
            collector = self._collectors[output.key] = Collector(
                output, self._engine, self._workers, self._contents, self._items, self._clock,
                self._changed,
            )  # fmt: skip
        else:
            self._index(collector.output, is_there=False)
            output = replace(output, offsets=collector.output.offsets)
        collector.output = output
        self._index(output, is_there=True)
        await collector.restart(permitted_streams(self._rights, output))

    def _index(self, output: Output, *, is_there: bool) -> None:
        for bound in output.bound:
            place = output.key.vhost, bound.exchange
            keys = self._bound_to.setdefault(place, set())
            if is_there:
                keys.add(output.key)
            else:
                keys.discard(output.key)
            if not keys:
                del self._bound_to[place]

    def _recheck(self, owner: str) -> None:
        """Binds what the owner may read now, and nothing else."""
        for output in self.all():
            if output.owner == owner:
                self._tasks.own(self._attach_again(output.key))

    async def _attach_again(self, key: OutputKey) -> None:
        while True:
            async with self._locks.of(key):
                output = self.get(key)
                try:
                    if output is not None:
                        await self.attach(output)
                    return
                except WarrenError as error:
                    log.error("%s: rebinding postponed: %s", key, error)
            await asyncio.sleep(AGAIN_S)

    def _declared(self, vhost: str, kind: Kind, name: str) -> Iterator[BindingSpec]:
        """Yields the bindings of outputs to an exchange that is declared anew."""
        keys = self._bound_to.get((vhost, name), ()) if kind == "x" else ()
        for output in filter(None, map(self.get, list(keys))):
            yield from (output.binding(one) for one in output.bound if one.exchange == name)
