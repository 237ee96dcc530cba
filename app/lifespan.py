"""Starts the parts of a running Warren in order, and stops them together."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial

from ..core.errors import StoreFailure
from ..core.server.listener import Listener
from ..core.server.loop_monitor import LoopMonitor
from ..core.server.tuning import tune, uncollected
from ..hub.errors import DatabaseDown
from ..hub.peers.peers import Peers
from ..hub.processes.starter import ProcessStarter
from ..hub.service import Hub
from .access.tokens import TokenUsers
from .assembly import Assembly
from .commands.exit_codes import Unreachable
from .configuration.first_user import warn_of_unused
from .configuration.tls import verify
from .engine import take_over
from .logs.formats import PACKAGE
from .logs.tail import LogTail
from .opening import OpenedEngine, open_cluster, open_embedded
from .overview.live import LiveOverview
from .peers.standby import TakenOver
from .serving import HttpServing
from .startup import Startup
from .telemetry import start_telemetry

logger = logging.getLogger(__name__)


class Warren:
    """Broker, AMQP listener, hub and HTTP server of one process."""

    def __init__(self, startup: Startup, starter: ProcessStarter) -> None:
        self._startup = startup
        self._settings = startup.settings
        self._sockets = startup.sockets
        self._certificates = startup.certificates
        self._starter = starter
        self._ready = False
        self._stop_requested = asyncio.Event()
        self._log = LogTail()
        self._failure: OSError | None = None
        self._peers = self._create_peers()
        """Only with a cluster's engine and a database that other hubs can have too."""
        self._is_taken_over = False
        self._monitor = LoopMonitor()
        self._stops: list[Callable[[], Coroutine[None, None, None]]] = []

    async def run(self, started: float) -> None:
        """Serves until SIGTERM or SIGINT, then drains."""
        stop = self._stop_requested
        _stop_at_signals(stop)
        self._reload_at_signal()
        async with AsyncExitStack() as stack:
            with uncollected():
                serving = await self._prepare(stack)
            await self._become_active(stack, serving)
            if stop.is_set():
                return
            with uncollected():
                server = await self._start(serving)
                tune()
            self._ready = True
            assembly = serving.assembly
            self._announce(assembly, time.perf_counter() - started)
            if assembly.opened.restored is not None:
                await warn_of_unused(self._settings, assembly.opened.restored)
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

    def _create_peers(self) -> Peers | None:
        settings = self._settings
        if self._startup.cluster is None or not settings.database:
            return None
        address = settings.hub_address or self._sockets.peer_address()
        return Peers(self._startup.key_path, address, self._taken_over)

    def _store_failed(self, error: OSError) -> None:
        """Ends the server as a signal does; whoever waited for the disk has been refused."""
        self._failure = error
        self._stop_requested.set()

    def _taken_over(self) -> None:
        """Ends the server: another hub has the database, and is active."""
        self._is_taken_over = True
        self._stop_requested.set()

    # -- before the hub is active

    async def _prepare(self, stack: AsyncExitStack) -> HttpServing:
        """Opens the engine, creates the hub, and starts what a publish needs, on a standby too:
        logins, turns, and the limits of memory and disk. Nothing is delivered or served yet."""
        self._keep_log(stack)
        telemetry = start_telemetry()
        if telemetry is not None:
            stack.push_async_callback(telemetry.stop)
        spans = None if telemetry is None else telemetry.spans
        opened = await self._open(stack)
        assembly = Assembly(self._startup, opened, self._starter, self._peers, spans)
        stack.callback(assembly.authenticator.close)
        stack.callback(self._monitor.stop)
        serving = HttpServing(self._startup, assembly)
        stack.push_async_callback(self._stop, serving)
        await assembly.resources.start()  # before the first client connects
        self._stops.append(assembly.resources.stop)
        await assembly.listener.start(())
        self._stops.append(assembly.listener.stop)
        return serving

    def _keep_log(self, stack: AsyncExitStack) -> None:
        """Keeps the last lines of the log for the API, until the server stops."""
        logger = logging.getLogger(PACKAGE.rstrip("."))
        logger.addHandler(self._log)
        stack.callback(logger.removeHandler, self._log)
        self._stops.append(self._log.end)

    async def _open(self, stack: AsyncExitStack) -> OpenedEngine:
        startup, peers = self._startup, self._peers
        if startup.cluster is None:
            note = partial(self._log.announce, logger)
            return open_embedded(startup, stack, self._store_failed, note)
        hub_id = "" if peers is None else peers.id
        return await open_cluster(
            startup, startup.cluster, stack, hub_id, self._taken_over, self._say
        )

    async def _become_active(self, stack: AsyncExitStack, serving: HttpServing) -> None:
        """Waits while another hub uses the database, unless this one is to stop."""
        if self._peers is None:
            return
        opened, storage = serving.assembly.opened, serving.assembly.hub.storage
        standby = serving.create_standby(self._peers, self._announce_standby)
        try:
            before = await standby.wait(storage, self._stop_requested)
        except DatabaseDown as error:
            raise Unreachable(str(error)) from error
        if before is not None and opened.cluster is not None:
            closing = asyncio.create_task(take_over(opened.cluster, before.id))
            stack.callback(closing.cancel)

    # -- the active hub

    async def _start(self, serving: HttpServing) -> asyncio.Task[None]:
        """Starts all other parts in order; returns the task of the HTTP server."""
        assembly = serving.assembly
        hub, broker = assembly.hub, assembly.opened.broker
        await hub.start()
        broker.on_vhost_deleted = hub.forget_vhost
        self._stops.append(hub.stop)
        _connect_logins(assembly)
        await self._serve_amqp(assembly.listener)  # not before, since a token is a password
        overview = LiveOverview(broker, hub, self._monitor, assembly.opened.cluster)
        context = serving.create_context(self._log, self._monitor, overview)
        is_reachable = assembly.opened.is_reachable
        task = await serving.start(context, lambda: self._ready and is_reachable())
        self._monitor.start()
        await serving.start_metrics(context)
        overview.start()
        self._stops.append(overview.stop)
        hub.reachable()
        return task

    async def _serve_amqp(self, listener: Listener) -> None:
        await listener.serve(self._sockets.amqp)
        if self._certificates is not None:
            tls = self._certificates.context(verify(self._settings))
            await listener.serve(self._sockets.amqps, tls)

    async def _stop(self, serving: HttpServing) -> None:
        """Stops all parts at once; what is still in progress after `drain_s` is cancelled."""
        stops = reversed([*self._stops, *serving.stops])
        drains = [asyncio.create_task(stop()) for stop in stops]
        if drains:
            _, late = await asyncio.wait(drains, timeout=self._settings.drain_s)
            for drain in late:
                drain.cancel()
            ended = await asyncio.gather(*drains, return_exceptions=True)
            failed = [error for error in ended if isinstance(error, Exception)]
            if failed:
                raise ExceptionGroup("parts did not stop", failed)

    # -- what is said

    def _announce_standby(self) -> None:
        for url in self._sockets.http_urls():
            self._say(f"listening on {url}")
        self._say(
            "standby: another hub with the same database is active; this one waits for its end"
        )

    def _announce(self, assembly: Assembly, took_s: float) -> None:
        if self._startup.cluster is not None:
            self._say(f"engine: RabbitMQ at {self._startup.cluster.names}")
        for url in self._sockets.urls():
            self._say(f"listening on {url}")
        if self._settings.dev:
            self._say("development mode: callbacks on loopback addresses are allowed")
        for line in assembly.resources.lines:
            self._say(line)
        self._show_setup_link(assembly.opened)
        self._say(f"ready after {took_s:.2f} s")

    def _show_setup_link(self, opened: OpenedEngine) -> None:
        """Prints it for who has started the server; not into the log, which others may read."""
        if opened.setup_link is not None:
            own_url = self._sockets.browser_url() + self._settings.base_path
            link = opened.setup_link.url(self._settings.public_url or own_url)
            print(f"create the first administrator, within an hour: {link}", flush=True)

    def _say(self, line: str) -> None:
        """Prints a line for who has started the server; it is in the log too."""
        print(line, flush=True)
        self._log.announce(logger, line)


def _connect_logins(assembly: Assembly) -> None:
    """Has logins know the hub's tokens, and the audit log the logins that are refused."""
    hub, authenticator, users = assembly.hub, assembly.authenticator, assembly.opened.broker.users
    authenticator.logins.on_refused = partial(_record_refusal, hub)
    token_users = TokenUsers(hub.tokens, users)
    authenticator.find_token_user = assembly.listener.find_token_user = token_users.find
    authenticator.find_managing_user = token_users.managing


def _record_refusal(hub: Hub, name: str, address: str) -> None:
    hub.audit.record(name, address, "login", status=401)


def _stop_at_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
