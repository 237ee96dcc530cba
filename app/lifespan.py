"""Creates the parts of a running Warren, starts them in order and stops them together.

The module is long since the order of a start and a stop is one sequence, to be read whole.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from ssl import SSLContext
from typing import TYPE_CHECKING

from starlette.types import ASGIApp

from ..core import VERSION
from ..core.auth import GUEST, Users, hashed
from ..core.broker import Broker
from ..core.clock import SystemClock
from ..core.definitions.reserved_names import rename_reserved
from ..core.errors import StoreFailure
from ..core.server.certificates import Certificates
from ..core.server.listener import Listener
from ..core.server.loop_monitor import LoopMonitor
from ..core.server.resources import Resources
from ..core.server.tuning import tune, uncollected
from ..core.store.durable import DurableStore
from ..core.store.offline import LOG
from ..hub.engine.embedded import EmbeddedEngine
from ..hub.engine.own import is_own
from ..hub.engine.port import Engine
from ..hub.errors import DatabaseDown
from ..hub.peers.peers import Peers
from ..hub.processes.starter import ProcessStarter
from ..hub.service import Hub, key_path
from ..hub.storage.schema import DATABASE_NAME, refuse_newer_file
from .access.authentication import Authenticator
from .access.clients import Clients
from .access.local_requests import LocalHosts, LocalRequests
from .access.origins import AllowedOrigins
from .access.owners import OwnerRights
from .access.sessions import Sessions
from .access.setup_link import SetupLink, has_administrator
from .access.tokens import TokenUsers
from .asgi import Application
from .commands.exit_codes import Unreachable
from .configuration.first_user import warn_of_unused
from .configuration.parts import broker_limits, hub_settings
from .configuration.settings import Settings
from .configuration.tls import certificate_name, verify
from .context import Context
from .engine import connect, take_over
from .exposure import Exposure
from .http.access_log import AccessLog
from .http.listen import Sockets, name_of
from .http.server import HttpServer
from .http.websocket import Upgrades
from .logs.formats import PACKAGE
from .logs.tail import LogTail
from .metrics_application import MetricsApplication
from .node import Listening, Node, node_name
from .overview.live import LiveOverview
from .peers.application import StandbyApplication
from .peers.hops import FromStandbys, Hops
from .peers.publishing import StandbyPublisher
from .peers.standby import Standby, TakenOver
from .routes.publish import HttpPublisher
from .snapshots import Snapshots, clear
from .storage import open_store, stop_store
from .telemetry import start_telemetry
from .tunnels.host import TunnelHost

if TYPE_CHECKING:
    from ..hub.engine.amqp.engine import AmqpEngine
    from ..hub.spans import Spans


logger = logging.getLogger(__name__)


class Warren:
    """Broker, AMQP listener, hub and HTTP server of one process."""

    def __init__(
        self,
        settings: Settings,
        directory: Path,
        sockets: Sockets,
        certificates: Certificates | None,
        exposure: Exposure,
        starter: ProcessStarter,
    ) -> None:
        self._starter = starter
        self._exposure = exposure
        self._settings = settings
        self._directory = directory
        self._sockets = sockets
        self._certificates = certificates
        self._clients = Clients(settings.http_proxy_networks()) if settings.http_proxies else None
        self._hosts = LocalHosts(socket.gethostname())
        self._has_proxy = bool(settings.http_proxies or settings.public_url) and not settings.dev
        self._ready = False
        self._stop_requested = asyncio.Event()
        self._log = LogTail()
        self._failure: OSError | None = None
        self._limits: list[str] = []
        self._restored: Users | None = None
        """The users of a data directory that existed before the start."""
        self._setup_link: SetupLink | None = None
        self._address = settings.engine_address()
        """Where the engine's cluster is; None for the embedded engine."""
        self._cluster: AmqpEngine | None = None
        self._key_path = key_path(settings.hub_key_file, directory)
        self._hops = Hops(self._key_path)
        self._peers = self._create_peers()
        """Only with a cluster's engine and a database that other hubs can have too."""
        self._standby: Standby | None = None
        self._authenticator: Authenticator
        self._listener: Listener
        self._publisher: HttpPublisher
        self._is_taken_over = False
        self._is_reachable = _always
        self._spans: Spans | None = None
        self._monitor = LoopMonitor()
        self._stops: list[Callable[[], Coroutine[None, None, None]]] = []

    async def run(self, started: float) -> None:
        """Serves until SIGTERM or SIGINT, then drains."""
        stop = self._stop_requested
        _stop_at_signals(stop)
        self._reload_at_signal()
        async with AsyncExitStack() as stack:
            with uncollected():
                engine, hub, broker, store = await self._prepare(stack)
                await self._begin_turns(stack, broker)
                self._publisher = self._create_publisher(engine, broker)
            await self._become_active(stack, hub)
            if stop.is_set():
                return
            with uncollected():
                server = await self._start(engine, hub, broker, store)
                tune()
            self._ready = True
            self._announce(time.perf_counter() - started)
            if self._restored is not None:
                await warn_of_unused(self._settings, self._restored)
            waiter = asyncio.create_task(stop.wait())
            await asyncio.wait({waiter, server}, return_when=asyncio.FIRST_COMPLETED)
            self._ready = False
            self._say(f"stopping: requests in progress have {self._settings.drain_s:g} s")
            if server.done():
                server.result()
        if self._is_taken_over:
            raise TakenOver
        if self._failure is not None:
            raise StoreFailure(f"the log can't be written: {self._failure}") from self._failure

    def _reload_at_signal(self) -> None:
        """Loads the certificates again at SIGHUP: they are renewed every few weeks."""
        if self._certificates is not None:
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGHUP, self._certificates.reload)

    def _keep_log(self, stack: AsyncExitStack) -> None:
        """Keeps the last lines of the log for the API, until the server stops."""
        logger = logging.getLogger(PACKAGE.rstrip("."))
        logger.addHandler(self._log)
        stack.callback(logger.removeHandler, self._log)
        self._stops.append(self._log.end)

    def _begin_spans(self, stack: AsyncExitStack) -> None:
        """Records spans if the environment asks for them; the last are exported in the end."""
        telemetry = start_telemetry()
        if telemetry is not None:
            self._spans = telemetry.spans
            stack.push_async_callback(telemetry.stop)

    def _store_failed(self, error: OSError) -> None:
        """Ends the server as a signal does; whoever waited for the disk has been refused."""
        self._failure = error
        self._stop_requested.set()

    def _taken_over(self) -> None:
        """Ends the server: another hub has the database, and is active."""
        self._is_taken_over = True
        self._stop_requested.set()

    async def _prepare(
        self, stack: AsyncExitStack
    ) -> tuple[Engine, Hub, Broker, DurableStore | None]:
        """Opens the engine, and creates the hub; nothing is delivered or served yet."""
        self._keep_log(stack)
        self._begin_spans(stack)
        if self._address is None:
            broker, store = self._restore(stack)
        else:
            broker, store = self._register(), None
        engine = await self._engine(stack, broker)
        return engine, self._create_hub(engine, broker), broker, store

    async def _become_active(self, stack: AsyncExitStack, hub: Hub) -> None:
        """Waits while another hub uses the database, unless this one is to stop."""
        if hub.peers is None:
            return
        publishing = StandbyPublisher(
            self._publisher,
            self._authenticator,
            clients=self._clients,
            is_tunnel=hub.tunnels.addresses.has,
            base_path=self._settings.base_path,
        )
        standby = self._standby = Standby(
            hub.peers,
            StandbyApplication(hub.peers, self._hops, publishing, self._settings.base_path),
            self._settings,
            self._sockets.http,
            self._sockets.https,
            self._tls(),
            self._say,
        )
        self._stops.append(standby.stop)
        try:
            before = await standby.wait(hub.storage, self._stop_requested)
        except DatabaseDown as error:
            raise Unreachable(str(error)) from error
        if before is not None and self._cluster is not None:
            closing = asyncio.create_task(take_over(self._cluster, before.id))
            stack.callback(closing.cancel)

    async def _begin_turns(self, stack: AsyncExitStack, broker: Broker) -> None:
        """Starts what a publish needs, on a standby too: logins, turns, and the limits of memory
        and disk."""
        nearness = LocalRequests(
            AllowedOrigins(self._base_urls()), self._hosts, has_proxy=self._has_proxy
        )
        authenticator = self._authenticator = Authenticator(
            broker.users, near=nearness.is_near, may_log_in=self._exposure.may_log_in,
            lets_guest_in=self._settings.allows_guest_over_http(),
        )  # fmt: skip
        stack.callback(authenticator.close)
        stack.callback(self._monitor.stop)
        stack.push_async_callback(self._stop)
        listener = self._listener = Listener(
            broker,
            logins=authenticator.logins,
            certificate_name=certificate_name(self._settings),
            proxies=self._settings.amqp_proxy_networks(),
            takes_plaintext=self._exposure.takes_plaintext,
        )
        await self._watch_resources(listener)
        await listener.start(())
        self._stops.append(listener.stop)

    async def _start(
        self, engine: Engine, hub: Hub, broker: Broker, store: DurableStore | None
    ) -> asyncio.Task[None]:
        """Starts all other parts in order; returns the task of the HTTP server."""
        authenticator, listener = self._authenticator, self._listener
        await hub.start()
        broker.on_vhost_deleted = hub.forget_vhost
        self._stops.append(hub.stop)
        authenticator.logins.on_refused = partial(_record_refusal, hub)
        token_users = TokenUsers(hub.tokens, broker.users)
        authenticator.find_token_user = listener.find_token_user = token_users.find
        authenticator.find_managing_user = token_users.managing
        await self._serve_amqp(listener)  # not before, since a token is a password
        snapshots = (
            None if store is None else Snapshots(self._directory, broker, store, hub.storage)
        )
        overview = LiveOverview(broker, hub, self._monitor)
        context = self._context(engine, hub, authenticator, broker, snapshots, overview)
        application = self._application(context)
        task = await self._serve_http(application, listener)
        await self._serve_metrics(context)
        overview.start()
        self._stops.append(overview.stop)
        hub.reachable()
        return task

    def _restore(self, stack: AsyncExitStack) -> tuple[Broker, DurableStore]:
        """Opens the store; returns it and the broker, with what is stored or the first user."""
        settings, clock = self._settings, SystemClock()
        if not settings.database:
            refuse_newer_file(self._directory / DATABASE_NAME)
        clear(self._directory)
        store = open_store(self._directory, clock, settings.segment_bytes, self._store_failed)
        broker = Broker(
            Users(),
            store=store,
            clock=clock,
            limits=broker_limits(settings),
            node_name=node_name(),
        )
        broker.users.throttle.enabled = settings.login_throttle
        broker.users.throttle.spares_loopback = settings.dev
        stack.callback(stop_store, store, broker)
        rename_reserved(store, is_own)
        if broker.restore():
            self._restored = broker.users
            self._exposure.check_guest(broker.users)
        else:
            self._set_up(broker)
            store.flush()
        self._setup_link = self._new_setup_link(broker.users)
        self._log_contents(broker)
        loop = asyncio.get_running_loop()
        store.start(lambda action: _post(loop, action))
        return broker, store

    async def _engine(self, stack: AsyncExitStack, broker: Broker) -> Engine:
        """Returns the engine; a cluster's is stopped after all parts."""
        if self._address is None:
            return EmbeddedEngine(broker)
        peers = self._peers
        engine = self._cluster = await connect(
            self._address, broker, "" if peers is None else peers.id, self._taken_over
        )
        self._is_reachable = lambda: engine.is_reachable
        stack.push_async_callback(engine.stop)
        return engine

    def _create_peers(self) -> Peers | None:
        settings = self._settings
        if self._address is None or not settings.database:
            return None
        address = settings.hub_address or self._sockets.peer_address()
        return Peers(self._key_path, address, self._taken_over)

    def _register(self) -> Broker:
        """Returns the broker of a hub on a cluster: the register of virtual hosts and users."""
        settings = self._settings
        if (self._directory / LOG).exists():
            self._say(f"{self._directory / LOG} is of the embedded engine, and is not served")
        broker = Broker(
            Users(), clock=SystemClock(), limits=broker_limits(settings), node_name=node_name()
        )
        broker.users.throttle.enabled = settings.login_throttle
        broker.users.throttle.spares_loopback = settings.dev
        return broker

    def _set_up(self, broker: Broker) -> None:
        """Gives a new server its first administrator, if the settings name one."""
        first = self._exposure.first_user()
        if first is None:
            broker.set_up()
        else:
            name, password = first
            broker.set_up(name, hashed(password))

    def _new_setup_link(self, users: Users) -> SetupLink | None:
        """Returns the link for the first administrator; None if one can log in over HTTP."""
        is_guest_let_in = self._settings.allows_guest_over_http() and users.get(GUEST) is not None
        if is_guest_let_in or has_administrator(users):
            return None
        return SetupLink(users, self._exposure.takes_password)

    def _create_hub(self, engine: Engine, broker: Broker) -> Hub:
        settings = self._settings
        http_ports = self._sockets.http_ports()
        own_ports = frozenset((*http_ports.values(), *self._sockets.prometheus_ports()))
        hub = Hub(
            engine,
            hub_settings(settings, self._base_urls(), own_ports, http_ports["http"]),
            self._directory,
            starter=self._starter,
            clock=broker.clock,
            database_url=settings.database or None,
            rights=OwnerRights(broker.users, broker.vhosts, settings.hub_user),
            peers=self._peers,
        )
        hub.dispatcher.spans = self._spans
        return hub

    def _upgrades(self, application: Application, listener: Listener) -> Upgrades:
        # Pages of other origins may be accepted for WebSocket, where they log in themselves.
        return Upgrades(
            listener,
            AllowedOrigins(self._base_urls(), self._settings.websocket_origins),
            self._hosts,
            self._clients,
            lets_guest_in=self._settings.allows_guest_over_http(),
            is_http_path=application.has,
            is_for_application=application.takes_websocket,
            has_amqp=self._address is None,
        )

    async def _serve_amqp(self, listener: Listener) -> None:
        await listener.serve(self._sockets.amqp)
        if self._certificates is not None:
            tls = self._certificates.context(verify(self._settings))
            await listener.serve(self._sockets.amqps, tls)

    async def _serve_http(self, application: Application, listener: Listener) -> asyncio.Task[None]:
        settings = self._settings
        served: ASGIApp = AccessLog(application) if settings.access_log else application
        upgrades = self._upgrades(application, listener)
        if self._standby is not None:
            return await self._standby.hand_over(FromStandbys(served, self._hops), upgrades)
        server = HttpServer(
            served,
            max_body_bytes=settings.max_message_bytes,
            drain_s=settings.drain_s,
            upgrades=upgrades,
            logs_refusals=settings.access_log,
        )
        task = await server.start(self._sockets.http, self._sockets.https, self._tls())
        self._stops.append(server.stop)
        return task

    def _tls(self) -> SSLContext | None:
        """Without client certificates: browsers would ask every user to choose one."""
        return None if self._certificates is None else self._certificates.context()

    async def _watch_resources(self, listener: Listener) -> None:
        """Starts to measure memory and disk, before the first client connects."""
        settings = self._settings
        resources = Resources(
            listener,
            self._directory,
            memory=settings.memory_amount(),
            disk_free=settings.disk_free_amount(),
        )
        await resources.start()
        self._stops.append(resources.stop)
        self._limits = resources.lines

    async def _stop(self) -> None:
        """Stops all parts at once; what is still in progress after `drain_s` is cancelled."""
        drains = [asyncio.create_task(stop()) for stop in reversed(self._stops)]
        if drains:
            _, late = await asyncio.wait(drains, timeout=self._settings.drain_s)
            for drain in late:
                drain.cancel()
            ended = await asyncio.gather(*drains, return_exceptions=True)
            failed = [error for error in ended if isinstance(error, Exception)]
            if failed:
                raise ExceptionGroup("parts did not stop", failed)

    async def _serve_metrics(self, context: Context) -> None:
        """Serves the metrics on a port of their own, if the settings ask for one."""
        self._monitor.start()
        if not self._sockets.prometheus:
            return
        server = HttpServer(
            MetricsApplication(context, self._clients),
            max_body_bytes=0,
            drain_s=self._settings.drain_s,
        )
        await server.start(self._sockets.prometheus)
        self._stops.append(server.stop)

    def _context(
        self, engine: Engine, hub: Hub, authenticator: Authenticator, broker: Broker,
        snapshots: Snapshots | None, overview: LiveOverview,
    ) -> Context:  # fmt: skip
        settings = self._settings
        return Context(
            engine=engine,
            hub=hub,
            authenticator=authenticator,
            vhosts=broker.vhosts,
            public_url=settings.public_url,
            own_url=f"http://{name_of(self._sockets.http[0])}",
            broker=broker,
            sessions=Sessions(settings.session_idle_s, settings.session_max_age_s),
            setup_link=self._setup_link,
            node=Node(
                listeners=[Listening(*found) for found in self._sockets.by_protocol()],
                directory=self._directory,
                certificates=settings.certificate_paths(),
                log=self._log,
            ),
            metrics_readers=settings.metrics_readers,
            monitor=self._monitor,
            snapshots=snapshots,
            overview=overview,
            management_url="" if self._address is None else self._address.management[0],
        )

    def _create_publisher(self, engine: Engine, broker: Broker) -> HttpPublisher:
        settings = self._settings
        return HttpPublisher(
            engine,
            self._authenticator,
            broker.vhosts,
            broker.alarms,
            max_body_bytes=settings.max_message_bytes,
            correlation_id_header=settings.set_correlation_id,
            message_id_header=settings.set_message_id,
            max_hops=settings.max_hops,
            public_url=settings.public_url,
            spans=self._spans,
        )

    def _application(self, context: Context) -> Application:
        settings = self._settings
        return Application(
            context,
            self._publisher,
            base_path=settings.base_path,
            clients=self._clients,
            is_ready=lambda: self._ready and self._is_reachable(),
            tunnel_host=TunnelHost(context.hub.tunnels, context.unfinished, settings.max_hops),
            page_origins=AllowedOrigins((), settings.page_origins()),
        )

    def _base_urls(self) -> tuple[str, ...]:
        """Returns each URL at which the HTTP ports are known to be reachable."""
        own = self._sockets.base_urls(self._settings.base_path)
        return tuple(dict.fromkeys(filter(None, [self._settings.public_url, *own])))

    def _announce(self, took_s: float) -> None:
        if self._address is not None:
            self._say(f"engine: RabbitMQ at {self._address.names}")
        for url in self._sockets.urls():
            self._say(f"listening on {url}")
        if self._settings.dev:
            self._say("development mode: callbacks on loopback addresses are allowed")
        for line in self._limits:
            self._say(line)
        self._show_setup_link()
        self._say(f"ready after {took_s:.2f} s")

    def _show_setup_link(self) -> None:
        """Prints it for who has started the server; not into the log, which others may read."""
        if self._setup_link is not None:
            own_url = self._sockets.browser_url() + self._settings.base_path
            link = self._setup_link.url(self._settings.public_url or own_url)
            print(f"create the first administrator, within an hour: {link}", flush=True)

    def _say(self, line: str) -> None:
        """Prints a line for who has started the server; it is in the log too."""
        print(line, flush=True)
        self._log.announce(logger, line)

    def _log_contents(self, broker: Broker) -> None:
        """Logs what the server starts with."""
        vhosts = broker.vhosts.values()
        found = (
            f"virtual hosts: {len(vhosts)}, "
            f"exchanges: {sum(len(one.exchanges) for one in vhosts)}, "
            f"queues: {sum(len(one.queues) for one in vhosts)}, "
            f"users: {sum(1 for _ in broker.users)}"
        )
        how = "is new" if self._restored is None else "is restored"
        directory = f"data directory {self._directory} {how}"
        self._log.announce(logger, f"Warren {VERSION}: {directory}; {found}")


def _always() -> bool:
    return True


def _post(loop: asyncio.AbstractEventLoop, action: Callable[[], None]) -> None:
    """Runs the action in the loop; does nothing if the loop is closed already."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(action)


def _record_refusal(hub: Hub, name: str, address: str) -> None:
    hub.audit.record(name, address, "login", status=401)


def _stop_at_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
