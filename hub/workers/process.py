"""The server's side of a worker process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, Self

from ..processes.child import ChildProcess
from ..processes.starter import ProcessStarter
from .errors import WorkFailed, WorkRefused
from .limits import MIB, WorkerLimits
from .messages import REPLY, REQUEST, ReplyStatus

START_TIMEOUT_S = 30.0
_PIECE_BYTES = 64 * 1024
"""How much is written or read in one iteration of the event loop."""


class WorkerProcess:
    """A worker process, for one request at a time while `is_usable`."""

    def __init__(self, process: ChildProcess, limits: WorkerLimits) -> None:
        self._process = process
        self._requests, self._replies = process.stdin, process.stdout
        self._limits = limits

    @classmethod
    async def start(cls, starter: ProcessStarter, limits: WorkerLimits) -> Self:
        """Starts a process. Raises `WorkFailed`."""
        numbers = (limits.cpu_s, limits.memory_bytes, starter.pid)
        try:
            process = await starter.start(f"{__package__}.main", *map(str, numbers))
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
        """Whether the process runs."""
        return self._process.returncode is None

    async def run(self, function: str, payload: bytes) -> bytes:
        """Runs a function. Raises `WorkFailed` and `WorkRefused`.

        After a cancellation the process has to be ended.
        """
        limit = self._limits.max_request_bytes
        if len(payload) > limit:
            raise WorkRefused(f"its {len(payload)} bytes exceed the limit of {limit}")
        work = self._exchange(function.encode(), payload)
        return await self._in_time("reading it", self._limits.wall_s, work)

    async def end(self) -> None:
        """Kills the process, and waits for its end."""
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
            raise WorkFailed(f"the result of {length} bytes exceeds the limit of {limit}")
        return self._result(ReplyStatus(status), await self._read(length))

    async def _read(self, length: int) -> bytes:
        chunks = []
        while length:
            chunk = await self._replies.read(min(length, _PIECE_BYTES))
            if not chunk:
                raise asyncio.IncompleteReadError(b"", length)
            chunks.append(chunk)
            length -= len(chunk)
        return b"".join(chunks)

    def _result(self, status: ReplyStatus, result: bytes) -> bytes:
        match status:
            case ReplyStatus.DONE:
                return result
            case ReplyStatus.REFUSED:
                raise WorkRefused(result.decode())
            case ReplyStatus.OUT_OF_MEMORY:
                limit = self._limits.memory_bytes // MIB
                raise WorkFailed(f"reading it took more than {limit} MiB of memory")
            case ReplyStatus.FAILED:
                raise WorkFailed("internal error while parsing it; see the log")

    async def _ended(self) -> WorkFailed:
        """Returns the error for the end of the process."""
        code = await self._process.wait()
        if code == -signal.SIGXCPU:
            limit = self._limits.cpu_s
            return WorkFailed(f"reading it took more than {limit} s of the processor")
        return WorkFailed(f"the process that read it has ended with {code}")
