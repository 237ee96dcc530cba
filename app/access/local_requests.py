"""Decides whether a request comes from a program on this machine, as the user `guest` must.

A loopback address alone is not enough: requests forwarded by a proxy on this machine have one too,
and so have cross-origin requests of a local browser. Signs of either make a request non-local; no
header can make it local.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.types import Scope

from ...core.auth import address_behind
from .origins import AllowedOrigins

RELAYING = frozenset(
    (
        b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto",
        b"x-real-ip",
    )
)  # fmt: skip
"""Header fields that proxies add (RFC 7239; RFC 9110 7.6.3)."""
FORWARDING = RELAYING - {b"via"}
"""The fields that name the client or the host that it asked for."""
CYCLE = "warren.cycle"
"""The extension of a scope with uvicorn's request cycle, which knows whether the client is still
connected."""
_CHECKED = RELAYING | {b"host", b"origin"}

Headers = Iterable[tuple[bytes, bytes]]


def peer_of(scope: Scope) -> str:
    """Returns the address of the peer, or of the client behind a trusted proxy (`Clients`)."""
    client = scope.get("client")
    return "" if client is None else str(client[0])


def counted_by(scope: Scope, near: bool) -> str:
    """Returns the address under which failed logins are counted.

    Requests through a local proxy, and from pages of other origins, are counted apart from local
    programs, so that they can't lock those out.
    """
    peer = peer_of(scope)
    return address_behind(peer) if is_loopback(peer) and not near else peer


def is_gone(scope: Scope) -> bool:
    """Returns whether the client is known to have disconnected."""
    found = scope.get("extensions", {}).get(CYCLE)
    cycle = None if found is None else found.get("cycle")  # none after a whole response
    return cycle is not None and bool(cycle.disconnected)


def is_relayed(headers: Headers) -> bool:
    """Returns whether a proxy has forwarded the request; field names are in lower case."""
    return any(name in RELAYING for name, _ in headers)


def is_near(scope: Scope) -> bool:
    """Returns whether the request came from this machine and not through a proxy."""
    return is_loopback(peer_of(scope)) and not is_relayed(scope["headers"])


class LocalHosts:
    """The host names of local requests: `localhost`, the machine's own name, loopback addresses.

    Other names may come from DNS rebinding, or were meant for a proxy.
    """

    def __init__(self, host_name: str) -> None:
        self._names = frozenset(("localhost", host_name.lower()))
        self._cached = lru_cache(1024)(self._is_local)

    def include(self, host: bytes) -> bool:
        """Returns whether the Host field is local; it is empty if absent (HTTP/1.0)."""
        return not host or self._cached(host)

    def _is_local(self, host: bytes) -> bool:
        try:
            name = urlsplit(f"//{host.decode('latin-1')}").hostname or ""
        except ValueError:
            return False
        return name in self._names or is_loopback(name)


class LocalRequests:
    """Decides whether requests are local, as `is_near`, and excludes pages of other origins.

    With `has_proxy`, which says that a proxy is expected, no request is local. Neither is one over
    HTTP/1.0, which proxies use by default and current programs do not.
    """

    def __init__(
        self, origins: AllowedOrigins, hosts: LocalHosts, *, has_proxy: bool = False
    ) -> None:
        self._has_proxy = has_proxy
        self._origins = origins
        self._hosts = hosts

    def is_near(self, scope: Scope) -> bool:
        if self._has_proxy or scope.get("http_version") == "1.0":
            return False
        if not is_loopback(peer_of(scope)):
            return False
        # Called for each request of `guest`, so there is one pass over the fields.
        host, origin = b"", b""
        for name, value in scope["headers"]:
            if name in _CHECKED:
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
    """Returns whether the text is a loopback address."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
