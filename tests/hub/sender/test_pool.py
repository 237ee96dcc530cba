"""Kept connections, with real ones to a server that tells how many are open."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from tests.hub.support import serving, until
from warrenmq.hub.sender import pool as module
from warrenmq.hub.sender.connection import HttpConnection
from warrenmq.hub.sender.pool import Pool
from warrenmq.hub.sender.response import ResponseLimits


class Server:
    def __init__(self, port: int) -> None:
        self.port = port
        self.open = 0

    async def connect(self, pool: Pool[str]) -> HttpConnection:
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: HttpConnection(ResponseLimits(1_000), pool.drop), "127.0.0.1", self.port
        )
        return connection


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server(0)

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.open += 1
        with contextlib.suppress(ConnectionError):
            await reader.read()
        made.open -= 1

    async with serving(hold) as url:
        made.port = urlsplit(url).port or 0
        yield made


async def test_the_most_recently_used_connection_is_taken_first(server: Server) -> None:
    pool: Pool[str] = Pool(3_600)
    first, second, other = [await server.connect(pool) for _ in range(3)]
    pool.put("a", first)
    pool.put("a", second)
    pool.put("b", other)
    assert [pool.take("a") for _ in range(3)] == [second, first, None]
    pool.put("a", first)
    pool.close()
    second.abort()
    await until(lambda: not server.open, "end of all connections")
    assert pool.take("a") is pool.take("b") is None


async def test_the_number_of_connections_is_limited(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_IDLE", 2)
    pool: Pool[str] = Pool(3_600)
    for name in "abc":
        pool.put(name, await server.connect(pool))
    await until(lambda: server.open == 2, "end of the one that was idle for longest")
    assert pool.take("a") is None
    pool.close()


async def test_the_time_of_connections_is_limited(server: Server) -> None:
    pool: Pool[str] = Pool(0.01)
    for name in "ab":
        pool.put(name, await server.connect(pool))
    await until(lambda: not server.open, "end of both")
