"""User accounts: names, password hashes, and checking a login.

A password is checked with argon2id, which costs some 20 ms and 19 MiB on purpose, so it runs off
the event loop (`check`) and its answer is remembered for a minute (`known`).
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from . import hashes
from .errors import no_user
from .storage import UserStorage
from .throttle import Throttle
from .user import User

VERIFIED_FOR_S = 60.0
GUEST = "guest"
"""The default user. Its password is well known, so it can log in from the same machine only."""


class Account(NamedTuple):
    """A user with its password hash."""

    user: User
    password_hash: str


class _Verified(NamedTuple):
    """A recently verified password; invalid once the name has another account."""

    account: Account
    digest: bytes
    expires: float


class Accounts:
    """The accounts by name. Changed on the event loop only; `check` runs in any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.keeper: UserStorage | None = None
        self.on_removed: Callable[[User], None] = lambda _: None
        """Called with each user that is removed: the broker ends its connections."""
        self.version = 0
        """Grows with every change of any user."""
        self.throttle = Throttle(clock)
        """Limits failed logins."""
        self._clock = clock
        self._accounts: dict[str, Account] = {}
        self._verified: dict[str, _Verified] = {}
        self._better: deque[tuple[Account, str]] = deque()
        self._digest_key = secrets.token_bytes(32)

    def __iter__(self) -> Iterator[User]:
        return (account.user for account in self._accounts.values())

    def get(self, name: str) -> User | None:
        account = self._accounts.get(name)
        return account.user if account is not None else None

    def existing(self, name: str) -> User:
        """Raises `Unknown`."""
        return self.account(name).user

    def password_hash(self, name: str) -> str:
        """Returns the stored hash (see `hashes.py`). Raises `Unknown`."""
        return self.account(name).password_hash

    def known(self, name: str, password: str, *, loopback: bool) -> User | None:
        """Returns the user if these credentials were verified within the last minute; cheap."""
        verified = self._verified.get(name)
        if (
            verified is None
            or verified.account is not self._accounts.get(name)
            or verified.expires < self._clock()
            or not hmac.compare_digest(verified.digest, self._digest(password))
        ):
            return None
        return self._admit(name, loopback)

    def digest(self, name: str, password: str) -> bytes:
        """Returns a keyed digest of a password and the stored hash; changes with either."""
        account = self._accounts.get(name)
        kept = "" if account is None else account.password_hash
        return self._digest(f"{kept}\0{password}")

    def check(self, name: str, password: str, *, loopback: bool) -> User | None:
        """Returns the user if name and password are right, and `guest` only from a loopback peer.

        Costs one argon2 computation for any result. Thread safe; not for the event loop. A right
        password with a hash of RabbitMQ is hashed again: `keep_better_hashes` stores that.
        """
        account, matches = self._matched(name, password)
        if account is None or not matches:
            return None
        expires = self._clock() + VERIFIED_FOR_S
        self._verified[name] = _Verified(account, self._digest(password), expires)
        if hashes.is_foreign(account.password_hash) and self.keeper is not None:
            self._better.append((account, hashes.hashed(password)))
        return self._admit(name, loopback)

    def _matched(self, name: str, password: str) -> tuple[Account | None, bool]:
        """Returns the account and whether the password is right; tries again if the account was
        changed meanwhile."""
        while True:
            account = self._accounts.get(name)
            matches = hashes.matches(None if account is None else account.password_hash, password)
            if self._accounts.get(name) is account:
                return account, matches

    def keep_better_hashes(self) -> None:
        """Replaces RabbitMQ's hashes of passwords verified since by argon2id hashes.

        Only for users that are stored.
        """
        while self._better:
            account, password_hash = self._better.popleft()
            user = account.user
            if self._accounts.get(user.name) is account and self.keeper is not None:
                self.keeper.keep_user(user, password_hash)
                better = self._accounts[user.name] = Account(user, password_hash)
                verified = self._verified.get(user.name)
                if verified is not None and verified.account is account:
                    self._verified[user.name] = verified._replace(account=better)

    def _admit(self, name: str, loopback: bool) -> User | None:
        return self.get(name) if loopback or name != GUEST else None

    # -- for `Users`

    def store(self, account: Account) -> None:
        name = account.user.name
        self._accounts[name] = account
        self._verified.pop(name, None)
        self.version += 1
        account.user.changed()

    def account(self, name: str) -> Account:
        account = self._accounts.get(name)
        if account is None:
            raise no_user(name)
        return account

    def _digest(self, text: str) -> bytes:
        return blake2b(text.encode(errors="surrogatepass"), key=self._digest_key).digest()
