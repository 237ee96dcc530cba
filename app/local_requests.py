"""Whether a request is that of a program on this very machine, which lets the user `guest` in.

The socket says so for every request that a proxy on this machine passes on, and for those that a
browser on this machine sends for a page of somebody else's. So each sign of one of these takes it
away; nothing that a request says can give it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.types import Scope

from ..core.auth import behind
from .origins import Origins

RELAYING = frozenset(
    (
        b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto",
        b"x-real-ip",
    )
)  # fmt: skip
"""What proxies add (RFC 7239; RFC 9110 7.6.3); who is behind one may be anybody."""
CYCLE = "warren.cycle"
"""The extension of a scope that knows whether the client is still there."""
_TELLING = RELAYING | {b"host", b"origin"}

Headers = Iterable[tuple[bytes, bytes]]


def peer_of(scope: Scope) -> str:
    """The address of the peer, or of whom a listed proxy names (`Clients`)."""
    client = scope.get("client")
    return "" if client is None else str(client[0])


def counted_by(scope: Scope, near: bool) -> str:
    """By which address failed logins are counted: what comes to this machine by a proxy on it, and
    from other people's pages, apart from its own programs, whom that must not lock out."""
    peer = peer_of(scope)
    return behind(peer) if is_loopback(peer) and not near else peer


def is_gone(scope: Scope) -> bool:
    """Whether the client has hung up, as far as that can be seen."""
    found = scope.get("extensions", {}).get(CYCLE)
    return found is not None and bool(found["cycle"].disconnected)


def is_relayed(headers: Headers) -> bool:
    """Whether a proxy has passed the request on; names of fields are in lower case."""
    return any(name in RELAYING for name, _ in headers)


def is_near(scope: Scope) -> bool:
    """Whether the request came from this machine and by no proxy."""
    return is_loopback(peer_of(scope)) and not is_relayed(scope["headers"])


class LocalHosts:
    """Names by which programs of this machine ask for it: `localhost`, its own, and loopback
    addresses. Others can be made to lead here, or were meant for a proxy."""

    def __init__(self, host_name: str) -> None:
        self._names = frozenset(("localhost", host_name.lower()))
        self._answer = lru_cache(1024)(self._ask)

    def include(self, host: bytes) -> bool:
        """`host` is the field, empty where there is none (HTTP/1.0)."""
        return not host or self._answer(host)

    def _ask(self, host: bytes) -> bool:
        try:
            name = urlsplit(f"//{host.decode('latin-1')}").hostname or ""
        except ValueError:
            return False
        return name in self._names or is_loopback(name)


class LocalRequests:
    """As `is_near`, for no page of somebody else's, and for nobody where `has_proxy` says that a
    proxy is expected.

    Nor over HTTP/1.0: proxies speak that by default and add no field, programs of today do not.
    """

    def __init__(self, origins: Origins, hosts: LocalHosts, *, has_proxy: bool = False) -> None:
        self._has_proxy = has_proxy
        self._origins = origins
        self._hosts = hosts

    def is_near(self, scope: Scope) -> bool:
        if self._has_proxy or scope.get("http_version") == "1.0":
            return False
        if not is_loopback(peer_of(scope)):
            return False
        # Asked at each request of `guest`, so the fields are gone through once.
        host, origin = b"", b""
        for name, value in scope["headers"]:
            if name in _TELLING:
                if name == b"host":
                    host = value
                elif name == b"origin":
                    origin = value
                else:
                    return False
        return self._hosts.include(host) and (
            not origin or self._origins.allow(origin.decode("latin-1"), host.decode("latin-1"))
        )


@lru_cache(1024)
def is_loopback(host: str) -> bool:
    """Whether an address is one of this machine alone."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
