"""Reading a body: the limits are tested through the listener, in test_http_guard.py."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from warrenmq.app.problems import Problem
from warrenmq.app.requests.body import read_body
from warrenmq.core.resources.partial_content import PART_BYTES, PartialContents

PIECE_BYTES = 64 * 1024
PIECES = 512


class Client:
    """Sends so many pieces, made one by one, and then hangs up unless that was all."""

    def __init__(self, pieces: int, announced: int) -> None:
        self.pieces = pieces
        self.announced = announced
        self.sent = 0

    async def receive(self) -> Message:
        if self.sent == self.pieces:
            return {"type": "http.disconnect"}
        self.sent += 1
        body = bytes([self.sent % 256]) * PIECE_BYTES
        return {"type": "http.request", "body": body, "more_body": self.sent < self.announced}


async def read(client: Client, limit: int, unfinished: PartialContents | None = None) -> bytes:
    return await read_body(client.receive, limit, unfinished or PartialContents(), "alice")


async def test_a_large_body_is_in_memory_once() -> None:
    tracemalloc.start()
    try:
        body = await read(Client(PIECES, PIECES), PIECES * PIECE_BYTES)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(body) == PIECES * PIECE_BYTES and body[-1] == PIECES % 256
    assert body[::PIECE_BYTES] == bytes(number % 256 for number in range(1, PIECES + 1))
    assert peak_bytes < 1.3 * len(body)


async def test_a_client_that_hangs_up_and_one_that_sends_too_much() -> None:
    with pytest.raises(ClientDisconnect):
        await read(Client(2, 3), PIECES * PIECE_BYTES)
    with pytest.raises(Problem) as caught:
        await read(Client(3, 3), 3 * PIECE_BYTES - 1)
    assert caught.value.status == 413


class Slow(Client):
    """Waits before its third piece until it is told to go on."""

    def __init__(self) -> None:
        super().__init__(4, 4)
        self.waits, self.go_on = asyncio.Event(), asyncio.Event()

    async def receive(self) -> Message:
        if self.sent == 2:
            self.waits.set()
            await self.go_on.wait()
        return await super().receive()


async def test_incomplete_bodies_are_counted() -> None:
    client, unfinished = Slow(), PartialContents()
    reading = asyncio.ensure_future(read(client, 4 * PIECE_BYTES, unfinished))
    await client.waits.wait()
    assert unfinished.bytes == 2 * PIECE_BYTES + PART_BYTES
    client.go_on.set()
    assert len(await reading) == 4 * PIECE_BYTES
    assert unfinished.bytes == 0


async def test_an_incomplete_body_is_refused_when_memory_is_short() -> None:
    client, unfinished = Slow(), PartialContents()
    reading = asyncio.ensure_future(read(client, 4 * PIECE_BYTES, unfinished))
    await client.waits.wait()
    unfinished.shrink(0)
    with pytest.raises(Problem, match="memory is short") as caught:
        await reading
    assert (caught.value.status, unfinished.bytes) == (503, 0)


async def test_one_owner_has_a_bounded_amount_under_way() -> None:
    client, unfinished = Slow(), PartialContents()
    unfinished.owner_max_bytes = 3 * PIECE_BYTES
    reading = asyncio.ensure_future(read(client, 4 * PIECE_BYTES, unfinished))
    await client.waits.wait()
    with pytest.raises(Problem, match="incomplete requests") as caught:
        await read(Client(4, 4), 4 * PIECE_BYTES, unfinished)
    assert caught.value.status == 503
    client.go_on.set()
    assert len(await reading) == 4 * PIECE_BYTES
