"""What is known of names: their addresses, for as long as their records say."""

from __future__ import annotations

from .addresses import Address

MAX_NAMES = 10_000
"""About 5 MB."""
SHORTEST_S = 1.0
"""Of a record with a shorter time to live, as nothing must be asked for each connection."""
LONGEST_S = 300.0
"""Of a record with a longer one, so that a move is noticed by servers that run for months."""


class AddressCache:
    """Keeps `MAX_NAMES` names; the one that was stored first goes first. Times are monotonic."""

    def __init__(self, max_names: int = MAX_NAMES) -> None:
        self._max_names = max_names
        self._known: dict[str, tuple[float, list[Address]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, host: str, now_s: float) -> list[Address] | None:
        until_s, addresses = self._known.get(host, (0.0, None))
        return addresses if now_s < until_s else None

    def put(self, host: str, addresses: list[Address], ttl_s: float, now_s: float) -> None:
        self._known.pop(host, None)
        if len(self._known) >= self._max_names:
            del self._known[next(iter(self._known))]
        cached_s = min(max(ttl_s, SHORTEST_S), LONGEST_S)
        self._known[host] = (now_s + cached_s, addresses)
