"""The messages and consumers of all queues, added up for each virtual host."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from ..core.broker import Broker
from ..core.vhost import VirtualHost

QUEUES_AT_ONCE: Final = 2_000
"""Queues that are added up between two rounds of the event loop."""
INTERVAL_MS: Final = 5_000


class Totals(NamedTuple):
    ready: int = 0
    unacknowledged: int = 0
    consumers: int = 0
    queues: int = 0

    @property
    def messages(self) -> int:
        return self.ready + self.unacknowledged


class QueueTotals:
    """Reads the totals; rates are those since an earlier reading, of five seconds ago or more."""

    def __init__(self) -> None:
        self._before: tuple[int, Mapping[str, Totals]] = (0, {})
        self._last: tuple[int, Mapping[str, Totals]] = (0, {})

    async def read(self, broker: Broker) -> Mapping[str, Totals]:
        """Returns the totals by virtual host."""
        vhosts = list(broker.vhosts.values())
        found = {vhost.name: await _totals(vhost) for vhost in vhosts}
        now_ms = broker.clock.now_ms()
        if not self._last[1] or now_ms - self._last[0] >= INTERVAL_MS:
            self._before, self._last = self._last, (now_ms, found)
        return found

    def rate(self, vhosts: Collection[str], field: str) -> float:
        """Returns how much a total of these virtual hosts has changed a second; 0 after the first
        reading."""
        (before_ms, before), (last_ms, last) = self._before, self._last
        if not before:
            return 0.0
        nothing = Totals()
        changes: list[int] = [
            getattr(last.get(name, nothing), field) - getattr(before.get(name, nothing), field)
            for name in vhosts
        ]
        return sum(changes) * 1000 / (last_ms - before_ms)


async def _totals(vhost: VirtualHost) -> Totals:
    ready = unacknowledged = consumers = 0
    queues = list(vhost.queues.values())
    for start in range(0, len(queues), QUEUES_AT_ONCE):
        # All of a queue at once: that it is in no cache is what takes time.
        for queue in queues[start : start + QUEUES_AT_ONCE]:
            ready += queue.ready_count
            unacknowledged += queue.unacked_count
            if queue.ring is not None:
                consumers += queue.consumer_count
        await asyncio.sleep(0)
    return Totals(ready, unacknowledged, consumers, len(queues))
