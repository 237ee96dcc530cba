"""Follows a stream of RabbitMQ for a reader in this process, anew after each loss."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from ....core.errors import ChannelError
from ...tasks import Tasks
from ..port import Numbered, ReadMessages
from .connections import Connections
from .encoding import StreamMessage, sequence_of
from .stream_reader import reading

RETRY_S, RETRY_MAX_S = 0.2, 5.0
AT_ONCE: Final = 100
"""Messages that are passed on together."""
_NOT_FOUND: Final = 404

log = logging.getLogger(__name__)


class AmqpStreamFollower:
    """Implements `BulkConsumer` for `Stream.follow`: reads once `resume` is called."""

    def __init__(
        self,
        connections: Connections,
        place: tuple[str, str],
        incarnation: str,
        start: int,
        prefetch: int,
        on_messages: Callable[[Sequence[int], ReadMessages], None],
        on_gap: Callable[[int, int], None],
        on_end: Callable[[Exception | None], None],
    ) -> None:
        self._connections = connections
        self._place = place
        self._incarnation = incarnation
        self._next = start
        """The offset of the next message to pass on."""
        self._prefetch = prefetch
        self._on_messages = on_messages
        self._on_gap = on_gap
        self._on_end = on_end
        self._may_read = asyncio.Event()
        self._tasks = Tasks()
        self._task: asyncio.Task[None] | None = None

    def pause(self) -> None:
        self._may_read.clear()

    def resume(self) -> None:
        self._may_read.set()
        if self._task is None:
            self._task = self._tasks.own(self._run())

    def end(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        wait_s = RETRY_S
        while True:
            before = self._next
            try:
                await self._follow()
            except ChannelError as error:
                if error.code == _NOT_FOUND:
                    self._on_end(None)
                    return
                log.info("stream '%s' in vhost '%s' is not read: %s", *self._place[::-1], error)
            except Exception as error:
                self._on_end(error)
                raise
            wait_s = RETRY_S if self._next > before else min(2 * wait_s, RETRY_MAX_S)
            await asyncio.sleep(wait_s)

    async def _follow(self) -> None:
        vhost, name = self._place
        async with reading(self._connections, vhost, name, self._next, self._prefetch) as reader:
            while True:
                await self._may_read.wait()
                self._pass_on(await reader.some(AT_ONCE))

    def _pass_on(self, messages: Sequence[StreamMessage]) -> None:
        """Passes messages on, with a gap before them if some are missing."""
        found = [one for one in messages if one.offset >= self._next]
        if not found:
            return
        if found[0].offset > self._next:
            self._on_gap(self._next, found[0].offset)
        self._next = found[-1].offset + 1
        self._on_messages(
            [one.offset for one in found], lambda: [self._numbered(one) for one in found]
        )

    def _numbered(self, one: StreamMessage) -> Numbered:
        if one.sequence is not None:
            return one.sequence, one.message
        message, identity = one.message, f"{self._incarnation}:{one.offset}"
        key = message.routing_key
        return sequence_of(identity, message.exchange, key, message.body), message
