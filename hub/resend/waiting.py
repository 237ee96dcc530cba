"""Finds the messages that wait in retry queues, and has them delivered now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from ..delivery.retry import STEPS_S
from ..delivery.retry_queues import RetryQueues
from ..engine.own import delay
from ..engine.port import Engine, UnackedMessage

SCAN_LIMIT: Final = 100_000
"""Messages of one retry queue that are looked at."""

RetryKey = tuple[str, str]
"""The queue that a message returns to, and its webhook-id."""
Look = Callable[[RetryKey, UnackedMessage], Awaitable[None]]


class PendingRetries:
    """Finds messages in retry queues and delivers them. Every method looks through all retry queues
    of a virtual host."""

    def __init__(self, engine: Engine, retry_queues: RetryQueues) -> None:
        self._engine = engine
        self._retry_queues = retry_queues

    async def places(self, vhost: str) -> set[RetryKey]:
        """Returns which of the messages wait."""
        found: set[RetryKey] = set()

        async def look(place: RetryKey, _: UnackedMessage) -> None:
            found.add(place)

        await self._scan(vhost, lambda _: True, look)
        return found

    async def deliver_now(self, vhost: str, wanted: set[RetryKey]) -> set[RetryKey]:
        """Returns those of the messages that were waiting and are in their queues now."""
        found: set[RetryKey] = set()

        async def look(place: RetryKey, taken: UnackedMessage) -> None:
            message = taken.message
            envelope = await self._retry_queues.internal_headers.read_in_thread(
                message, taken.sequence
            )
            await self._retry_queues.deliver_now(vhost, place[0], message, envelope)
            taken.ack()
            found.add(place)

        await self._scan(vhost, wanted.__contains__, look)
        return found

    async def _scan(self, vhost: str, is_wanted: Callable[[RetryKey], bool], look: Look) -> None:
        headers = self._retry_queues.internal_headers

        async def read(chunk: Sequence[UnackedMessage]) -> bool:
            for taken in chunk:
                envelope = await headers.read_in_thread(taken.message, taken.sequence)
                place = taken.message.routing_key, envelope.message_id
                # What a client has published there is no retry.
                if envelope.is_sealed and is_wanted(place):
                    await look(place, taken)
            return True

        for seconds in STEPS_S:
            name = delay(seconds)[1].name
            if await self._engine.queue(vhost, name) is not None:
                await self._engine.scan(vhost, name, read, limit=SCAN_LIMIT)
