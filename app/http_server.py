"""uvicorn as a part of this process: no signal handlers, no lifespan, no logging of its own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from .http_guard import guard

KEEP_ALIVE_S = 75
"""Longer than the 60 s that clients' pools and proxies commonly keep a connection."""


class HttpServer(uvicorn.Server):
    def __init__(self, app: ASGIApp, *, max_body_bytes: int, drain_s: float) -> None:
        config = uvicorn.Config(
            app,
            http=guard(max_body_bytes),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            # Who is on loopback decides about `guest`: no forwarded header may claim it.
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=max(1, round(drain_s)),
        )
        super().__init__(config)
        self._accepting = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self, listeners: list[socket.socket]) -> asyncio.Task[None]:
        """Returns when connections are accepted; the task ends when the server does."""
        self._task = asyncio.create_task(self.serve(sockets=listeners), name="http server")
        waiter = asyncio.create_task(self._accepting.wait())
        await asyncio.wait({self._task, waiter}, return_when=asyncio.FIRST_COMPLETED)
        waiter.cancel()
        if self._task.done():
            self._task.result()
        return self._task

    async def stop(self) -> None:
        """Stops accepting, lets requests under way finish, closes the connections."""
        self.should_exit = True
        for server in self.servers:
            server.close()  # at once: uvicorn looks only ten times a second
        if self._task is not None:
            await self._task

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._accepting.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the business of the whole process."""
        yield
