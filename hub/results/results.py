"""Stores the results that jobs publish on the exchange `hub.pipeline`, for charts.

Each virtual host in which a run has reported has a queue that is bound to it; nothing is declared
or read where no job runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ...core.errors import ChannelError, WarrenError
from ...core.message.model import Table
from ..engine.own import RESULTS
from ..engine.port import BindingSpec, Delivery, Engine
from ..outputs.batches import BatchConsumer
from ..outputs.sources import RESULTS_EXCHANGE
from ..requests import Kind
from ..storage.storage import Storage
from ..tasks import Tasks
from .row import SHAPES, ResultRow, read_row
from .series import Series, series_of

if TYPE_CHECKING:
    from .repository import ResultRepository

KEPT_ROWS: Final = 20_000
"""Hours of groups that are kept of each job in a virtual host, 2 kB each: ten keys for 83 days."""

log = logging.getLogger(__name__)


class Results:
    """Collects and finds results. The database is opened when there is something to store or to
    find."""

    def __init__(self, storage: Storage, engine: Engine, *, kept_rows: int = KEPT_ROWS) -> None:
        self._storage = storage
        self._engine = engine
        self._kept_rows = kept_rows
        self._is_empty = True
        self._tasks = Tasks()
        self._running: dict[str, asyncio.Task[None]] = {}
        engine.watch_declared(self._declared)

    async def start(self) -> None:
        """Resumes collecting where there is a queue."""
        self._is_empty = self._storage.is_empty()
        for vhost in self._engine.vhosts():
            if await self._engine.queue(vhost, RESULTS.name) is not None:
                self._run(vhost)

    async def stop(self) -> None:
        """Ends collecting; results wait in the queues."""
        await self._tasks.stop()

    async def expect(self, vhost: str) -> None:
        """Begins to collect in a virtual host, if results are published there."""
        if vhost in self._running:
            return
        try:
            if await self._engine.exchange(vhost, RESULTS_EXCHANGE) is None:
                return  # a run without results
            await self._engine.declare_queue(vhost, RESULTS)
            for binding in _bindings():
                await self._engine.bind(vhost, binding)
        except ChannelError as error:
            log.warning("results of vhost '%s' are not kept: %s", vhost, error)
        else:
            self._run(vhost)

    async def find(
        self, job: str, vhost: str, start_s: int, end_s: int, by: int, step_s: int, top: int
    ) -> Series:
        """Returns the `top` groups by the key number `by`, in steps. Raises `StorageFailed`."""
        if self._is_empty:
            return Series([], [])
        found = await (await self._repository()).find(job, vhost, start_s, end_s)
        return await asyncio.to_thread(series_of, SHAPES[job], found, by, step_s, top)

    def forget_vhost(self, vhost: str) -> None:
        """Deletes the results of a deleted virtual host, soon."""
        task = self._running.pop(vhost, None)
        if task is not None:
            task.cancel()
        if not self._is_empty:
            self._tasks.own(self._delete_of(vhost))

    def _run(self, vhost: str) -> None:
        if vhost not in self._running:
            self._is_empty = False
            take = partial(self._take, vhost)
            consumer = BatchConsumer(self._engine, vhost, RESULTS.name, take, _no_arguments)
            self._running[vhost] = self._tasks.own(consumer.run())

    async def _take(self, vhost: str, batch: Sequence[Delivery]) -> None:
        rows: list[ResultRow] = []
        for delivery in batch:
            row = read_row(delivery.message.routing_key, delivery.message.body)
            if row is not None:
                rows.append(row)
        if rows:
            await (await self._repository()).add(vhost, rows, self._kept_rows)
        if len(rows) < len(batch):
            log.info(
                "%d messages on %s are not valid results", len(batch) - len(rows), RESULTS_EXCHANGE
            )

    def _declared(self, vhost: str, kind: Kind, name: str) -> Iterator[BindingSpec]:
        if vhost in self._running and (kind, name) == ("x", RESULTS_EXCHANGE):
            yield from _bindings()

    async def _delete_of(self, vhost: str) -> None:
        try:
            await (await self._repository()).delete_of(vhost)
        except WarrenError as error:
            log.error("results of vhost %s can't be deleted: %s", vhost, error)

    async def _repository(self) -> ResultRepository:
        database = await self._storage.database()
        from .repository import ResultRepository

        return ResultRepository(database)


def _bindings() -> Iterator[BindingSpec]:
    for job in SHAPES:
        yield BindingSpec(RESULTS_EXCHANGE, RESULTS.name, routing_key=job)


async def _no_arguments() -> Table:
    return {}
