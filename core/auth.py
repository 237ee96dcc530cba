"""Users, passwords and permissions: one authorizer for AMQP and HTTP.

A password is checked with argon2id, which costs some 20 ms and 19 MiB on purpose, so it runs off
the event loop (`Users.check`) and its answer is remembered for a minute (`Users.known`). A
permission is three regular expressions per virtual host, matched by a linear-time engine because
users write them; each user remembers the answers, so that the hot path pays one dictionary hit.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from .errors import WarrenError, access_refused

if TYPE_CHECKING:
    from argon2 import PasswordHasher

Access = Literal["configure", "write", "read"]
Kind = Literal["queue", "exchange"]

DEFAULT_EXCHANGE = "amq.default"
"""What permissions and error texts call the exchange without a name."""

VERIFIED_FOR_S = 60.0
MAX_NAME_BYTES = 1024
MAX_PATTERN_LENGTH = 256
MAX_CACHED_ANSWERS = 10_000
"""Per user; a client that invents names must not fill the memory."""

ARGON2_MEMORY_KIB = 19 * 1024
ARGON2_TIME_COST = 2
ARGON2_PARALLELISM = 1
MAX_HASH_MEMORY_KIB = 256 * 1024
MAX_HASH_TIME_COST = 16
"""An imported hash names its own cost; one that asks for more would be a way to stop the server."""

_NOBODY_HASH = (
    "$argon2id$v=19$m=19456,t=2,p=1"
    "$vLzKCkjs+Wrwe3mfclzWpw$dB6qo+3JFJlsDWNohqOhHbqgbquIreQ3s/1iGSR96Wo"
)
"""Checked when the user does not exist, so that the answer takes as long as for one who does."""


class AuthError(WarrenError):
    """A user, password hash or permission that can't be stored."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """Unanchored patterns of the names a user may configure, write and read; empty denies."""

    configure: str
    write: str
    read: str


@dataclass(frozen=True, slots=True)
class _Matchers:
    permissions: Permissions
    configure: Callable[[str], bool]
    write: Callable[[str], bool]
    read: Callable[[str], bool]


class User:
    """Who is logged in: a name, tags, and what it may do in each virtual host."""

    def __init__(self, name: str, tags: Iterable[str] = ()) -> None:
        self.name = name
        self.tags = frozenset(tags)
        self.version = 0
        """Grows with every change; an answer remembered with an older version is void."""
        self._matchers: dict[str, _Matchers] = {}
        self._answers: dict[tuple[str, str, str], bool] = {}
        self._watchers: set[Callable[[], None]] = set()

    def __repr__(self) -> str:
        return f"User({self.name!r})"

    @property
    def permissions(self) -> dict[str, Permissions]:
        """By virtual host, a copy."""
        return {vhost: found.permissions for vhost, found in self._matchers.items()}

    def may_enter(self, vhost: str) -> bool:
        """Whether any permission is set there, an empty one included."""
        return vhost in self._matchers

    def permitted(self, vhost: str, access: Access, resource: str) -> bool:
        answer = self._answers.get((vhost, access, resource))
        return self._ask(vhost, access, resource) if answer is None else answer

    def require(self, vhost: str, access: Access, kind: Kind, resource: str) -> None:
        """Raises `ChannelError` 403 if the access is not permitted."""
        if not self.permitted(vhost, access, resource):
            raise access_refused(
                f"{access} access to {kind} '{resource or DEFAULT_EXCHANGE}' in vhost '{vhost}' "
                f"refused for user '{self.name}'"
            )

    def watch(self, callback: Callable[[], None]) -> None:
        """Calls `callback` at each change of password, tags or permissions, and at removal."""
        self._watchers.add(callback)

    def unwatch(self, callback: Callable[[], None]) -> None:
        self._watchers.discard(callback)

    def changed(self) -> None:
        """Forgets every remembered answer and tells the watchers."""
        self.version += 1
        self._answers.clear()
        for callback in tuple(self._watchers):
            callback()

    def _ask(self, vhost: str, access: Access, resource: str) -> bool:
        matchers = self._matchers.get(vhost)
        answer = matchers is not None and _select(matchers, access)(resource or DEFAULT_EXCHANGE)
        if len(self._answers) >= MAX_CACHED_ANSWERS:
            self._answers.clear()
        self._answers[vhost, access, resource] = answer
        return answer

    def _set(self, vhost: str, matchers: _Matchers | None) -> None:
        if matchers is None:
            self._matchers.pop(vhost, None)
        else:
            self._matchers[vhost] = matchers
        self.changed()


class UserKeeper(Protocol):
    """Makes changes outlive the process; each call gives the commit number to wait for."""

    def keep_user(self, user: User, password_hash: str) -> int: ...
    def end_user(self, user: User) -> int: ...
    def keep_permissions(self, user: User, vhost: str, permissions: Permissions) -> int:
        """Raises `AuthError` if there is no such virtual host."""

    def end_permissions(self, user: User, vhost: str) -> int: ...


class _Account(NamedTuple):
    """A user with its secret."""

    user: User
    password_hash: str


class _Verified(NamedTuple):
    """That a password was right; void once the name has another account."""

    account: _Account
    digest: bytes
    expires: float


class Users:
    """Everyone who may log in. Changes are made on the event loop; `check` runs in any thread.

    Whoever changes a user gets the commit number from which on the change outlives the process,
    0 if there is nothing to wait for.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.keeper: UserKeeper | None = None
        self.version = 0
        """Grows with every change of any user; a remembered refusal holds as long as it stands."""
        self._clock = clock
        self._accounts: dict[str, _Account] = {}
        self._verified: dict[str, _Verified] = {}
        self._digest_key = secrets.token_bytes(32)

    def __iter__(self) -> Iterator[User]:
        return (account.user for account in self._accounts.values())

    def get(self, name: str) -> User | None:
        account = self._accounts.get(name)
        return account.user if account is not None else None

    def add(self, name: str, password: str, tags: Iterable[str] = ()) -> int:
        """Adds the user or replaces its password and tags; takes as long as a login."""
        return self.add_hashed(name, hashed(password), tags)

    def add_hashed(self, name: str, password_hash: str, tags: Iterable[str] = ()) -> int:
        """As `add`, with an argon2 hash in PHC form.

        Raises `AuthError` if it is none, or for a name or tag that can't be kept.
        """
        _check_hash(password_hash)
        tags = frozenset(tags)
        for text in (name, *tags):
            _check_text(text)
        found = self._accounts.get(name)
        user = User(name) if found is None else found.user
        user.tags = tags
        commit = 0 if self.keeper is None else self.keeper.keep_user(user, password_hash)
        self._store(_Account(user, password_hash))
        return commit

    def remove(self, name: str) -> int:
        """Does nothing if there is no such user; who is logged in as it loses every right."""
        account = self._accounts.pop(name, None)
        if account is None:
            return 0
        user = account.user
        commit = 0 if self.keeper is None else self.keeper.end_user(user)
        self._verified.pop(name, None)
        self.version += 1
        user.tags = frozenset()
        user._matchers.clear()
        user.changed()
        return commit

    def set_permissions(self, name: str, vhost: str, configure: str, write: str, read: str) -> int:
        """Raises `AuthError` for an unknown user or a pattern that the engine refuses."""
        user = self._existing(name)
        matchers = _Matchers(
            Permissions(configure, write, read),
            _matcher(configure),
            _matcher(write),
            _matcher(read),
        )
        commit = 0
        if self.keeper is not None:
            commit = self.keeper.keep_permissions(user, vhost, matchers.permissions)
        user._set(vhost, matchers)
        self.version += 1
        return commit

    def clear_permissions(self, name: str, vhost: str) -> int:
        """Raises `AuthError` for an unknown user."""
        user = self._existing(name)
        commit = 0 if self.keeper is None else self.keeper.end_permissions(user, vhost)
        user._set(vhost, None)
        self.version += 1
        return commit

    def password_hash(self, name: str) -> str:
        """In PHC form. Raises `AuthError` for an unknown user."""
        account = self._accounts.get(name)
        if account is None:
            raise AuthError(f"no user '{name}'")
        return account.password_hash

    def known(self, name: str, password: str, *, loopback: bool) -> User | None:
        """The user if these credentials were verified within the last minute; cheap."""
        verified = self._verified.get(name)
        if (
            verified is None
            or verified.account is not self._accounts.get(name)
            or verified.expires < self._clock()
            or not hmac.compare_digest(verified.digest, self._digest(password))
        ):
            return None
        return self._admit(name, loopback)

    def check(self, name: str, password: str, *, loopback: bool) -> User | None:
        """The user if name and password are right, and `guest` only from a loopback peer.

        Costs one argon2 run whatever the answer. Thread safe; not for the event loop.
        """
        account = self._accounts.get(name)
        password_hash = _NOBODY_HASH if account is None else account.password_hash
        matches = _matches(password_hash, password)
        if account is None or not matches or self._accounts.get(name) is not account:
            return None  # the last: the password changed meanwhile
        expires = self._clock() + VERIFIED_FOR_S
        self._verified[name] = _Verified(account, self._digest(password), expires)
        return self._admit(name, loopback)

    def _admit(self, name: str, loopback: bool) -> User | None:
        return self.get(name) if loopback or name != "guest" else None

    def _store(self, account: _Account) -> None:
        name = account.user.name
        self._accounts[name] = account
        self._verified.pop(name, None)
        self.version += 1
        account.user.changed()

    def _existing(self, name: str) -> User:
        user = self.get(name)
        if user is None:
            raise AuthError(f"no user '{name}'")
        return user

    def _digest(self, password: str) -> bytes:
        return blake2b(password.encode(errors="surrogatepass"), key=self._digest_key).digest()


def _select(matchers: _Matchers, access: Access) -> Callable[[str], bool]:
    if access == "write":
        return matchers.write
    return matchers.read if access == "read" else matchers.configure


def _matcher(pattern: str) -> Callable[[str], bool]:
    if not pattern:
        return lambda _: False
    if pattern == ".*":
        return lambda _: True
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise AuthError(f"a pattern has {len(pattern)} characters, at most {MAX_PATTERN_LENGTH}")
    return _compiled(pattern)


def _compiled(pattern: str) -> Callable[[str], bool]:
    import re2  # on first need: most installations only ever have `.*`

    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    try:
        search = re2.compile(pattern, options).search
    except re2.error as error:
        raise AuthError(f"pattern '{pattern}' is not a regular expression: {error}") from error
    return lambda name: search(name) is not None


def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher  # on first need: no start waits for it

    return PasswordHasher(
        time_cost=ARGON2_TIME_COST,
        memory_cost=ARGON2_MEMORY_KIB,
        parallelism=ARGON2_PARALLELISM,
    )


def hashed(password: str) -> str:
    """A new argon2 hash in PHC form; takes as long as a login."""
    return _hasher().hash(password.encode(errors="surrogatepass"))


def _matches(password_hash: str, password: str) -> bool:
    from argon2.exceptions import VerifyMismatchError

    try:
        return _hasher().verify(password_hash, password.encode(errors="surrogatepass"))
    except VerifyMismatchError:
        return False


def _check_text(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise AuthError(f"{text!r} is no Unicode text") from error
    if not 1 <= size <= MAX_NAME_BYTES:
        raise AuthError(f"a user's name or tag has {size} bytes, 1 to {MAX_NAME_BYTES}")


def _check_hash(password_hash: str) -> None:
    from argon2 import extract_parameters
    from argon2.exceptions import InvalidHashError

    try:
        parameters = extract_parameters(password_hash)
    except InvalidHashError as error:
        raise AuthError("the password hash is not an argon2 hash in PHC form") from error
    memory_kib, time_cost = parameters.memory_cost, parameters.time_cost
    if memory_kib > MAX_HASH_MEMORY_KIB or time_cost > MAX_HASH_TIME_COST:
        raise AuthError(
            f"the password hash asks for {memory_kib} KiB and {time_cost} passes, at most "
            f"{MAX_HASH_MEMORY_KIB} and {MAX_HASH_TIME_COST}"
        )
