"""Resolved names with their addresses, for the time to live of their records."""

from __future__ import annotations

from .addresses import Address

MAX_NAMES = 10_000
"""About 5 MB."""
SHORTEST_S = 1.0
"""The shortest time that an answer is kept: not every connection may cause a query."""
LONGEST_S = 300.0
"""The longest time that an answer is kept, so that a change of addresses is noticed."""


class AddressCache:
    """Keeps `max_names` names, the ones stored last. Times are monotonic."""

    def __init__(self, max_names: int = MAX_NAMES) -> None:
        self._max_names = max_names
        self._known: dict[str, tuple[float, list[Address]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, host: str, now_s: float) -> list[Address] | None:
        """Returns the addresses of the name, None if they are not known."""
        until_s, addresses = self._known.get(host, (0.0, None))
        return addresses if now_s < until_s else None

    def put(self, host: str, addresses: list[Address], ttl_s: float, now_s: float) -> None:
        """Keeps the addresses of a name for `ttl_s`, within the limits."""
        self._known.pop(host, None)
        if len(self._known) >= self._max_names:
            del self._known[next(iter(self._known))]
        cached_s = min(max(ttl_s, SHORTEST_S), LONGEST_S)
        self._known[host] = (now_s + cached_s, addresses)
