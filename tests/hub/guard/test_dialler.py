"""What is dialled is what was vetted, and one dead address of several costs nothing."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from ipaddress import IPv4Address

import pytest

from tests.hub.support import Posting, serving
from tests.support.settings import hub_settings
from warrenmq.hub.fetch.fetcher import Fetcher
from warrenmq.hub.guard.addresses import Address
from warrenmq.hub.guard.dialler import Dialler
from warrenmq.hub.guard.guard import Guard
from warrenmq.hub.guard.lookups import Purpose
from warrenmq.hub.sender.http_sender import HttpSender
from warrenmq.hub.verification.verify import Verifier

DEAD = "127.0.0.2"
LIVING = "127.0.0.1"


class Resolver(Guard):
    """Names have these addresses, and no others know of it."""

    def __init__(self, *addresses: str) -> None:
        self.settings = hub_settings(allow_loopback=True)
        super().__init__(self.settings)
        self._addresses = list(map(IPv4Address, addresses))
        self.asked: list[tuple[str, int]] = []

    async def resolve(self, host: str, port: int, purpose: Purpose) -> list[Address]:
        self.asked.append((host, port))
        self.vet(host, port, list(self._addresses))
        return list(self._addresses)


@contextlib.contextmanager
def silent() -> Iterator[int]:
    """A port of `DEAD` that takes no connection and refuses none: its backlog is full."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind((DEAD, 0))
        listening.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]


@pytest.mark.parametrize("is_silent", [False, True], ids=["refusing", "silent"])
async def test_every_request_reaches_a_working_address(is_silent: bool) -> None:
    with silent() as port:
        guard = Resolver(DEAD, LIVING)
        if not is_silent:
            with socket.socket() as free:  # nobody listens there at `DEAD`
                free.bind((LIVING, 0))
                port = free.getsockname()[1]
        url = f"http://topic.invalid:{port}/a?b"
        sender = HttpSender(guard.settings, guard)
        verifier = Verifier(guard.settings, guard)
        fetcher = Fetcher(guard.settings, guard)
        came: list[str] = []

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            came.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await reader.read()

        async with serving(answer, port):
            assert (await Posting(sender).post(url, {}, b"x")).status == 200
            assert await verifier.notify(url, url) == 200
            assert (await fetcher.get(url, {})).body == b"ok"
            await sender.close()
            await verifier.close()
            await fetcher.close()
    # A verification asks twice: the addresses decide about its turn before.
    assert guard.asked == [("topic.invalid", port)] * 4
    assert [head.split(" HTTP")[0] for head in came] == ["POST /a?b", "GET /a?b", "GET /a?b"]
    assert all(f"Host: topic.invalid:{port}\r\n" in head for head in came)


def dialler(guard: Guard, connect_timeout_s: float) -> Dialler:
    return Dialler(guard, connect_timeout_s, Purpose.DELIVER)


async def test_without_a_working_address() -> None:
    with pytest.raises(ConnectionRefusedError):
        await dialler(Resolver(DEAD, "127.0.0.3"), 5.0).connect("topic.invalid", 1)
    with silent() as port:
        hasty = dialler(Resolver(DEAD, DEAD), 0.3)
        with pytest.raises(TimeoutError, match=f"no connection to a.invalid:{port} within 0.3 s"):
            await hasty.connect("a.invalid", port)
