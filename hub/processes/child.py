"""The server's side of a child process."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from contextlib import suppress
from typing import BinaryIO, cast

from .pipes import open_reader, open_writer


class ChildProcess(asyncio.Protocol):
    """A child process with its `stdin` and `stdout`; the protocol of its line (`main.py`)."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._transports: list[asyncio.BaseTransport] = []
        self._line: asyncio.WriteTransport | None = None
        self._pid: asyncio.Future[int] = loop.create_future()
        self._status: asyncio.Future[int] = loop.create_future()
        self._received = b""

    async def connect(self, line: socket.socket, stdin: BinaryIO, stdout: BinaryIO) -> None:
        """Opens this side of the line and of the pipes."""
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=line)
        self.stdin = await open_writer(stdin)
        self.stdout, output = await open_reader(stdout)
        self._transports = [self.stdin.transport, output]

    async def started(self) -> None:
        """Waits until the process has started. Raises `OSError`."""
        await asyncio.shield(self._pid)

    @property
    def pid(self) -> int:
        return self._pid.result()

    @property
    def returncode(self) -> int | None:
        """The exit status, the negative number of the signal that has ended it, or None."""
        return self._status.result() if self._status.done() else None

    async def communicate(self, data: bytes) -> bytes:
        """Writes the data; returns all that the process writes until it ends."""
        with suppress(BrokenPipeError, ConnectionResetError):  # it has ended; its status says why
            self.stdin.write(data)
            await self.stdin.drain()
        self.stdin.close()
        output = await self.stdout.read()
        await self.wait()
        return output

    def kill(self) -> None:
        """Kills the process if it runs; nothing more is read from it."""
        for transport in self._transports:
            transport.close()
        if self._line is not None and not self._line.is_closing():
            self._line.write_eof()

    async def wait(self) -> int:
        """Waits for the end; returns the exit status."""
        return await asyncio.shield(self._status)

    # -- the line

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._line = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        *rows, self._received = (self._received + data).split(b"\n")
        for row in map(json.loads, rows):
            if "pid" in row:
                self._pid.set_result(row["pid"])
            elif "status" in row:
                self._status.set_result(row["status"])
            else:
                self._pid.set_exception(OSError(row["error"]))

    def connection_lost(self, error: Exception | None) -> None:
        # Without an answer, the program that starts processes was killed, and they with it.
        if not self._pid.done():
            self._pid.set_exception(OSError("the process that starts others was killed"))
        if not self._status.done():
            self._status.set_result(-signal.SIGKILL)
