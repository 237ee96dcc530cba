"""A hub that waits while another one with the same database is active."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from ssl import SSLContext
from typing import TYPE_CHECKING, Any

from ...core.errors import StoreFailure
from ...hub.errors import DatabaseDown
from ...hub.peers.peers import Peers
from ...hub.storage.storage import Storage
from ..configuration.settings import Settings
from ..http.access_log import AccessLog
from ..http.server import HttpServer
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


class Standby:
    """Waits until this hub is active, and answers HTTP requests meanwhile."""

    def __init__(
        self,
        peers: Peers,
        application: StandbyApplication,
        settings: Settings,
        listeners: Sequence[socket.socket],
        secured: Sequence[socket.socket],
        tls: SSLContext | None,
        say: Callable[[str], None],
    ) -> None:
        self._peers = peers
        self._say = say
        self._sockets = listeners, secured
        self._tls = tls
        self._application = application
        self._server = HttpServer(
            AccessLog(application) if settings.access_log else application,
            max_body_bytes=settings.max_message_bytes,
            drain_s=settings.drain_s,
            upgrades=AllUpgrades(),
            logs_refusals=settings.access_log,
        )
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
            if not opening.done() or stopped.done() or opening.exception():
                await storage.close()
            stopped.cancel()
            waiting.cancel()

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
            self._application.close()
            await self._server.stop()


async def _first(*tasks: asyncio.Task[Any]) -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
