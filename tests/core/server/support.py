"""Clients of a listener: on real loopback sockets, or with a fake transport."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from tests.conformance import frames
from tests.support.amqp import HEAD_BYTES, Reply, method, read
from warrenmq.core.server.listener import Listener
from warrenmq.core.server.peer import Peer

NO_FILE = 2**20
"""No open file has this number."""
READY_S = 30.0
"""A bound, not an expectation."""


def listening_socket() -> socket.socket:
    """Returns a socket that listens at a free loopback port."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    return listening


async def until(condition: Callable[[], bool]) -> None:
    """Waits for a condition, for a bounded time."""
    deadline = asyncio.get_running_loop().time() + READY_S
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "it did not come true"
        await asyncio.sleep(0.001)


async def rounds(count: int = 5) -> None:
    """Runs some iterations of the event loop."""
    for _ in range(count):
        await asyncio.sleep(0)


def log_in(password: str = "guest", heartbeat_s: int = 0, **client_properties: Any) -> bytes:
    """Returns the frames from start-ok to an open channel 1, which may be sent at once."""
    return (
        method(
            0, "Connection.StartOk", mechanism="PLAIN", response=f"\0guest\0{password}",
            client_properties=client_properties,
        )
        + method(0, "Connection.TuneOk", heartbeat=heartbeat_s)
        + method(0, "Connection.Open", virtual_host="/")
        + method(1, "Channel.Open")
    )  # fmt: skip


class Remote:
    """A client on a real socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def dial(cls, port: int) -> Remote:
        """Connects without sending anything."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    @classmethod
    async def enter(cls, port: int, **given: Any) -> Remote:
        """Connects, logs in and opens channel 1."""
        remote = await cls.dial(port)
        remote.send(frames.PROTOCOL_HEADER + log_in(**given))
        assert (await remote.next("Channel.OpenOk")).channel == 1
        return remote

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def reply(self) -> Reply:
        """Returns the next method, with its content. Raises `EOFError` at the end."""
        data = b""
        async with asyncio.timeout(READY_S):
            while True:
                head = await self.reader.readexactly(HEAD_BYTES)
                size = int.from_bytes(head[3:], "big") + len(frames.FRAME_END)
                data += head + await self.reader.readexactly(size)
                try:
                    (reply,) = read(data)
                except StopIteration:
                    continue
                return reply

    async def next(self, name: str) -> Reply:
        """Returns the next reply of that name; others before it are skipped."""
        while True:
            reply = await self.reply()
            if reply.name == name:
                return reply

    async def ended(self) -> bool:
        """Waits for the end of the stream, whatever comes before it."""
        async with asyncio.timeout(READY_S):
            try:
                while await self.reader.read(65_536):
                    pass
            except ConnectionResetError:
                pass
        return True

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            pass


class PlainSocket:
    def setsockopt(self, *_: int) -> None: ...

    def fileno(self) -> int:
        return NO_FILE


class FakeTransport(asyncio.Transport):
    """Records what is written, and how reading was paused."""

    def __init__(self, remote: str = "127.0.0.1") -> None:
        super().__init__()
        self.written = b""
        self.waiting_bytes = 0
        self.closed = False
        self.ended = False
        self._reading = True
        self._aborted = False
        self.high_water_bytes: int | None = None
        self._remote = remote

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        known = {
            "socket": PlainSocket(), "sockname": ("127.0.0.1", 5672),
            "peername": (self._remote, 50_000),
        }  # fmt: skip
        return known.get(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.high_water_bytes = high

    def get_write_buffer_size(self) -> int:
        return self.waiting_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        assert not self.closed
        self._reading = True

    def is_reading(self) -> bool:
        return self._reading

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def abort(self) -> None:
        self.closed = self._aborted = True

    def was_aborted(self) -> bool:
        return self._aborted

    def replies(self) -> list[Reply]:
        """Returns the replies since the last call."""
        taken, self.written = self.written, b""
        return read(taken)


def meet(listener: Listener, remote: str = "127.0.0.1") -> tuple[Peer, FakeTransport]:
    """Returns a peer with a fake transport."""
    peer, transport = Peer(listener), FakeTransport(remote)
    peer.connection_made(transport)
    return peer, transport


def meet_open(listener: Listener, heartbeat_s: int = 0) -> tuple[Peer, FakeTransport]:
    """As `meet`, logged in with channel 1."""
    listener.broker.users.passwords.check("guest", "guest", loopback=True)
    peer, transport = meet(listener)
    peer.data_received(frames.PROTOCOL_HEADER)
    peer.data_received(log_in(heartbeat_s=heartbeat_s))
    assert transport.replies()[-1].name == "Channel.OpenOk"
    return peer, transport
