"""One worker process, as the server sees it: a request goes in, a reply comes out."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Coroutine
from typing import Any, Self

from ...core.errors import WarrenError
from .limits import MIB, Limits
from .messages import REPLY, REQUEST, Status

START_TIMEOUT_S = 30.0
_PIECE_BYTES = 64 * 1024
"""What is passed on in one turn of the loop."""
_SECRET = "WARREN_"
"""Settings hold passwords, which are no business of a process that reads untrusted documents."""


class WorkFailed(WarrenError):
    """The work has broken a limit, or its process has ended; the text says which."""


class WorkRefused(WarrenError):
    """The function does not take what it was given; the text says why."""


class WorkerProcess:
    """Good for one request at a time while `is_usable`."""

    def __init__(self, process: Process, limits: Limits) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._requests, self._replies = process.stdin, process.stdout
        self._limits = limits

    @classmethod
    async def start(cls, limits: Limits) -> Self:
        """Raises `WorkFailed`."""
        numbers = (limits.cpu_s, limits.memory_bytes, os.getpid())
        # -P: no module of the current directory takes the place of one of ours.
        command = (sys.executable, "-P", "-m", f"{__package__}.main", *map(str, numbers))
        environment = {name: value for name, value in os.environ.items() if name[:7] != _SECRET}
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, env=environment
            )
        except OSError as error:
            raise WorkFailed(f"no process can be started to read it: {error}") from error
        worker = cls(process, limits)
        try:
            await worker._in_time("starting to read it", START_TIMEOUT_S, worker._reply())
        except BaseException:
            await worker.end()
            raise
        return worker

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_usable(self) -> bool:
        return self._process.returncode is None

    async def run(self, function: str, payload: bytes) -> bytes:
        """Raises `WorkFailed` and `WorkRefused`. Who cancels it has to end the process."""
        limit = self._limits.max_request_bytes
        if len(payload) > limit:
            raise WorkRefused(f"it has {len(payload)} bytes, {limit} can be read")
        work = self._exchange(function.encode(), payload)
        return await self._in_time("reading it", self._limits.wall_s, work)

    async def end(self) -> None:
        """Kills it, and returns when it is gone."""
        self._requests.close()
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def _in_time(self, what: str, limit_s: float, work: Coroutine[Any, Any, bytes]) -> bytes:
        try:
            async with asyncio.timeout(limit_s):
                return await work
        except TimeoutError as error:
            raise WorkFailed(f"{what} took more than {limit_s:g} s") from error
        except (asyncio.IncompleteReadError, BrokenPipeError, ConnectionResetError):
            raise await self._ended() from None

    async def _exchange(self, name: bytes, payload: bytes) -> bytes:
        self._requests.write(REQUEST.pack(len(name), len(payload)) + name)
        view = memoryview(payload)
        for start in range(0, len(payload), _PIECE_BYTES):
            self._requests.write(view[start : start + _PIECE_BYTES])
            await self._requests.drain()
        return await self._reply()

    async def _reply(self) -> bytes:
        header = await self._replies.readexactly(REPLY.size)
        status, length = REPLY.unpack(header)
        limit = self._limits.max_reply_bytes
        if length > limit:
            raise WorkFailed(f"what was read of it has {length} bytes, {limit} are taken")
        return self._result(Status(status), await self._read(length))

    async def _read(self, length: int) -> bytes:
        chunks = []
        while length:
            chunk = await self._replies.read(min(length, _PIECE_BYTES))
            if not chunk:
                raise asyncio.IncompleteReadError(b"", length)
            chunks.append(chunk)
            length -= len(chunk)
        return b"".join(chunks)

    def _result(self, status: Status, result: bytes) -> bytes:
        match status:
            case Status.DONE:
                return result
            case Status.REFUSED:
                raise WorkRefused(result.decode())
            case Status.OUT_OF_MEMORY:
                limit = self._limits.memory_bytes // MIB
                raise WorkFailed(f"reading it took more than {limit} MiB of memory")
            case Status.FAILED:
                raise WorkFailed("reading it failed by an error of this program, see its log")

    async def _ended(self) -> WorkFailed:
        """What its end means."""
        code = await self._process.wait()
        if code == -signal.SIGXCPU:
            limit = self._limits.cpu_s
            return WorkFailed(f"reading it took more than {limit} s of the processor")
        return WorkFailed(f"the process that read it has ended with {code}")
