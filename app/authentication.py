"""Authenticates HTTP requests: HTTP Basic with the broker's users.

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

from ..core.auth import GUEST, VERIFIED_FOR_S, User, Users
from ..core.server.login_queue import TooManyAttempts
from ..core.server.logins import ClientGone, Logins, TooManyFailures
from .local_requests import counted_by, is_gone, is_near, peer_of
from .problems import Problem, busy, too_many_failures, unauthenticated

logger = logging.getLogger(__name__)

MAX_CACHED = 10_000
_NO_CREDENTIALS = "credentials are needed: HTTP Basic"
_PLAINTEXT = (
    "passwords are not accepted over plain HTTP from other machines: use https, and change this "
    "password, which was sent unencrypted; an operator may set allow_plaintext"
)
_WRONG = "wrong user or password"
_GUEST = (
    ": over HTTP it may log in from this machine only, and with --dev or WARREN_ALLOW_GUEST=1; "
    "add a user of its own"
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
        if self._throttle.counts and not self._may_recall(login.user.name, scope):
            return None
        if login.user.name == GUEST and not (self._lets_guest_in and self._near(scope)):
            return None
        return login.user if self._clock() < login.expires else None

    async def user(self, authorization: bytes | None, scope: Scope) -> User:
        """Returns the user whom the header names with the right password.

        Raises `Problem` 401 for any other header, 403 where passwords are not accepted, 429 without
        checking the password after five wrong ones within a minute for the same user from the same
        address, if that is not trusted (see `Throttle`), 503 if too many logins are waiting, and
        `ClientDisconnect` if the client disconnects while it waits.
        """
        if authorization is None:
            raise unauthenticated(_NO_CREDENTIALS)
        if not self._may_log_in(scope):
            raise Problem(403, _PLAINTEXT)
        name, password = credentials(authorization)
        user = self.cached(authorization, scope)
        if user is not None:
            return user
        near = self._near(scope)
        address = counted_by(scope, near)
        wait_s = self._throttle.wait_s(name, address)
        if wait_s:
            self._throttle.not_recalled(name, address, self._users.digest(name, password))
            if not self._throttle.trusts(name, address):
                raise too_many_failures(wait_s)
        version = self._users.version
        user = await self._checked(name, password, scope, address, near)
        if user is None:
            may_be_guest = near and self._lets_guest_in
            reason = _GUEST if name == GUEST and not may_be_guest else ""
            logger.warning(
                "HTTP from %s: login refused for user %.300r%s", peer_of(scope), name, reason
            )
            raise unauthenticated(_WRONG)
        # If users have changed meanwhile, the check may have been against an old password.
        if self._users.version == version:
            self._add_to_cache((authorization, peer_of(scope)), user)
        return user

    def _may_recall(self, name: str, scope: Scope) -> bool:
        return self._throttle.may_recall(name, counted_by(scope, self._near(scope)))

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
        raise unauthenticated(_NO_CREDENTIALS)
    try:
        decoded = base64.b64decode(token.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise unauthenticated("the Authorization header is not base64 of UTF-8") from error
    name, colon, password = decoded.partition(":")
    if not colon:
        raise unauthenticated("the Authorization header has no colon after the user")
    return name, password


def authorization_of(scope: Scope) -> bytes | None:
    """Returns the Authorization field, or None."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            return bytes(value)
    return None
