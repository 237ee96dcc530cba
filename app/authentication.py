"""Who sends a request: HTTP Basic with the broker's users.

Argon2 runs in four threads of its own and never twice at once for the same credentials. The
answer, a refusal too, is remembered for a minute by the exact `Authorization` header; a change
of that user voids it at once.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address

from starlette.types import Scope

from ..core.auth import VERIFIED_FOR_S, User, Users
from .problems import unauthenticated

ARGON2_AT_ONCE = 4
"""Each needs 19 MiB and a core for some 20 ms: more at once would let logins starve the rest."""
MAX_REMEMBERED = 10_000
_NO_CREDENTIALS = "credentials are needed: HTTP Basic"
_WRONG = "wrong user or password"


@dataclass(frozen=True, slots=True)
class _Answer:
    user: User | None
    version: int
    """Of the user, or of all users for a refusal."""
    expires: float


class Authenticator:
    def __init__(self, users: Users, clock: Callable[[], float] = time.monotonic) -> None:
        self._users = users
        self._clock = clock
        self._answers: dict[tuple[bytes, bool], _Answer] = {}
        self._under_way: dict[tuple[bytes, bool], asyncio.Future[User | None]] = {}
        self._threads = ThreadPoolExecutor(ARGON2_AT_ONCE, thread_name_prefix="password")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def remembered(self, authorization: bytes, loopback: bool) -> User | None:
        """The user that this header was verified for lately; one dictionary hit."""
        answer = self._answers.get((authorization, loopback))
        if answer is None or answer.user is None:
            return None
        return answer.user if self._holds(answer) else None

    async def user(self, authorization: bytes | None, loopback: bool) -> User:
        """Raises `Problem` 401 unless the header names a user with its right password."""
        if authorization is None:
            raise unauthenticated(_NO_CREDENTIALS)
        key = (authorization, loopback)
        answer = self._answers.get(key)
        if answer is not None and self._holds(answer):
            user = answer.user
        else:
            user = await self._verify_once(key)
        if user is None:
            raise unauthenticated(_WRONG)
        return user

    def _holds(self, answer: _Answer) -> bool:
        version = self._users.version if answer.user is None else answer.user.version
        return answer.version == version and self._clock() < answer.expires

    async def _verify_once(self, key: tuple[bytes, bool]) -> User | None:
        running = self._under_way.get(key)
        if running is None:
            running = asyncio.ensure_future(self._verify(key, *credentials(key[0])))
            self._under_way[key] = running
            running.add_done_callback(lambda _: self._under_way.pop(key))
        # Shielded: a client that hangs up must not cancel what others wait for.
        return await asyncio.shield(running)

    async def _verify(self, key: tuple[bytes, bool], name: str, password: str) -> User | None:
        loopback = key[1]
        version = self._users.version
        user = self._users.known(name, password, loopback=loopback)
        if user is None:
            user = await asyncio.get_running_loop().run_in_executor(
                self._threads, lambda: self._users.check(name, password, loopback=loopback)
            )
        if self._users.version == version:  # else the answer may be about an old password
            self._remember(key, user)
        return user

    def _remember(self, key: tuple[bytes, bool], user: User | None) -> None:
        if len(self._answers) >= MAX_REMEMBERED:
            self._answers.clear()
        version = self._users.version if user is None else user.version
        self._answers[key] = _Answer(user, version, self._clock() + VERIFIED_FOR_S)


def credentials(authorization: bytes) -> tuple[str, str]:
    """Name and password of a Basic header (RFC 7617, UTF-8). Raises `Problem` 401."""
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
    for name, value in scope["headers"]:
        if name == b"authorization":
            return bytes(value)
    return None


def from_loopback(scope: Scope) -> bool:
    """Whether the peer itself is on this machine; no forwarded header has a say."""
    client = scope.get("client")
    return client is not None and _is_loopback(client[0])


@lru_cache(1024)
def _is_loopback(host: str) -> bool:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
