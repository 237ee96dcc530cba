"""Whose request it is that a proxy passes on: what listed proxies say of it is believed.

Proxies append to a list of addresses (`Forwarded`, RFC 7239; `X-Forwarded-For`), whose beginning
the client can write itself. So it is read from its end: the last address that is none of the
proxies' own is the client's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from starlette.types import Scope

from ..core.server.caller import Network, parsed_address

_LISTED = "warren.proxy"
"""The extension of a scope that a listed proxy has passed on."""
_FORWARDED = b"forwarded"
_FORWARDED_FOR = b"x-forwarded-for"

Headers = Sequence[tuple[bytes, bytes]]


class Clients:
    """`proxies` are the networks of those that are believed."""

    def __init__(self, proxies: Sequence[Network]) -> None:
        self._proxies = proxies
        self._trusts = lru_cache(1024)(self._ask)

    def reveal(self, scope: Scope) -> None:
        """Puts the client's address in the place of its proxy's."""
        client = scope.get("client")
        if client is None or not self._trusts(str(client[0])):
            return
        scope.setdefault("extensions", {})[_LISTED] = {}
        address = self.behind(scope["headers"])
        if address is not None:
            scope["client"] = (address, 0)

    def behind(self, headers: Headers) -> str | None:
        """The client that a listed proxy passes on; None if that can't be told.

        A proxy that writes one of the fields lets the other pass as the client wrote it: if both
        are there, they have to agree.
        """
        found = {
            self._client(hops) for hops in (_forwarded(headers), _forwarded_for(headers)) if hops
        }
        return found.pop() if len(found) == 1 else None

    def trusts(self, address: str) -> bool:
        return bool(self._proxies) and self._trusts(address)

    def _client(self, hops: list[str]) -> str | None:
        for hop in reversed(hops):
            address = parsed_address(hop)
            if address is None:
                return None
            if not self._trusts(str(address)):
                return str(address)
        return str(parsed_address(hops[0]))

    def _ask(self, address: str) -> bool:
        parsed = parsed_address(address)
        return parsed is not None and any(parsed in network for network in self._proxies)


def is_listed(scope: Scope) -> bool:
    """Whether a listed proxy has passed the request on."""
    return _LISTED in scope.get("extensions", ())


def _forwarded_for(headers: Headers) -> list[str]:
    return [_address(one) for one in _elements(headers, _FORWARDED_FOR)]


def _forwarded(headers: Headers) -> list[str]:
    """What stands behind `for=` in each element; an element without one hides somebody."""
    hops = []
    for element in _elements(headers, _FORWARDED):
        pairs = (pair.partition("=") for pair in element.split(";"))
        named = [value for name, _, value in pairs if name.strip().lower() == "for"]
        hops.append(_address(named[0].strip().strip('"')) if len(named) == 1 else "")
    return hops


def _elements(headers: Headers, wanted: bytes) -> list[str]:
    fields = [value.decode("latin-1") for name, value in headers if name == wanted]
    return [one.strip() for one in ",".join(fields).split(",")] if fields else []


def _address(node: str) -> str:
    """Without the port that some proxies add: `192.0.2.1:4711`, `[2001:db8::1]:4711`."""
    if node.startswith("["):
        return node[1:].partition("]")[0]
    host, colon, _ = node.rpartition(":")
    return host if colon and ":" not in host else node
