"""The WebSocket of a live reader: messages out, commands in."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from ...core.wire.websocket import NORMAL, PONG, TEXT, Ending, close_frame, frame, frames
from ...hub.live.queue_reading import ManuallyAcked
from ...hub.live.reader import CUT_BYTES, LiveReader
from ...hub.live.reasons import Reason
from .connection import LiveConnection

if TYPE_CHECKING:
    from ..http.partial_messages import PartialMessages
    from .commands import Answer, Commands

AT_ONCE: Final = 1_000
"""Commands that are carried out between two rounds of the loop, some 20 ms if all are refused."""
WAITING_BYTES: Final = 1024 * 1024
"""Commands that wait for those before them; above it nothing more is read."""

_LOST: Final = Ending(NORMAL, "", by_client=True)
_json = msgspec.json.Encoder().encode


class LiveSocket(LiveConnection):
    """Carries out the commands of a client in order, many at a time; those that came before the
    connection ended too."""

    __slots__ = ("_commands", "_ending", "_inbound", "_task", "_waiting", "_waiting_bytes")

    def __init__(self, reader: LiveReader, commands: Commands) -> None:
        super().__init__(reader)
        self._commands = commands
        self._inbound: PartialMessages | None = None
        """None until the client sends something: most never do."""
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._ending: Ending | None = None

    def begin(self) -> None:
        """Begins unless the client has ended the connection in the packet of its handshake."""
        if self._ending is None:
            super().begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unread.stop()
        if self._inbound is not None:
            self._inbound.close()
            self._inbound = None  # The two refer to each other.
        self._end(_LOST)

    def data_received(self, data: bytes) -> None:
        if self._ending is not None:
            return
        inbound = self._inbound
        if inbound is None:
            inbound = self._inbound = self._commands.inbound(self._end)
        for text in inbound.receive_messages(data):
            self._waiting.append(text)
            self._waiting_bytes += len(text)
        if inbound.ping is not None:
            self._transport.write(frame(PONG, inbound.ping))
            inbound.ping = None
            self._end_if_slow()
        if self._waiting and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())
        if inbound.ended is not None:
            self._end(inbound.ended)
        elif self._waiting_bytes > WAITING_BYTES:
            self._transport.pause_reading()

    def _end(self, ending: Ending) -> None:
        """Sends no more messages; the connection ends behind the last command."""
        if self._ending is None:
            self._ending = ending
            source = self.reader.source
            if isinstance(source, ManuallyAcked):
                source.stop()
            else:
                self.reader.lost()
        if self._task is None:
            self._finish(self._ending)

    def _finish(self, ending: Ending) -> None:
        self.reader.lost()
        if not self._transport.is_closing():
            self._transport.write(close_frame(ending.code, ending.reason))
            self.close()

    def _end_if_slow(self) -> None:
        if self.unsent_bytes > CUT_BYTES:
            self.reader.end(Reason.slow(self.unsent_bytes, CUT_BYTES))

    async def _work(self) -> None:
        try:
            while self._waiting:
                texts, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                self._answer(await self._commands.carry_out(texts))
                await asyncio.sleep(0)
                self._waiting_bytes -= sum(map(len, texts))
                if self._waiting_bytes <= WAITING_BYTES and not self._transport.is_closing():
                    self._transport.resume_reading()
        finally:
            self._task = None
            if self._ending is not None:
                self._finish(self._ending)

    def _answer(self, answers: Sequence[Answer]) -> None:
        if answers and not self._transport.is_closing():
            self._transport.write(frames(TEXT, map(_json, answers)))
        self._end_if_slow()
