"""The messages of an exchange for all readers with the same keys: one queue, encoded once.

A broadcast keeps its last messages for readers that come back, and stays for a while without any.
While all readers have unsent bytes, messages wait in the queue.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from ..engine.port import BindingSpec, BulkConsumer, Engine, Numbered, QueueSpec
from .cursors import ResumeCursor, cursors_of
from .encoding import MessageEncoder
from .reasons import Reason
from .recent import RecentBytes, RecentMessages

if TYPE_CHECKING:
    from ..requests import Resource
    from .batch import EncodedBatch
    from .reader import LiveReader

WRITES_AT_ONCE: Final = 500
"""Readers that are written to between two rounds of the loop, some 3 ms."""
LINGER_S: Final = 30.0


class Broadcast:
    """One broadcast. Its messages are numbered from 0; the cursor of the first is `0@TAG`."""

    def __init__(
        self,
        engine: Engine,
        exchange: Resource,
        keys: Sequence[str],
        encoder: MessageEncoder,
        kept: RecentBytes,
        on_end: Callable[[], None],
    ) -> None:
        self._engine = engine
        self.exchange = exchange
        self._keys = keys
        self._encoder = encoder
        self._on_end = on_end
        self._tag = secrets.token_hex(4)
        self._taken = 0
        """How many messages were taken from the queue so far."""
        self._recent = RecentMessages(kept)
        self._readers: dict[LiveReader, None] = {}
        self._full: set[LiveReader] = set()
        self._pending: deque[tuple[int, EncodedBatch, list[LiveReader]]] = deque()
        """What is being written: the number of its first message, a batch, and the readers that
        have yet to get it."""
        self._consumer: BulkConsumer | None = None
        self._linger: asyncio.TimerHandle | None = None
        self._ended: Reason | None = None

    async def start(self) -> None:
        """Raises `ChannelError` if the exchange does not exist or can't be bound so."""
        vhost = self.exchange.vhost
        queue = await self._engine.declare_queue(
            vhost, QueueSpec("", durable=False, auto_delete=True, exclusive=True)
        )
        name = queue.spec.name
        try:
            for key in self._keys:
                binding = BindingSpec(self.exchange.name, name, routing_key=key)
                await self._engine.bind(vhost, binding)
            self._consumer = await self._engine.consume_unacked(
                vhost, name, on_messages=self._take, on_cancel=self._cancelled
            )
        except BaseException:
            await self._engine.delete_queue(vhost, name)
            raise
        self.stay()

    @property
    def is_idle(self) -> bool:
        return not self._readers

    def stay(self) -> None:
        """Keeps the broadcast for some time, also without a reader."""
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        if not (self._readers or self._ended):
            loop = asyncio.get_running_loop()
            self._linger = loop.call_later(LINGER_S, self.end, Reason.stopping())

    def end(self, reason: Reason) -> None:
        """Ends the broadcast and all its readers."""
        if self._ended is not None:
            return
        self._ended = reason
        self._on_end()
        if self._linger is not None:
            self._linger.cancel()
        self._recent.clear()
        self._pending.clear()
        for reader in tuple(self._readers):
            reader.end(reason)
        if self._consumer is not None:
            self._consumer.end()

    def _cancelled(self, error: Exception | None) -> None:
        """Ends it without its queue, or after an error; with its exchange, `Live` does."""
        self.end(Reason.cancelled(f"the queue of readers of {self.exchange}", error))

    # -- readers

    def add(self, reader: LiveReader) -> None:
        if self._ended is not None:
            reader.end(self._ended)
            return
        self._readers[reader] = None
        self.stay()
        if reader.cursor:
            self._go_on(reader)
        self._pause_or_resume()

    def _go_on(self, reader: LiveReader) -> None:
        """Sends a reader that comes back what it has missed, and says what of that is lost."""
        asked = ResumeCursor.read(reader.cursor)
        known = asked.tag == self._tag and asked.number <= self._taken
        first = max(asked.number, self._recent.first(self._taken)) if known else self._taken
        if not known or first > asked.number:
            reader.gap(reader.cursor, ResumeCursor(first, self._tag))
        for batch in self._recent.since(first):
            reader.send(batch)

    def remove(self, reader: LiveReader) -> None:
        self._readers.pop(reader, None)
        self._full.discard(reader)
        self.stay()
        self._pause_or_resume()

    def full(self, reader: LiveReader) -> None:
        self._full.add(reader)
        self._pause_or_resume()

    def drained(self, reader: LiveReader) -> None:
        self._full.discard(reader)
        self._pause_or_resume()

    def position(self, reader: LiveReader) -> str:
        number = self._pending[0][0] if self._pending else self._taken
        return str(ResumeCursor(number, self._tag))

    def _pause_or_resume(self) -> None:
        if self._consumer is None or self._ended is not None:
            return
        if self._pending or (self._full and len(self._full) == len(self._readers)):
            self._consumer.pause()
        else:
            self._consumer.resume()

    # -- messages

    def _take(self, messages: Sequence[Numbered]) -> None:
        first = self._taken
        numbers = range(first, first + len(messages))
        batch = self._encoder.encode(messages, cursors_of(numbers, self._tag))
        self._recent.add(first, batch)
        self._taken += len(messages)
        self._pending.append((first, batch, list(self._readers)))
        if len(self._pending) == 1:
            self._write_some()

    def _write_some(self) -> None:
        """Writes to some readers now, and to the others in later rounds of the loop."""
        room = WRITES_AT_ONCE
        while self._pending and room > 0:
            _, batch, readers = self._pending[0]
            some = readers[-room:]
            del readers[-room:]
            room -= len(some)
            if not readers:
                self._pending.popleft()
            for reader in some:
                reader.send(batch)
        if self._pending:
            asyncio.get_running_loop().call_soon(self._write_some)
        self._pause_or_resume()
