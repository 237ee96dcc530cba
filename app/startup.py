"""What a server is started with: settings, data directory, sockets, certificates.

And what follows from these alone, for all parts that ask whose a request is and where it may go.
"""

from __future__ import annotations

import socket
from pathlib import Path
from ssl import SSLContext

from ..core.server.certificates import Certificates
from ..hub.service import key_path
from .access.clients import Clients
from .access.local_requests import LocalHosts, LocalRequests
from .access.origins import AllowedOrigins
from .configuration.settings import Settings
from .exposure import Exposure
from .http.listen import Sockets


class Startup:
    """`cluster` is the address of the RabbitMQ that is the engine, None for the embedded one;
    `clients` finds those behind proxies, None without proxies."""

    def __init__(
        self,
        settings: Settings,
        directory: Path,
        sockets: Sockets,
        certificates: Certificates | None,
        exposure: Exposure,
    ) -> None:
        self.settings = settings
        self.directory = directory
        self.sockets = sockets
        self.certificates = certificates
        self.exposure = exposure
        self.cluster = settings.engine_address()
        self.key_path = key_path(settings.hub_key_file, directory)
        self.clients = Clients(settings.http_proxy_networks()) if settings.http_proxies else None
        self.hosts = LocalHosts(socket.gethostname())
        self._has_proxy = bool(settings.http_proxies or settings.public_url) and not settings.dev

    def base_urls(self) -> tuple[str, ...]:
        """Returns each URL at which the HTTP ports are known to be reachable."""
        own = self.sockets.base_urls(self.settings.base_path)
        return tuple(dict.fromkeys(filter(None, [self.settings.public_url, *own])))

    def own_ports(self) -> frozenset[int]:
        """Returns the ports for HTTP, to which nothing may be delivered."""
        ports = self.sockets.http_ports().values()
        return frozenset((*ports, *self.sockets.prometheus_ports()))

    def local_requests(self) -> LocalRequests:
        origins = AllowedOrigins(self.base_urls())
        return LocalRequests(origins, self.hosts, has_proxy=self._has_proxy)

    def tls(self) -> SSLContext | None:
        """For HTTPS; without client certificates: browsers would ask every user to choose one."""
        return None if self.certificates is None else self.certificates.context()
