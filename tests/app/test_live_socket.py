"""Commands over WebSocket: very many at once do not hold up others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

from tests.app.test_partial_messages import OpenTransport
from tests.support.websocket import BINARY, client_frame
from warrenmq.app.http.partial_messages import PartialMessages
from warrenmq.app.live.socket import AT_ONCE, LiveSocket
from warrenmq.core.resources.partial_content import PartialContents
from warrenmq.core.wire.websocket import Ending


class Counting:
    """Commands whose number is noted, with the round of the loop."""

    def __init__(self) -> None:
        self.carried_out: list[int] = []
        self.round = 0
        self.rounds: list[int] = []

    def inbound(self, end: Callable[[Ending], None]) -> PartialMessages:
        return PartialMessages(100, PartialContents(), "ada", end)

    async def carry_out(self, texts: Sequence[bytes]) -> list[Any]:
        self.carried_out.append(len(texts))
        self.rounds.append(self.round)
        return []

    def tick(self) -> None:
        self.round += 1
        asyncio.get_running_loop().call_soon(self.tick)


async def test_many_commands_take_several_rounds_of_the_loop() -> None:
    commands = Counting()
    reader = SimpleNamespace(source=None, lost=lambda: None, form=SimpleNamespace(hello=b""))
    socket = LiveSocket(cast(Any, reader), cast(Any, commands))
    socket.connection_made(cast(Any, OpenTransport()))
    commands.tick()
    socket.data_received(client_frame(BINARY, b"{}") * (2 * AT_ONCE + 1))
    async with asyncio.timeout(10):
        while sum(commands.carried_out) < 2 * AT_ONCE + 1:
            await asyncio.sleep(0)
    assert commands.carried_out == [AT_ONCE, AT_ONCE, 1]
    assert len(set(commands.rounds)) == 3
