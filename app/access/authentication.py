"""Authenticates HTTP requests: HTTP Basic with the broker's users, or a bearer token.

Passwords are checked where AMQP's are (`core/server/logins.py`), with one failure count. A
successful check is cached for a minute by the exact `Authorization` header and the client's
address; a change of that user invalidates it at once. `guest` must be local in each request.
"""

from __future__ import annotations

import base64
import binascii
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import ClientDisconnect
from starlette.types import Scope

from ...core.auth import GUEST, VERIFIED_FOR_S, User, Users
from ...core.server.login_queue import TooManyAttempts
from ...core.server.logins import ClientGone, Logins, TooManyFailures
from ..problems import Problem, busy, too_many_failures, unauthenticated
from .local_requests import counted_by, is_gone, is_near, peer_of

logger = logging.getLogger(__name__)

MAX_CACHED = 10_000
NO_CREDENTIALS = "credentials are needed: HTTP Basic"
_NO_TOKENS = (
    "bearer tokens are accepted at /stream, /streams, /transactions, /endpoint, /subscribe, /hub, "
    "/reversehttp and /api: HTTP Basic here"
)
_BAD_TOKEN = "the bearer token is unknown, revoked or expired"
_PLAINTEXT = (
    "passwords are not accepted over plain HTTP from other machines: use https, and change this "
    "password, which was sent unencrypted; an operator may set allow_plaintext"
)
_WRONG = "wrong user or password"
_NO_GUEST = (
    "user guest may log in over HTTP only from the server's machine, and only with --dev or "
    "WARREN_ALLOW_GUEST=1. A server without another administrator prints a link when it starts, "
    "with which the first one is created"
)


@dataclass(frozen=True, slots=True)
class _CachedLogin:
    user: User
    version: int
    expires: float


class Authenticator:
    """Authenticates requests.

    `logins` is shared with the AMQP listener if there is one. `near` says whether a request is
    local, `may_log_in` whether passwords are accepted on its connection, and `lets_guest_in`
    whether `guest` may log in locally.
    """

    def __init__(
        self,
        users: Users,
        clock: Callable[[], float] = time.monotonic,
        logins: Logins | None = None,
        near: Callable[[Scope], bool] = is_near,
        may_log_in: Callable[[Scope], bool] = lambda _: True,
        lets_guest_in: bool = True,
    ) -> None:
        self._users = users
        self._throttle = users.throttle
        self._clock = clock
        self._near = near
        self._may_log_in = may_log_in
        self._lets_guest_in = lets_guest_in
        self._cache: dict[tuple[bytes, str], _CachedLogin] = {}
        self.logins = logins or Logins(users)
        self.find_token_user: Callable[[str], User | None] = lambda secret: None
        """Finds the user of a bearer token by its secret."""
        self.find_managing_user: Callable[[str, str, str], User | None] = lambda *_: None
        """The same for a method and a path below `/api`; raises `Problem` 403 without a scope."""

    def is_local(self, scope: Scope) -> bool:
        """Returns whether the request comes from a program on this machine."""
        return self._near(scope)

    def close(self) -> None:
        self.logins.close()

    def cached(self, authorization: bytes, scope: Scope) -> User | None:
        """Returns the user that this header was verified for within the last minute.

        Costs one dictionary lookup. Throttling does not apply, so that valid clients are not
        affected by others' failures; but after too many wrong passwords the cache is not used,
        since it would tell an attacker which password is right.
        """
        login = self._cache.get((authorization, peer_of(scope)))
        if login is None or login.version != login.user.version or not self._may_log_in(scope):
            return None
        if self._throttle.counts and not self._may_use_cache(login.user.name, scope):
            return None
        if not self.accepts(login.user, scope):
            return None
        return login.user if self._clock() < login.expires else None

    async def user(
        self, authorization: bytes | None, scope: Scope, *, takes_tokens: bool = False
    ) -> User:
        """Returns the user whom the header names with the right password, or, if the route
        `takes_tokens`, the user of a bearer token.

        Raises `Problem` 401 for any other header, 403 where passwords are not accepted, 429 without
        checking the password after five wrong ones within a minute for the same user from the same
        address, if that is not trusted (see `Throttle`), 503 if too many logins are waiting, and
        `ClientDisconnect` if the client disconnects while it waits.
        """
        if authorization is None:
            raise unauthenticated(NO_CREDENTIALS)
        self.require_may_log_in(scope)
        if is_bearer(authorization):
            return self._token_user(authorization, takes_tokens=takes_tokens)
        name, password = credentials(authorization)
        user = self.cached(authorization, scope)
        if user is not None:
            return user
        version = self._users.version
        user = await self.login(name, password, scope)
        # If users have changed meanwhile, the check may have been against an old password.
        if self._users.version == version:
            self._add_to_cache((authorization, peer_of(scope)), user)
        return user

    async def login(self, name: str, password: str, scope: Scope) -> User:
        """Returns the user with this password. Raises as `user`."""
        self.require_may_log_in(scope)
        near = self._near(scope)
        address = counted_by(scope, near)
        wait_s = self._throttle.wait_s(name, address)
        if wait_s:
            self._throttle.missed_cache(name, address, self._users.passwords.digest(name, password))
            if not self._throttle.trusts(name, address):
                raise too_many_failures(wait_s)
        user = await self._checked(name, password, scope, address, near)
        if user is None:
            # Whatever the password is, so this tells nobody whether it is right.
            may_be_guest = near and self._lets_guest_in
            reason = _NO_GUEST if name == GUEST and not may_be_guest else _WRONG
            logger.warning(
                "HTTP from %s: login refused for user %.300r: %s", peer_of(scope), name, reason
            )
            raise unauthenticated(reason)
        return user

    def require_may_log_in(self, scope: Scope) -> None:
        """Raises `Problem` 403 where passwords are not accepted."""
        if not self._may_log_in(scope):
            raise Problem(403, _PLAINTEXT)

    def accepts(self, user: User, scope: Scope) -> bool:
        """Returns whether a user who has logged in may go on: `guest` has to be local in each
        request."""
        return user.name != GUEST or (self._lets_guest_in and self._near(scope))

    def _token_user(self, authorization: bytes, *, takes_tokens: bool) -> User:
        """Returns the user of a bearer token; raises `Problem` 401 for an invalid one."""
        if not takes_tokens:
            raise unauthenticated(_NO_TOKENS)
        return _known(self.find_token_user(_secret(authorization)))

    def managing_user(self, authorization: bytes, scope: Scope, path: str) -> User:
        """Returns the user of a bearer token for a request to this path below `/api`.

        Raises `Problem` 401, 403 without a scope, and where passwords are not accepted.
        """
        self.require_may_log_in(scope)
        secret = _secret(authorization)
        return _known(self.find_managing_user(secret, scope["method"], path))

    def _may_use_cache(self, name: str, scope: Scope) -> bool:
        return self._throttle.may_use_cache(name, counted_by(scope, self._near(scope)))

    async def _checked(
        self, name: str, password: str, scope: Scope, address: str, near: bool
    ) -> User | None:
        try:
            return await self.logins.user(
                name, password, address=address, loopback=near and self._lets_guest_in,
                is_gone=lambda: is_gone(scope),
            )  # fmt: skip
        except ClientGone as error:
            raise ClientDisconnect from error
        except TooManyFailures as error:
            raise too_many_failures(error.wait_s) from error
        except TooManyAttempts as error:
            raise busy(str(error)) from error

    def _add_to_cache(self, key: tuple[bytes, str], user: User) -> None:
        if len(self._cache) >= MAX_CACHED:
            self._cache.clear()
        self._cache[key] = _CachedLogin(user, user.version, self._clock() + VERIFIED_FOR_S)


def credentials(authorization: bytes) -> tuple[str, str]:
    """Returns user name and password of a Basic header (RFC 7617, UTF-8). Raises `Problem` 401."""
    scheme, _, token = authorization.partition(b" ")
    if scheme.lower() != b"basic":
        raise unauthenticated(NO_CREDENTIALS)
    try:
        decoded = base64.b64decode(token.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise unauthenticated("the Authorization header is not base64 of UTF-8") from error
    name, colon, password = decoded.partition(":")
    if not colon:
        raise unauthenticated("the Authorization header has no colon after the user")
    return name, password


def is_bearer(authorization: bytes | None) -> bool:
    """Returns whether the header is a bearer token (RFC 6750 2.1), which no browser adds by
    itself."""
    return authorization is not None and authorization[:7].lower() == b"bearer "


def _secret(authorization: bytes) -> str:
    return authorization.partition(b" ")[2].strip().decode("latin-1")


def _known(user: User | None) -> User:
    """Returns the user; raises `Problem` 401 for None."""
    if user is None:
        headers = {"WWW-Authenticate": 'Bearer realm="warren", error="invalid_token"'}
        raise Problem(401, _BAD_TOKEN, headers=headers)
    return user


def authorization_of(scope: Scope) -> bytes | None:
    """Returns the Authorization field, or None."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            return bytes(value)
    return None
