"""A hub that waits while another one with the same database is active."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from ssl import SSLContext
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Receive, Scope, Send

from ...core.errors import StoreFailure
from ...hub.errors import DatabaseDown
from ...hub.peers.peers import Peers
from ...hub.storage.storage import Storage
from ..configuration.settings import Settings
from ..http.access_log import AccessLog
from ..http.server import HttpServer
from ..http.websocket import AcceptedUpgrade, Headers, UpgradeRules
from .application import AllUpgrades, StandbyApplication

if TYPE_CHECKING:
    from ...hub.peers.active_hub import ActiveHub


class TakenOver(StoreFailure):
    """Another hub has taken over, so this one must end."""

    def __init__(self) -> None:
        super().__init__(
            "another hub has taken over, since this one's session with the database had ended; "
            "started again, it is a standby"
        )


class ServedApplication:
    """What the HTTP server serves: another application as soon as this hub is active. Connections
    stay open, and requests under way are finished by the one that has begun them."""

    def __init__(self, application: ASGIApp, upgrades: UpgradeRules) -> None:
        self.application = application
        self.upgrades = upgrades

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.application(scope, receive, send)

    def is_for_application(self, path: bytes, headers: Headers, /) -> bool:
        return self.upgrades.is_for_application(path, headers)

    def accept(self, headers: Headers, peer: str, path: bytes) -> AcceptedUpgrade:
        return self.upgrades.accept(headers, peer, path)


class Standby:
    """Waits until this hub is active, and answers HTTP requests meanwhile. Its server is that of
    the active hub, too."""

    def __init__(
        self,
        peers: Peers,
        application: StandbyApplication,
        settings: Settings,
        listeners: Sequence[socket.socket],
        secured: Sequence[socket.socket],
        tls: SSLContext | None,
        announce: Callable[[], None],
    ) -> None:
        self._peers = peers
        self._announce = announce
        self._sockets = list(listeners), list(secured)
        self._tls = tls
        self._application = application
        logged = AccessLog(application) if settings.access_log else application
        self._served = ServedApplication(logged, AllUpgrades())
        self._server = HttpServer(
            self._served,
            max_body_bytes=settings.max_message_bytes,
            drain_s=settings.drain_s,
            upgrades=self._served,
            logs_refusals=settings.access_log,
        )
        self._serving: asyncio.Task[None] | None = None

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
            if not opening.done() or stopped.done() or opening.exception():
                await storage.close()
            stopped.cancel()
            waiting.cancel()

    async def _serve(self) -> None:
        await self._start()
        self._announce()

    async def _start(self) -> asyncio.Task[None]:
        self._serving = await self._server.start(*self._sockets, self._tls)
        return self._serving

    async def hand_over(self, application: ASGIApp, upgrades: UpgradeRules) -> asyncio.Task[None]:
        """Has the application of the active hub, which this one is now, answer from now on.
        Publishes under way go on; what was passed on to the hub before is ended. Returns the task
        of the server."""
        self._served.application, self._served.upgrades = application, upgrades
        self._application.close()
        return self._serving or await self._start()

    async def stop(self) -> None:
        """Waits for requests in progress; those that were passed on are ended."""
        if self._serving is not None:
            self._application.close()
            await self._server.stop()


async def _first(*tasks: asyncio.Task[Any]) -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
