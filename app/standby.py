"""A hub that waits while another one with the same database is active."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from ssl import SSLContext
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from ..core.errors import StoreFailure
from ..hub.errors import DatabaseDown
from ..hub.peers.peers import Peers
from ..hub.storage.storage import Storage
from .http.server import HttpServer
from .problems import Problem
from .responses.error_pages import answer_problem

if TYPE_CHECKING:
    from ..hub.peers.active_hub import ActiveHub

AGAIN_S = 1
"""When a client that was refused should ask again."""


class TakenOver(StoreFailure):
    """Another hub has taken over, so this one must end."""

    def __init__(self) -> None:
        super().__init__(
            "another hub has taken over, since this one's session with the database had ended; "
            "started again, it is a standby"
        )


class Standby:
    """Waits until this hub is active, and answers HTTP requests meanwhile."""

    def __init__(
        self,
        peers: Peers,
        drain_s: float,
        listeners: Sequence[socket.socket],
        secured: Sequence[socket.socket],
        tls: SSLContext | None,
        say: Callable[[str], None],
    ) -> None:
        self._peers = peers
        self._say = say
        self._sockets = listeners, secured
        self._tls = tls
        self._server = HttpServer(StandbyApplication(peers), max_body_bytes=0, drain_s=drain_s)
        self.is_serving = False

    async def wait(self, storage: Storage, stop: asyncio.Event) -> ActiveHub | None:
        """Returns when the database is open: the hub that was active before, if it has not stopped
        by itself; also after `stop` is set, with the database closed then. Raises `ConfigError`."""
        opening = asyncio.create_task(self._peers.become_active(storage))
        stopped = asyncio.create_task(stop.wait())
        waiting = asyncio.create_task(self._peers.waiting.wait())
        try:
            await _first(opening, stopped, waiting)
            if not (opening.done() or stopped.done()):
                await self._serve()
                await _first(opening, stopped)
            self._peers.stop()
            with suppress(*((DatabaseDown,) if stopped.done() else ())):
                return await opening
            return None
        finally:
            stopped.cancel()
            waiting.cancel()
            if stopped.done():
                await storage.close()

    async def _serve(self) -> None:
        # Copies, since the server closes what it listens on, and clients should find the port open.
        listeners, secured = ([one.dup() for one in found] for found in self._sockets)
        self._say(
            "standby: another hub with the same database is active; this one waits for its end"
        )
        self.is_serving = True
        await self._server.start(listeners, secured, self._tls)

    async def stop(self) -> None:
        """Ends the answers; called when the hub that has become active can give them."""
        if self.is_serving:
            await self._server.stop()


class StandbyApplication:
    """The HTTP interface of a hub that waits."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response: Response
        match Request(scope).url.path:
            case "/health/live":
                response = JSONResponse({"status": "ok"})
            case "/health/ready":
                warnings = [self._reason()]
                response = JSONResponse({"status": "standby", "warnings": warnings}, 503)
            case _:
                headers = {"Retry-After": str(AGAIN_S)}
                response = answer_problem(Problem(503, self._reason(), headers=headers), scope)
        await response(scope, receive, send)

    def _reason(self) -> str:
        if not self._peers.waits:
            return "this hub has just become the active one, and is starting"
        return "this hub is a standby: another one with the same database is active"


async def _first(*tasks: asyncio.Task[Any]) -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
