"""The parts of a running Warren: what is made of what, started in order, stopped together."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path

from ..core.auth import Users
from ..core.broker import Broker, Limits
from ..core.clock import SystemClock
from ..core.definitions.reclaim import reclaim
from ..core.errors import StoreFailure
from ..core.server.certificates import Certificates
from ..core.server.listener import Listener
from ..core.server.resources import Resources
from ..core.server.tuning import tune, uncollected
from ..hub.engine.embedded import EmbeddedEngine
from ..hub.engine.own import is_own
from ..hub.engine.port import Engine
from ..hub.service import Hub
from ..hub.settings import HubSettings
from .access_log import AccessLog
from .asgi import Application
from .authentication import Authenticator
from .clients import Clients
from .config import Settings
from .context import Context
from .exposure import Exposure
from .first_user import warn_of_unused
from .http_server import HttpServer
from .listen import Sockets, name_of, port_of
from .local_requests import LocalHosts, LocalRequests
from .origins import Origins
from .owners import OwnerRights
from .routes.publish import Publisher
from .storage import open_store, stop_store
from .tls import certificate_name, verify
from .websocket import Upgrades

HUB_DRAIN_SHARE = 0.4
"""The hub drains callbacks, then relays, this part of `drain_s` each; the rest is to close."""


class Warren:
    """Broker, AMQP listener, hub and HTTP server of one process."""

    def __init__(
        self,
        settings: Settings,
        directory: Path,
        sockets: Sockets,
        certificates: Certificates | None,
        exposure: Exposure,
    ) -> None:
        self._exposure = exposure
        self._settings = settings
        self._directory = directory
        self._sockets = sockets
        self._certificates = certificates
        self._clients = Clients(settings.http_proxy_networks()) if settings.http_proxies else None
        self._ready = False
        self._stop_asked = asyncio.Event()
        self._failure: OSError | None = None
        self._limits: list[str] = []
        self._restored: Users | None = None
        """Those of a data directory that was there before."""
        self._stops: list[Callable[[], Coroutine[None, None, None]]] = []

    async def run(self, started: float) -> None:
        """Serves until SIGTERM or SIGINT, then drains."""
        stop = self._stop_asked
        _stop_at_signals(stop)
        self._reload_at_signal()
        async with AsyncExitStack() as stack:
            with uncollected():
                server = await self._start(stack)
                tune()
            self._ready = True
            self._announce(time.perf_counter() - started)
            if self._restored is not None:
                await warn_of_unused(self._settings, self._restored)
            waiter = asyncio.create_task(stop.wait())
            await asyncio.wait({waiter, server}, return_when=asyncio.FIRST_COMPLETED)
            self._ready = False
            print(f"stopping: what is under way has {self._settings.drain_s:g} s", flush=True)
            if server.done():
                server.result()
        if self._failure is not None:
            raise StoreFailure(f"the log can't be written: {self._failure}") from self._failure

    def _reload_at_signal(self) -> None:
        """Certificates are renewed every few weeks."""
        if self._certificates is not None:
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGHUP, self._certificates.reload)

    def _store_failed(self, error: OSError) -> None:
        """Everybody who waits has been refused; the rest of the service ends as at a signal."""
        self._failure = error
        self._stop_asked.set()

    async def _start(self, stack: AsyncExitStack) -> asyncio.Task[None]:
        settings = self._settings
        clock = SystemClock()
        store = open_store(self._directory, clock, settings.segment_size(), self._store_failed)
        broker = Broker(Users(), store=store, clock=clock, limits=_limits(settings))
        broker.users.throttle.enabled = settings.login_throttle
        broker.users.throttle.spares_loopback = settings.dev
        stack.callback(stop_store, store, broker)
        reclaim(store, is_own)
        if broker.restore():
            self._restored = broker.users
            self._exposure.check_guest(broker.users)
        else:
            self._exposure.check_first_user()
            broker.set_up(settings.default_user, settings.default_pass)
            store.flush()
        loop = asyncio.get_running_loop()
        store.start(lambda action: _post(loop, action))
        # Pages of others may be let in for WebSocket, where they log in themselves.
        hosts = LocalHosts(socket.gethostname())
        has_proxy = bool(settings.http_proxies or settings.public_url) and not settings.dev
        nearness = LocalRequests(Origins(self._base_urls()), hosts, has_proxy=has_proxy)
        authenticator = Authenticator(
            broker.users, near=nearness.is_near, may_log_in=self._exposure.may_log_in,
            lets_guest_in=settings.allows_guest_over_http(),
        )  # fmt: skip
        stack.callback(authenticator.close)
        stack.push_async_callback(self._stop)
        listener = Listener(
            broker,
            logins=authenticator.logins,
            certificate_name=certificate_name(settings),
            proxies=settings.amqp_proxy_networks(),
            takes_plaintext=self._exposure.takes_plaintext,
        )
        await self._watch_resources(listener)
        await self._serve_amqp(listener)
        engine = EmbeddedEngine(broker)
        hub = Hub(
            engine,
            self._hub_settings(),
            self._directory,
            clock=clock,
            database_url=settings.database or None,
            rights=OwnerRights(broker.users, broker.vhosts, settings.hub_user),
        )
        await hub.start()
        broker.on_vhost_deleted = hub.forget_vhost
        self._stops.append(hub.stop)
        application = self._application(engine, hub, authenticator, broker)
        server = HttpServer(
            AccessLog(application) if settings.access_log else application,
            max_body_bytes=settings.max_message_bytes,
            drain_s=settings.drain_s,
            upgrades=Upgrades(
                listener,
                Origins(self._base_urls(), settings.websocket_origins),
                hosts,
                self._clients,
                lets_guest_in=settings.allows_guest_over_http(),
                is_http_path=application.has,
            ),
            logs_refusals=settings.access_log,
        )
        task = await self._serve_http(server)
        hub.reachable()
        return task

    async def _serve_amqp(self, listener: Listener) -> None:
        await listener.start(self._sockets.amqp)
        self._stops.append(listener.stop)
        if self._certificates is not None:
            tls = self._certificates.context(verify(self._settings))
            await listener.start_tls(self._sockets.amqps, tls)

    async def _serve_http(self, server: HttpServer) -> asyncio.Task[None]:
        # Clients' certificates are for AMQP: browsers would ask everybody which one to show.
        tls = None if self._certificates is None else self._certificates.context()
        task = await server.start(self._sockets.http, self._sockets.https, tls)
        self._stops.append(server.stop)
        return task

    async def _watch_resources(self, listener: Listener) -> None:
        """Before the first client comes, who may be one too many."""
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
        """All parts at once, within `drain_s` altogether; what is still under way is cut off."""
        drains = [asyncio.create_task(stop()) for stop in reversed(self._stops)]
        if drains:
            _, late = await asyncio.wait(drains, timeout=self._settings.drain_s)
            for drain in late:
                drain.cancel()
            ended = await asyncio.gather(*drains, return_exceptions=True)
            failed = [error for error in ended if isinstance(error, Exception)]
            if failed:
                raise ExceptionGroup("parts did not stop", failed)

    def _application(
        self, engine: Engine, hub: Hub, authenticator: Authenticator, broker: Broker
    ) -> Application:
        settings = self._settings
        context = Context(
            engine=engine,
            hub=hub,
            authenticator=authenticator,
            vhosts=broker.vhosts,
            public_url=settings.public_url,
            own_url=f"http://{name_of(self._sockets.http[0])}",
            broker=broker,
        )
        publisher = Publisher(
            engine,
            authenticator,
            broker.vhosts,
            broker.alarms,
            max_body_bytes=settings.max_message_bytes,
            correlation_id_header=settings.set_correlation_id,
            message_id_header=settings.set_message_id,
            max_hops=settings.max_hops,
            public_url=settings.public_url,
        )
        return Application(
            context,
            publisher,
            base_path=settings.base_path,
            clients=self._clients,
            is_ready=lambda: self._ready,
        )

    def _hub_settings(self) -> HubSettings:
        settings = self._settings
        return HubSettings(
            base_urls=self._base_urls(),
            key_file=settings.hub_key_file,
            allow_loopback=settings.dev,
            egress_proxy=settings.egress_proxy,
            callback_ports=settings.allowed_callback_ports(),
            allowed_networks=settings.allowed_callback_networks(),
            denied_networks=settings.denied_callback_networks(),
            nat64_prefixes=settings.nat64_prefix_list(),
            dns_servers=settings.name_servers(),
            own_ports=frozenset(port_of(found) for found in self._listening().values()),
            default_lease_s=settings.default_lease_s,
            max_lease_s=settings.max_lease_s,
            connect_timeout_s=settings.connect_timeout_s,
            total_timeout_s=settings.delivery_timeout_s,
            secret_overlap_s=settings.secret_overlap_s,
            hub_default_lease_s=settings.hub_default_lease_s,
            hub_max_lease_s=settings.hub_max_lease_s,
            hub_user=settings.hub_user,
            hub_foreign_topics=settings.hub_foreign_topics or settings.dev,
            hub_anonymous=settings.hub_anonymous or settings.dev,
            max_per_anonymous_client=settings.hub_anonymous_subscriptions,
            anonymous_bytes_per_hour=settings.anonymous_content_bytes(),
            hub_check_topics=settings.hub_check_topics,
            hub_moved_to=settings.hub_moved_to,
            hub_publisher_secret=settings.hub_publisher_secret,
            verify_timeout_s=settings.verify_timeout_s,
            in_flight_per_subscription=settings.in_flight_per_subscription,
            max_in_flight=settings.max_in_flight,
            max_rate=settings.max_rate,
            max_rate_per_origin=settings.rate_per_origin(),
            signature_method=settings.signature_method,
            max_attempts=settings.max_attempts,
            attempt_retention_s=settings.attempt_retention_s,
            max_attempt_rows=settings.max_attempt_rows,
            attempt_body_bytes=settings.attempt_body_bytes,
            fetch_gap_s=settings.fetch_gap_s,
            max_hops=settings.max_hops,
            drain_s=settings.drain_s * HUB_DRAIN_SHARE,
        )

    def _base_urls(self) -> tuple[str, ...]:
        """Every URL at which the HTTP ports are known to be reachable."""
        hosts = ["localhost", "127.0.0.1", "[::1]", socket.gethostname()]
        hosts += [name_of(listener).rpartition(":")[0] for listener in self._sockets.http]
        urls = [
            f"{scheme}://{host}:{port_of(found)}{self._settings.base_path}"
            for scheme, found in self._listening().items()
            for host in hosts
        ]
        return tuple(dict.fromkeys(filter(None, [self._settings.public_url, *urls])))

    def _listening(self) -> dict[str, list[socket.socket]]:
        """The HTTP ports by scheme."""
        both = {"http": self._sockets.http, "https": self._sockets.https}
        return {scheme: found for scheme, found in both.items() if found}

    def _announce(self, took_s: float) -> None:
        for url in self._sockets.urls():
            print(f"listening on {url}", flush=True)
        if self._settings.dev:
            print("development mode: callbacks on loopback addresses are allowed", flush=True)
        for line in self._limits:
            print(line, flush=True)
        print(f"ready after {took_s:.2f} s", flush=True)


def _limits(settings: Settings) -> Limits:
    return Limits(
        frame_max=settings.frame_max,
        channel_max=settings.channel_max,
        heartbeat_s=settings.heartbeat_s,
        max_message_bytes=settings.max_message_bytes,
        consumer_timeout_ms=settings.consumer_timeout,
        strict_arguments=settings.strict_arguments,
    )


def _post(loop: asyncio.AbstractEventLoop, action: Callable[[], None]) -> None:
    """What a thread of the store has to say when the loop is gone was for nobody."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(action)


def _stop_at_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
