"""Checks passwords, and caches for a minute which were right.

A password is checked with argon2id, which costs some 20 ms and 19 MiB on purpose, so that runs off
the event loop (`check`) and its result is cached (`known`).
"""

from __future__ import annotations

import hmac
import secrets
from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from . import hashes
from .user import Account, User

if TYPE_CHECKING:
    from .users import Users

VERIFIED_FOR_S: Final = 60.0
GUEST: Final = "guest"
"""The default user. Its password is well known, so it can log in from the same machine only."""


class _Verified(NamedTuple):
    """A recently verified password; invalid once the name has another account."""

    account: Account
    digest: bytes
    expires: float


class Passwords:
    """The passwords of some users. `check` runs in any thread, all else on the event loop."""

    def __init__(self, users: Users, clock: Callable[[], float]) -> None:
        self._users = users
        self._clock = clock
        self._verified: dict[str, _Verified] = {}
        self._better: deque[tuple[Account, str]] = deque()
        self._digest_key = secrets.token_bytes(32)

    def known(self, name: str, password: str, *, loopback: bool) -> User | None:
        """Returns the user if these credentials were verified within the last minute; cheap."""
        verified = self._verified.get(name)
        if (
            verified is None
            or verified.account is not self._users.account(name)
            or verified.expires < self._clock()
            or not hmac.compare_digest(verified.digest, self._digest(password))
        ):
            return None
        return self._admit(name, loopback)

    def digest(self, name: str, password: str) -> bytes:
        """Returns a keyed digest of a password and the stored hash; changes with either."""
        account = self._users.account(name)
        password_hash = "" if account is None else account.password_hash
        return self._digest(f"{password_hash}\0{password}")

    def check(self, name: str, password: str, *, loopback: bool) -> User | None:
        """Returns the user if name and password are right, and `guest` only from a loopback peer.

        Costs one argon2 computation for any result. Thread safe; not for the event loop. A right
        password with a hash of RabbitMQ is hashed again: `store_better_hashes` stores that.
        """
        account, matches = self._matched(name, password)
        if account is None or not matches:
            return None
        expires = self._clock() + VERIFIED_FOR_S
        self._verified[name] = _Verified(account, self._digest(password), expires)
        if hashes.is_foreign(account.password_hash) and self._users.storage is not None:
            self._better.append((account, hashes.hashed(password)))
        return self._admit(name, loopback)

    def _matched(self, name: str, password: str) -> tuple[Account | None, bool]:
        """Returns the account and whether the password is right; tries again if the account was
        changed meanwhile."""
        while True:
            account = self._users.account(name)
            matches = hashes.matches(None if account is None else account.password_hash, password)
            if self._users.account(name) is account:
                return account, matches

    def store_better_hashes(self) -> None:
        """Replaces RabbitMQ's hashes of passwords verified since by argon2id hashes."""
        while self._better:
            account, password_hash = self._better.popleft()
            better = self._users.replace_hash(account, password_hash)
            verified = self._verified.get(account.user.name)
            if better is not None and verified is not None and verified.account is account:
                self._verified[account.user.name] = verified._replace(account=better)

    def forget(self, name: str) -> None:
        """Drops the cached result, after a change of the account."""
        self._verified.pop(name, None)

    def _admit(self, name: str, loopback: bool) -> User | None:
        return self._users.get(name) if loopback or name != GUEST else None

    def _digest(self, text: str) -> bytes:
        return blake2b(text.encode(errors="surrogatepass"), key=self._digest_key).digest()
