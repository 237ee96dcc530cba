"""Kept connections, with real ones to a server that tells how many are open."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from tests.hub.support import serving, until
from warrenmq.hub.sender import pool as module
from warrenmq.hub.sender.connection import Connection, Limits
from warrenmq.hub.sender.pool import Pool


class Server:
    def __init__(self, port: int) -> None:
        self.port = port
        self.open = 0

    async def connect(self, pool: Pool[str]) -> Connection:
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: Connection(Limits(1_000), pool.drop), "127.0.0.1", self.port
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


async def test_the_last_used_of_a_target_comes_first(server: Server) -> None:
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


async def test_one_that_is_closing_is_not_given_out(server: Server) -> None:
    pool: Pool[str] = Pool(3_600)
    living, closing = [await server.connect(pool) for _ in range(2)]
    pool.put("a", living)
    pool.put("a", closing)
    closing.abort()
    assert [pool.take("a"), pool.take("a")] == [living, None]
    living.abort()


async def test_so_many_are_kept(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_IDLE", 2)
    pool: Pool[str] = Pool(3_600)
    for name in "abc":
        pool.put(name, await server.connect(pool))
    await until(lambda: server.open == 2, "end of the one that was idle for longest")
    assert pool.take("a") is None
    pool.close()


async def test_they_are_kept_for_so_long(server: Server) -> None:
    pool: Pool[str] = Pool(0.01)
    for name in "ab":
        pool.put(name, await server.connect(pool))
    await until(lambda: not server.open, "end of both")


async def test_none_is_kept_where_none_is_wanted(server: Server) -> None:
    pool: Pool[str] = Pool(0)
    pool.put("a", await server.connect(pool))
    assert pool.take("a") is None
    await until(lambda: not server.open, "end of the connection")
