"""What is dialled is what was vetted."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from ipaddress import IPv4Address

import httpx
import pytest

from tests.support.http import Callback
from warren.hub.errors import CallbackRefused
from warren.hub.fetch.pinned import Pinned
from warren.hub.guard.addresses import Address
from warren.hub.guard.guard import Guard
from warren.hub.settings import HubSettings


class Resolver(Guard):
    """Names have these addresses, and no others know of it."""

    def __init__(self, *addresses: str) -> None:
        super().__init__(HubSettings(allow_loopback=True))
        self._addresses = list(map(IPv4Address, addresses))
        self.asked: list[tuple[str, int]] = []

    async def resolve(self, host: str, port: int) -> list[Address]:
        self.asked.append((host, port))
        self.vet(host, port, list(self._addresses))
        return list(self._addresses)


@contextlib.asynccontextmanager
async def pinned(guard: Guard) -> AsyncIterator[Pinned]:
    made = Pinned(guard, 1_000, 5.0)
    try:
        yield made
    finally:
        await made.close()


async def test_the_vetted_address_is_dialled(callback: Callback) -> None:
    guard = Resolver("127.0.0.1")
    url = f"http://topic.invalid:{callback.port}/a?b"
    async with pinned(guard) as client, client.send("POST", url, {"X-A": "b"}, b"c") as response:
        assert response.status_code == 200
    assert guard.asked == [("topic.invalid", callback.port)]
    [asked] = callback.requests
    assert (asked.method, asked.raw_path, asked.body) == ("POST", "/a?b", b"c")
    assert asked.headers["Host"] == f"topic.invalid:{callback.port}"
    assert asked.headers["X-A"] == "b"


async def test_the_next_address_is_tried(callback: Callback) -> None:
    url = f"http://topic.invalid:{callback.port}/"
    guard = Resolver("127.0.0.2", "127.0.0.1")
    async with pinned(guard) as client, client.send("GET", url, {}) as response:
        assert response.status_code == 200
    async with pinned(Resolver("127.0.0.2", "127.0.0.3")) as client:
        with pytest.raises(httpx.ConnectError):
            async with client.send("GET", url, {}):
                pass


async def test_one_inner_address_refuses_all(callback: Callback) -> None:
    url = f"http://topic.invalid:{callback.port}/"
    async with pinned(Resolver("127.0.0.1", "10.0.0.1")) as client:
        with pytest.raises(CallbackRefused, match="not allowed|not public"):
            async with client.send("GET", url, {}):
                pass
    assert callback.requests == []
