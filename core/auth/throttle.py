"""How often a password may be tried: five wrong ones a minute for a user from an address.

What is counted are pairs of user and address, so that nobody can lock somebody else out from
elsewhere; argon2 bounds how many pairs an attacker gets through in that minute.

Where the user has logged in within a day, an address is trusted: the user's own programs are
there, and are not shut out because one of them, or a neighbour, has a wrong password. Guesses from
a trusted address are slowed instead (`Logins`), and those that were wrong before cost nothing.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

FAILURES = 5
WINDOW_S = 60.0
MAX_PAIRS = 25_000
"""Four checks at once, of 10 ms each on a fast machine, don't make more of them a minute; some 350
bytes each, and as many again for those that are trusted."""
TRUSTED_FOR_S = 86_400.0
NOT_RECALLED = 50
"""Passwords a minute that may be held against those that were right lately, after five that were
wrong: so many others at one's address try before one is no longer known there at once."""
WRONG_REMEMBERED = 4
"""Programs with an old password try it again and again; few of them share an address."""


class _Trust(NamedTuple):
    """Since when an address is trusted for a user, and digests of its last wrong passwords."""

    since: float
    wrong: tuple[bytes, ...] = ()


class Throttle:
    """Remembers failed logins for as long as they count, in bounded memory."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.enabled = True
        self.spares_loopback = False
        """In development nobody counts what is tried on the machine itself."""
        self._clock = clock
        self._failures: dict[bytes, tuple[float, ...]] = {}
        self._trusted: dict[bytes, _Trust] = {}
        self._not_recalled: dict[bytes, tuple[float, set[bytes]]] = {}
        """By pair: until when, and digests of what was not a password that was right lately."""
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

    def trusts(self, user: str, address: str) -> bool:
        """Whether the user has logged in from there within a day."""
        return self._trust(self._pair(user, address)) is not None

    def succeeded(self, user: str, address: str) -> None:
        """Trusts the address from now on; what was counted still counts."""
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

    def not_recalled(self, user: str, address: str, digest: bytes) -> None:
        """Counts a password that is not remembered, while failures hold the pair back."""
        pair = self._pair(user, address)
        until, digests = self._not_recalled.pop(pair, (0.0, set()))
        now = self._clock()
        if until <= now:
            until, digests = now + WINDOW_S, set()
        if len(digests) <= NOT_RECALLED:
            digests.add(digest)
        self._not_recalled[pair] = (until, digests)
        if len(self._not_recalled) > MAX_PAIRS // 10:
            del self._not_recalled[next(iter(self._not_recalled))]
        self._until = max(self._until, until)

    def may_recall(self, user: str, address: str) -> bool:
        """Whether a login may be answered from memory."""
        until, digests = self._not_recalled.get(self._pair(user, address), (0.0, ()))
        return len(digests) <= NOT_RECALLED or until <= self._clock()

    def _spares(self, address: str) -> bool:
        return not self.enabled or (self.spares_loopback and _is_loopback(address))

    def _trust(self, pair: bytes) -> _Trust | None:
        trust = self._trusted.get(pair)
        if trust is None or trust.since + TRUSTED_FOR_S <= self._clock():
            return None
        return trust

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


def _is_loopback(address: str) -> bool:
    """Not so for those `behind` a proxy, who may be anybody."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback
