"""What the overview knows of the RabbitMQ cluster that is the engine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ...core.errors import ChannelError
from ...hub.engine.own import DEAD_QUEUE

if TYPE_CHECKING:
    from ...hub.engine.amqp.engine import AmqpEngine

PERIOD_S: Final = 5.0


class Cluster:
    """Counts dead letters, since the hub's queues are not in this process."""

    def __init__(self, engine: AmqpEngine) -> None:
        self.engine = engine
        self.dead_letters: int | None = None
        """None while they are not known."""
        self._counting: asyncio.Task[None] | None = None

    def refresh(self) -> None:
        """Begins to count, unless that was begun within the period."""
        if self._counting is None or self._counting.done():
            self._counting = asyncio.create_task(self._count())

    def stop(self) -> None:
        if self._counting is not None:
            self._counting.cancel()

    async def _count(self) -> None:
        try:
            vhosts = self.engine.vhosts()
            found = [await self.engine.queue(vhost, DEAD_QUEUE.name) for vhost in vhosts]
            self.dead_letters = sum(one.messages_ready for one in found if one is not None)
        except ChannelError:
            self.dead_letters = None  # the state says why
        await asyncio.sleep(PERIOD_S)
