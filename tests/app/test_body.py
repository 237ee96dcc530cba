"""Reading a body: the limits are tested through the listener, in test_http_guard.py."""

from __future__ import annotations

import tracemalloc

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from warrenmq.app.body import read_body
from warrenmq.app.problems import Problem

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


async def test_a_large_body_is_in_memory_once() -> None:
    tracemalloc.start()
    try:
        body = await read_body(Client(PIECES, PIECES).receive, PIECES * PIECE_BYTES)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(body) == PIECES * PIECE_BYTES and body[-1] == PIECES % 256
    assert body[::PIECE_BYTES] == bytes(number % 256 for number in range(1, PIECES + 1))
    assert peak_bytes < 1.3 * len(body)


async def test_a_client_that_hangs_up_and_one_that_sends_too_much() -> None:
    with pytest.raises(ClientDisconnect):
        await read_body(Client(2, 3).receive, PIECES * PIECE_BYTES)
    with pytest.raises(Problem) as caught:
        await read_body(Client(3, 3).receive, 3 * PIECE_BYTES - 1)
    assert caught.value.status == 413
