"""Finds the client's address behind trusted HTTP proxies.

Proxies append to a list of addresses (`Forwarded`, RFC 7239; `X-Forwarded-For`), whose beginning
a client can forge. So it is read from its end: the last address that is not a trusted proxy is the
client's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from starlette.types import Scope

from ...core.server.caller import Network, parsed_address

_LISTED = "warren.proxy"
"""Marks the scope of a request that came through a trusted proxy."""
_FORWARDED = b"forwarded"
_FORWARDED_FOR = b"x-forwarded-for"

Headers = Sequence[tuple[bytes, bytes]]


class Clients:
    """Finds clients' addresses; `proxies` are the networks of the trusted proxies."""

    def __init__(self, proxies: Sequence[Network]) -> None:
        self._proxies = proxies
        self._trusts = lru_cache(1024)(self._is_trusted)

    def reveal(self, scope: Scope) -> None:
        """Replaces the address of a trusted proxy in the scope by the client's."""
        client = scope.get("client")
        if client is None or not self._trusts(str(client[0])):
            return
        scope.setdefault("extensions", {})[_LISTED] = {}
        address = self.behind(scope["headers"])
        if address is not None:
            scope["client"] = (address, 0)

    def behind(self, headers: Headers) -> str | None:
        """Returns the client's address from the headers; None if it can't be determined.

        A proxy that writes one of the two fields forwards the other unchanged, so if both are
        present they must agree.
        """
        found = {
            self._client(hops) for hops in (_forwarded(headers), _forwarded_for(headers)) if hops
        }
        return found.pop() if len(found) == 1 else None

    def trusts(self, address: str) -> bool:
        """Returns whether the address is a trusted proxy's."""
        return bool(self._proxies) and self._trusts(address)

    def _client(self, hops: list[str]) -> str | None:
        for hop in reversed(hops):
            address = parsed_address(hop)
            if address is None:
                return None
            if not self._trusts(str(address)):
                return str(address)
        return str(parsed_address(hops[0]))

    def _is_trusted(self, address: str) -> bool:
        parsed = parsed_address(address)
        return parsed is not None and any(parsed in network for network in self._proxies)


def is_listed(scope: Scope) -> bool:
    """Returns whether the request came through a trusted proxy."""
    return _LISTED in scope.get("extensions", ())


def _forwarded_for(headers: Headers) -> list[str]:
    return [_address(one) for one in _elements(headers, _FORWARDED_FOR)]


def _forwarded(headers: Headers) -> list[str]:
    """Returns the `for=` value of each element; an empty text for an element without one."""
    hops = []
    for element in _elements(headers, _FORWARDED):
        pairs = (pair.partition("=") for pair in element.split(";"))
        named = [value for name, _, value in pairs if name.strip().lower() == "for"]
        hops.append(_address(named[0].strip().strip('"')) if len(named) == 1 else "")
    return hops


def _elements(headers: Headers, field: bytes) -> list[str]:
    fields = [value.decode("latin-1") for name, value in headers if name == field]
    return [one.strip() for one in ",".join(fields).split(",")] if fields else []


def _address(node: str) -> str:
    """Removes the port that some proxies add: `192.0.2.1:4711`, `[2001:db8::1]:4711`."""
    if node.startswith("["):
        return node[1:].partition("]")[0]
    host, colon, _ = node.rpartition(":")
    return host if colon and ":" not in host else node
