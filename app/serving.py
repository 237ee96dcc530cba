"""Serves HTTP: as a standby first where hubs share a database, then for the hub; and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from starlette.types import ASGIApp

from ..core.server.loop_monitor import LoopMonitor
from ..hub.peers.peers import Peers
from .access.origins import AllowedOrigins
from .access.sessions import Sessions
from .asgi import Application
from .assembly import Assembly
from .context import Context
from .http.access_log import AccessLog
from .http.listen import name_of
from .http.server import HttpServer
from .http.websocket import Upgrades
from .logs.tail import LogTail
from .metrics_application import MetricsApplication
from .node import Listening, Node
from .overview.live import LiveOverview
from .peers.application import StandbyApplication
from .peers.hops import FromStandbys, Hops
from .peers.publishing import StandbyPublisher
from .peers.standby import Standby
from .snapshots import Snapshots
from .startup import Startup
from .tunnels.host import TunnelHost


class HttpServing:
    """The HTTP servers of a process, and what they serve."""

    def __init__(self, startup: Startup, assembly: Assembly) -> None:
        self._startup = startup
        self.assembly = assembly
        self._hops = Hops(startup.key_path)
        self._standby: Standby | None = None
        self.stops: list[Callable[[], Coroutine[None, None, None]]] = []
        """They wait for requests in progress, then close the connections."""

    def create_standby(self, peers: Peers, announce: Callable[[], None]) -> Standby:
        """Returns what serves until this hub is active; `start` then goes on with its server."""
        startup, assembly, settings = self._startup, self.assembly, self._startup.settings
        publishing = StandbyPublisher(
            assembly.publisher,
            assembly.authenticator,
            clients=startup.clients,
            is_tunnel=assembly.hub.tunnels.addresses.has,
            base_path=settings.base_path,
        )
        self._standby = Standby(
            peers,
            StandbyApplication(peers, self._hops, publishing, settings.base_path),
            settings,
            startup.sockets.http,
            startup.sockets.https,
            startup.tls(),
            announce,
        )
        self.stops.append(self._standby.stop)
        return self._standby

    def create_context(self, log: LogTail, monitor: LoopMonitor, overview: LiveOverview) -> Context:
        """Returns what every route needs; `log` has the last lines of the log."""
        startup, assembly, opened = self._startup, self.assembly, self.assembly.opened
        settings, sockets, broker = startup.settings, startup.sockets, opened.broker
        snapshots = Snapshots(startup.directory, broker, opened.store, assembly.hub.storage)
        return Context(
            engine=opened.engine,
            hub=assembly.hub,
            authenticator=assembly.authenticator,
            vhosts=broker.vhosts,
            public_url=settings.public_url,
            own_url=f"http://{name_of(sockets.http[0])}",
            broker=broker,
            sessions=Sessions(settings.session_idle_s, settings.session_max_age_s),
            setup_link=opened.setup_link,
            node=Node(
                listeners=[Listening(*found) for found in sockets.by_protocol()],
                directory=startup.directory,
                certificates=settings.certificate_paths(),
                log=log,
            ),
            metrics_readers=settings.metrics_readers,
            monitor=monitor,
            snapshots=snapshots,
            overview=overview,
            management_url="" if startup.cluster is None else startup.cluster.management[0],
        )

    async def start(self, context: Context, is_ready: Callable[[], bool]) -> asyncio.Task[None]:
        """Serves the hub; returns the task of the server."""
        startup, settings = self._startup, self._startup.settings
        application = self._application(context, is_ready)
        served: ASGIApp = AccessLog(application) if settings.access_log else application
        upgrades = self._upgrades(application)
        if self._standby is not None:
            return await self._standby.hand_over(FromStandbys(served, self._hops), upgrades)
        server = HttpServer(
            served,
            max_body_bytes=settings.max_message_bytes,
            drain_s=settings.drain_s,
            upgrades=upgrades,
            logs_refusals=settings.access_log,
        )
        task = await server.start(startup.sockets.http, startup.sockets.https, startup.tls())
        self.stops.append(server.stop)
        return task

    async def start_metrics(self, context: Context) -> None:
        """Serves the metrics on a port of their own, if the settings ask for one."""
        startup = self._startup
        if not startup.sockets.prometheus:
            return
        server = HttpServer(
            MetricsApplication(context, startup.clients),
            max_body_bytes=0,
            drain_s=startup.settings.drain_s,
        )
        await server.start(startup.sockets.prometheus)
        self.stops.append(server.stop)

    def _application(self, context: Context, is_ready: Callable[[], bool]) -> Application:
        settings = self._startup.settings
        return Application(
            context,
            self.assembly.publisher,
            base_path=settings.base_path,
            clients=self._startup.clients,
            is_ready=is_ready,
            tunnel_host=TunnelHost(context.hub.tunnels, context.unfinished, settings.max_hops),
            page_origins=AllowedOrigins((), settings.page_origins()),
        )

    def _upgrades(self, application: Application) -> Upgrades:
        startup, settings = self._startup, self._startup.settings
        # Pages of other origins may be accepted for WebSocket, where they log in themselves.
        return Upgrades(
            self.assembly.listener,
            AllowedOrigins(startup.base_urls(), settings.websocket_origins),
            startup.hosts,
            startup.clients,
            lets_guest_in=settings.allows_guest_over_http(),
            is_http_path=application.has,
            is_for_application=application.takes_websocket,
            has_amqp=startup.cluster is None,
        )
