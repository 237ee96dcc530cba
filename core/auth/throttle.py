"""Limits failed logins: five a minute for a user from an address.

Pairs of user and address are counted, so that nobody can lock out a user elsewhere; argon2 bounds
how many pairs an attacker can try in that minute.

An address from which the user has logged in within a day is trusted: the user's other programs
there are not locked out because one of them, or a neighbour, has a wrong password. Guesses from a
trusted address are delayed instead (`Logins`), and repeated wrong passwords cost nothing.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

FAILURES: Final = 5
WINDOW_S: Final = 60.0
MAX_PAIRS: Final = 25_000
"""Four checks at once, of 10 ms each on a fast machine, don't make more of them a minute; some 350
bytes each, and as many again for those that are trusted."""
TRUSTED_FOR_S: Final = 86_400.0
UNCACHED_MAX: Final = 50
"""Passwords a minute that may be compared with recently verified ones, after five failures: above
that, logins from the address are not answered from the cache."""
WRONG_REMEMBERED: Final = 4
"""Programs with an old password repeat it; few of them share an address."""


class _Trust(NamedTuple):
    """The start of a user's trust in an address, and digests of its last wrong passwords."""

    since: float
    wrong: tuple[bytes, ...] = ()


class Throttle:
    """Counts failed logins in bounded memory."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.enabled = True
        self.spares_loopback = False
        """In development mode logins from the same machine are not counted."""
        self._clock = clock
        self._failures: dict[bytes, tuple[float, ...]] = {}
        self._trusted: dict[bytes, _Trust] = {}
        self._missed_cache: dict[bytes, tuple[float, set[bytes]]] = {}
        """By pair: expiry, and digests of passwords not among the recently verified ones."""
        self._until = 0.0
        self._key = secrets.token_bytes(16)

    @property
    def counts(self) -> bool:
        """Whether any failure is counted at the moment; if not, every login may be tried."""
        return bool(self._until) and self._clock() < self._until

    def wait_s(self, user: str, address: str) -> int:
        """Returns in how many seconds the user may log in from there again, 0 for now."""
        times = self._failures.get(self._pair(user, address)) if self._failures else None
        if times is None or len(times) < FAILURES:
            return 0
        left = times[0] + WINDOW_S - self._clock()
        return math.ceil(left) if left > 0 else 0

    def trusts(self, user: str, address: str) -> bool:
        """Whether the user has logged in from there within a day."""
        return self._trust(self._pair(user, address)) is not None

    def succeeded(self, user: str, address: str) -> None:
        """Trusts the address from now on; earlier failures still count."""
        pair = self._pair(user, address)
        before = self._trusted.pop(pair, None)
        self._trusted[pair] = _Trust(self._clock(), () if before is None else before.wrong)
        if len(self._trusted) > MAX_PAIRS:
            del self._trusted[next(iter(self._trusted))]

    def was_wrong(self, user: str, address: str, digest: bytes) -> bool:
        """Whether the same password was wrong lately, from an address that is trusted."""
        trust = self._trust(self._pair(user, address))
        return trust is not None and digest in trust.wrong

    def failed(self, user: str, address: str, digest: bytes = b"") -> None:
        """Counts a wrong password; `digest` stands for it and for what it was compared with."""
        if self._spares(address):
            return
        now = self._clock()
        pair = self._pair(user, address)
        trust = self._trust(pair)
        if trust is not None and digest not in trust.wrong:
            wrong = (*trust.wrong, digest)[-WRONG_REMEMBERED:]
            self._trusted[pair] = trust._replace(wrong=wrong)
        # Taken out and put back: the first pairs are those that failed longest ago.
        times = self._failures.pop(pair, ())
        self._failures[pair] = (*times, now)[-FAILURES:]
        self._until = now + WINDOW_S
        self._forget(now)

    def missed_cache(self, user: str, address: str, digest: bytes) -> None:
        """Counts a password that is not in the cache, while failures limit the pair."""
        pair = self._pair(user, address)
        until, digests = self._missed_cache.pop(pair, (0.0, set()))
        now = self._clock()
        if until <= now:
            until, digests = now + WINDOW_S, set()
        if len(digests) <= UNCACHED_MAX:
            digests.add(digest)
        self._missed_cache[pair] = (until, digests)
        if len(self._missed_cache) > MAX_PAIRS // 10:
            del self._missed_cache[next(iter(self._missed_cache))]
        self._until = max(self._until, until)

    def may_use_cache(self, user: str, address: str) -> bool:
        """Whether a login may be answered from memory."""
        until, digests = self._missed_cache.get(self._pair(user, address), (0.0, ()))
        return len(digests) <= UNCACHED_MAX or until <= self._clock()

    def _spares(self, address: str) -> bool:
        return not self.enabled or (self.spares_loopback and _is_loopback(address))

    def _trust(self, pair: bytes) -> _Trust | None:
        trust = self._trusted.get(pair)
        if trust is None or trust.since + TRUSTED_FOR_S <= self._clock():
            return None
        return trust

    def _forget(self, now: float) -> None:
        """Drops pairs whose failures have expired, and the oldest above the maximum."""
        failures = self._failures
        while failures:
            oldest = next(iter(failures))
            if failures[oldest][-1] + WINDOW_S > now and len(failures) <= MAX_PAIRS:
                return
            del failures[oldest]

    def _pair(self, user: str, address: str) -> bytes:
        """Returns a digest of user and address: names can be long and many."""
        text = f"{network(address)}\0{user}".encode(errors="surrogatepass")
        return blake2b(text, key=self._key, digest_size=16).digest()


def address_behind(proxy: str) -> str:
    """Returns the address under which clients are counted that a proxy relays without naming them:
    all as one, but apart from programs on the proxy's own machine."""
    return f"behind {network(proxy)}"


@lru_cache(1024)
def network(address: str) -> str:
    """Returns the network that counts as one address: for IPv6 the /64 of one subscriber."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Address(int(found) >> 64 << 64))


def _is_loopback(address: str) -> bool:
    """Whether it is a loopback address; addresses from `address_behind` are not."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback
