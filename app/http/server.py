"""Runs uvicorn inside this process, without its signal handlers, lifespan and logging."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from .guard import HttpGuard, HttpRules
from .request_ids import IdentifiedRequests
from .websocket import UpgradeRules

KEEP_ALIVE_S = 75
"""Longer than the 60 s that clients' pools and proxies commonly keep a connection."""
TLS_HANDSHAKE_S = 10.0


class HttpServer(uvicorn.Server):
    """The HTTP and HTTPS server."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_body_bytes: int,
        drain_s: float,
        upgrades: UpgradeRules | None = None,
        logs_refusals: bool = False,
    ) -> None:
        rules = HttpRules(max_body_bytes, upgrades, logs_refusals)
        config = uvicorn.Config(
            IdentifiedRequests(app),
            http=cast("type[asyncio.Protocol]", partial(HttpGuard, rules)),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            # Whether the peer is local decides about `guest`: no header may claim that.
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=max(1, round(drain_s)),
        )
        super().__init__(config)
        self._accepting = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._secured: list[socket.socket] = []
        self._tls: ssl.SSLContext | None = None

    async def start(
        self,
        listeners: list[socket.socket],
        secured: list[socket.socket] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> asyncio.Task[None]:
        """Starts the server; returns when connections are accepted.

        The task ends when the server does. The sockets `secured` serve HTTPS.
        """
        self._secured, self._tls = secured or [], tls
        self._task = asyncio.create_task(self.serve(sockets=listeners), name="http server")
        waiter = asyncio.create_task(self._accepting.wait())
        await asyncio.wait({self._task, waiter}, return_when=asyncio.FIRST_COMPLETED)
        waiter.cancel()
        if self._task.done():
            self._task.result()
        return self._task

    async def stop(self) -> None:
        """Stops accepting connections, waits for requests in progress, closes the connections."""
        self.should_exit = True
        for server in self.servers:
            server.close()  # at once: uvicorn checks `should_exit` only ten times a second
        if self._task is not None:
            await self._task

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in self._secured:
            self.servers.append(await self._tls_server(listening))
        self._accepting.set()

    async def _tls_server(self, listening: socket.socket) -> asyncio.Server:
        """Creates a TLS server for a socket, as uvicorn does; uvicorn has one context for all
        sockets."""
        assert self._tls is not None
        return await asyncio.get_running_loop().create_server(
            lambda: self.config.http_protocol_class(  # type: ignore[call-arg]
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            ),
            sock=listening,
            ssl=self._tls,
            ssl_handshake_timeout=TLS_HANDSHAKE_S,
            backlog=self.config.backlog,
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Does nothing: `app/lifespan.py` handles signals."""
        yield
