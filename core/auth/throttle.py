"""How often a password may be tried: five wrong ones a minute for a user from an address.

What is counted are pairs of user and address, so that nobody can lock somebody else out from
elsewhere; argon2 bounds how many pairs an attacker gets through in that minute.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from ipaddress import IPv6Address, ip_address

FAILURES = 5
WINDOW_S = 60.0
MAX_PAIRS = 25_000
"""Four checks at once, of 10 ms each on a fast machine, don't make more of them a minute; some 350
bytes each."""


class Throttle:
    """Remembers failed logins for as long as they count, in bounded memory."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures: dict[bytes, tuple[float, ...]] = {}
        self._until = 0.0
        self._key = secrets.token_bytes(16)

    @property
    def counts(self) -> bool:
        """Whether there is anything to ask about: if nobody failed lately, everybody may try."""
        return bool(self._until) and self._clock() < self._until

    def wait_s(self, user: str, address: str) -> int:
        """In how many seconds the user may be tried from there again, 0 for now."""
        times = self._failures.get(self._pair(user, address)) if self._failures else None
        if times is None or len(times) < FAILURES:
            return 0
        left = times[0] + WINDOW_S - self._clock()
        return math.ceil(left) if left > 0 else 0

    def failed(self, user: str, address: str) -> None:
        """Counts a wrong password."""
        now = self._clock()
        pair = self._pair(user, address)
        # Taken out and put back: the first pairs are those that failed longest ago.
        times = self._failures.pop(pair, ())
        self._failures[pair] = (*times, now)[-FAILURES:]
        self._until = now + WINDOW_S
        self._forget(now)

    def _forget(self, now: float) -> None:
        """Lets go of pairs whose failures count no more, and of the oldest of too many."""
        failures = self._failures
        while failures:
            oldest = next(iter(failures))
            if failures[oldest][-1] + WINDOW_S > now and len(failures) <= MAX_PAIRS:
                return
            del failures[oldest]

    def _pair(self, user: str, address: str) -> bytes:
        """A user can have a name of any length, and try many: only a digest is remembered."""
        text = f"{network(address)}\0{user}".encode(errors="surrogatepass")
        return blake2b(text, key=self._key, digest_size=16).digest()


def behind(address: str) -> str:
    """Counts those whom a proxy at that address passes on and does not name: all as one, apart
    from the programs of the proxy's own machine, whom they must not lock out."""
    return f"behind {network(address)}"


@lru_cache(1024)
def network(address: str) -> str:
    """What counts as one address: of IPv6 the /64, which one subscriber has for itself."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Address(int(found) >> 64 << 64))
