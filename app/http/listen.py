"""Opens the listening sockets before anything else starts, so that a port in use fails early."""

from __future__ import annotations

import errno
import os
import socket
from dataclasses import dataclass
from ipaddress import ip_address

from ...core.errors import ConfigError
from ..configuration.settings import NONE, Settings

BACKLOG = 2048
PORT_ATTEMPTS = 20
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


@dataclass(frozen=True)
class Sockets:
    """The listening sockets by protocol; a list may be empty."""

    amqp: list[socket.socket]
    amqps: list[socket.socket]
    http: list[socket.socket]
    https: list[socket.socket]
    prometheus: list[socket.socket]

    def urls(self) -> list[str]:
        """Returns the URL of each socket, such as `amqp://127.0.0.1:5672`."""
        metrics = [f"http://{name_of(one)}/metrics" for one in self.prometheus]
        return [*_urls({"amqp": self.amqp, "amqps": self.amqps}), *self.http_urls(), *metrics]

    def http_urls(self) -> list[str]:
        """Returns the URL of each socket for HTTP requests of any kind."""
        return _urls({"http": self.http, "https": self.https})

    def by_protocol(self) -> list[tuple[str, str, int]]:
        """Returns protocol (as RabbitMQ names it), address and port of each socket."""
        kinds = {"amqp": self.amqp, "amqp/ssl": self.amqps, "http": self.http, "https": self.https}
        return [(kind, *one.getsockname()[:2]) for kind, found in kinds.items() for one in found]

    def http_ports(self) -> dict[str, int]:
        """Returns the port by scheme, `http` or `https`."""
        kinds = {"http": self.http, "https": self.https}
        return {scheme: port_of(found) for scheme, found in kinds.items() if found}

    def prometheus_ports(self) -> list[int]:
        """Returns the port of the metrics, if they have one of their own."""
        return [port_of(self.prometheus)] if self.prometheus else []

    def browser_url(self) -> str:
        """Returns the URL for a browser on this machine, with TLS if there is a port for it."""
        scheme, listeners = ("https", self.https) if self.https else ("http", self.http)
        host, port = listeners[0].getsockname()[:2]
        address = ip_address(host)
        is_here = address.is_loopback or address.is_unspecified
        return f"{scheme}://{printed('localhost' if is_here else host, port)}"

    def peer_address(self) -> str:
        """Returns host and port at which other machines find the HTTP port, as far as is known."""
        host, port = self.http[0].getsockname()[:2]
        return printed(socket.gethostname() if ip_address(host).is_unspecified else host, port)

    def base_urls(self, base_path: str) -> list[str]:
        """Returns each URL at which the HTTP ports are reachable from this machine."""
        hosts = ["localhost", "127.0.0.1", "[::1]", socket.gethostname()]
        hosts += [name_of(listener).rpartition(":")[0] for listener in self.http]
        return [
            f"{scheme}://{host}:{port}{base_path}"
            for scheme, port in self.http_ports().items()
            for host in hosts
        ]


def listen_on_all(settings: Settings) -> Sockets:
    """Opens all sockets that the settings ask for. Raises `ConfigError` if a port can't be used."""
    has_amqp = settings.engine_address() is None
    has_plain_amqp = has_amqp and settings.amqp_port != NONE
    ports = {
        "amqp": int(settings.amqp_port) if has_plain_amqp else None,
        "amqps": settings.effective_amqps_port() if has_amqp else None,
        "http": settings.http_port,
        "https": None if settings.https_port == NONE else int(settings.https_port),
        "prometheus": None if settings.prometheus_port == NONE else int(settings.prometheus_port),
    }
    return Sockets(
        **{
            purpose: [] if port is None else listen(settings.host, port, purpose)
            for purpose, port in ports.items()
        }
    )


def addresses_of(host: str) -> list[str]:
    """Returns the addresses of a host; `localhost` is 127.0.0.1 and ::1.

    Raises `ConfigError` for a name without address.
    """
    return ["127.0.0.1", "::1"] if host == "localhost" else _resolve(host)


def listen(host: str, port: int, purpose: str) -> list[socket.socket]:
    """Returns sockets that listen on every address of the host, all on the same port.

    Port 0 chooses a free port. Without IPv6 `localhost` is 127.0.0.1 only. Raises `ConfigError` if
    an address can't be listened on.
    """
    addresses = addresses_of(host)
    for attempt in range(PORT_ATTEMPTS):
        try:
            return _listen_on_all(addresses, port, optional_ipv6=host == "localhost")
        except OSError as error:
            # With port 0 the first address chose the port; it may be in use on another address.
            if port or error.errno != errno.EADDRINUSE or attempt == PORT_ATTEMPTS - 1:
                raise _unusable(host, port, purpose, error) from error
    raise AssertionError("unreachable: the last attempt returns or raises")


def name_of(listener: socket.socket) -> str:
    """Returns address and port of a socket: `127.0.0.1:5672` or `[::1]:5672`."""
    return printed(*listener.getsockname()[:2])


def printed(host: str, port: int) -> str:
    """Formats address and port; IPv6 addresses are put in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def port_of(listeners: list[socket.socket]) -> int:
    port: int = listeners[0].getsockname()[1]
    return port


def _urls(kinds: dict[str, list[socket.socket]]) -> list[str]:
    return [f"{kind}://{name_of(one)}" for kind, found in kinds.items() for one in found]


def _resolve(host: str) -> list[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ConfigError(f"host '{host}': {error.strerror}") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _listen_on_all(addresses: list[str], port: int, *, optional_ipv6: bool) -> list[socket.socket]:
    listeners: list[socket.socket] = []
    try:
        for address in addresses:
            try:
                listeners.append(_listen(address, port))
            except OSError as error:
                if not (optional_ipv6 and ":" in address and error.errno in _NO_IPV6):
                    raise
            port = port or port_of(listeners)
    except OSError:
        for listener in listeners:
            listener.close()
        raise
    return listeners


def _listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address != "::"))
        listener.bind((address, port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _unusable(host: str, port: int, purpose: str, error: OSError) -> ConfigError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno == errno.EADDRINUSE:
        reason += f"; stop the process that uses it, or choose another port with --{purpose}-port"
    return ConfigError(f"{purpose}: can't listen on {host} port {port}: {reason}")
