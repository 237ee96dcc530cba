"""Makes a snapshot each second for all readers; without readers only the samples for charts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import msgspec

from ...core.broker import Broker
from ...core.server.loop_monitor import LoopMonitor
from ...hub.attempts.attempt import AttemptOutcome
from ...hub.service import Hub
from .cluster import Cluster
from .counting import Counting
from .history import HistoryDocument, OverviewHistory
from .node_figures import node_figures
from .snapshot import Source, View, snapshot

if TYPE_CHECKING:
    from ...hub.engine.amqp.engine import AmqpEngine

logger = logging.getLogger(__name__)

READERS_MAX: Final = 64
PERIOD_MS: Final = 1_000
PHASE_MS: Final = 500
"""Half a second behind the samples of the message counters."""
UNREAD_PERIODS: Final = 10
"""Seconds between two samples of the lengths while nobody reads."""
_OUTCOMES: Final = (AttemptOutcome.DELIVERED, AttemptOutcome.RETRIED, AttemptOutcome.DEAD)
_encode: Final = msgspec.json.Encoder().encode


class LiveOverview:
    """Runs from `start` to `stop`. Readers wait with `next_one`."""

    def __init__(
        self, broker: Broker, hub: Hub, monitor: LoopMonitor, cluster: AmqpEngine | None = None
    ) -> None:
        self._broker = broker
        self._hub = hub
        self._monitor = monitor
        self._cluster = None if cluster is None else Cluster(cluster)
        self._counting = Counting(broker, hub)
        self.samples = OverviewHistory(broker)
        self._encoded: dict[View, bytes] = {}
        """The snapshot of this second, by what its readers may see."""
        self._made = asyncio.Event()
        self._wanted = asyncio.Event()
        """Set by the first reader, who need not wait for the next second."""
        self._task: asyncio.Task[None] | None = None
        self._is_fresh = False
        self._unread_periods = UNREAD_PERIODS
        self.reader_count = 0
        self.is_closed = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Ends all readers."""
        self.is_closed = True
        self._made.set()
        if self._cluster is not None:
            self._cluster.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Counts a reader."""
        self.reader_count += 1
        self._wanted.set()
        try:
            yield
        finally:
            self.reader_count -= 1
            self._is_fresh = self._is_fresh and self.reader_count > 0

    async def first(self) -> None:
        """Returns when there is a snapshot of this second."""
        if not self._is_fresh:
            await self.next_one()

    async def next_one(self) -> None:
        """Returns when the next snapshot is there, or the server stops."""
        if not self.is_closed:
            await self._made.wait()

    def snapshot(self, view: View) -> bytes:
        """Returns the snapshot as JSON."""
        found = self._encoded.get(view)
        if found is None:
            source = Source(
                self._broker,
                self._counting.counts,
                self._hub.subscription_store,
                self.samples,
                self._monitor.uptime_s,
                self._cluster,
            )
            found = self._encoded[view] = _encode(snapshot(source, view))
        return found

    async def history(self, view: View, age_s: int) -> bytes:
        """Returns the series of charts as JSON; without the right to see rates they are empty."""
        found: HistoryDocument = await self.samples.document(age_s)
        if not view.sees_rates:
            found = {**found, "times": [], "series": {name: [] for name in found["series"]}}
        return _encode(found)

    async def _run(self) -> None:
        while True:
            self._wanted.clear()
            now_ms = self._broker.clock.now_ms()
            wait_ms = PERIOD_MS - (now_ms - PHASE_MS) % PERIOD_MS
            with suppress(TimeoutError):  # the second is over, and no new reader came
                async with asyncio.timeout(wait_ms / 1000):
                    await self._wait()
            try:
                await self._look()
            except Exception:
                logger.exception("internal error while the overview was made")

    async def _wait(self) -> None:
        """Returns when a reader came who has no snapshot."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            if not self._is_fresh:
                return

    async def _look(self) -> None:
        self._unread_periods += 1
        if self.reader_count or self._unread_periods >= UNREAD_PERIODS:
            self._unread_periods = 0
            await self._counting.advance()
        if self._cluster is not None and self.reader_count:
            self._cluster.refresh()
        self.samples.add(self._values())
        self._encoded.clear()
        self._is_fresh = self.reader_count > 0
        made, self._made = self._made, asyncio.Event()
        made.set()

    def _values(self) -> list[int]:
        attempts = self._hub.dispatcher.metrics.attempts
        vhosts = self._counting.counts.vhosts.values()
        return [
            *(
                sum([count for (outcome, _), count in attempts.items() if outcome is wanted])
                for wanted in _OUTCOMES
            ),
            sum(one.ready for one in vhosts),
            sum(one.unacknowledged for one in vhosts),
            *node_figures(self._broker).values(),
        ]
