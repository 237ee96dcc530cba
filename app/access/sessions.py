"""The sessions of browsers that have logged in: in memory, so a restart logs everybody out.

A session has 256 random bits as its secret, of which a digest is kept, and no data of its own. The
token against forged requests is made from the secret, so it takes no memory either.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ...core.auth import User

SECRET_BYTES: Final = 32
MAX_PER_USER: Final = 20
"""Sessions of one user; the one that was unused for longest ends when another begins."""
MAX_SESSIONS: Final = 10_000
IDLE_S: Final = 1_800
MAX_AGE_S: Final = 43_200


@dataclass(slots=True, eq=False)
class LoginSession:
    """A login. Times are monotonic, in seconds."""

    user: User
    credentials_version: int
    """The version of the user's credentials; a new password and new tags end the session."""
    begun_s: float
    used_s: float
    is_ended: bool = False
    """Ended by a logout, or for another session; one that is over by time need not be."""
    watchers: set[Callable[[], None]] = field(default_factory=set)
    """Called when it is ended."""


class Sessions:
    """The sessions, the one that was unused for longest first.

    One ends `idle_s` after its last request, and `max_age_s` after its login at the latest.
    """

    def __init__(
        self,
        idle_s: float = IDLE_S,
        max_age_s: float = MAX_AGE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.idle_s = idle_s
        self.max_age_s = max_age_s
        self._clock = clock
        self._key = secrets.token_bytes(SECRET_BYTES)
        self._by_digest: dict[bytes, LoginSession] = {}

    def begin(self, user: User, credentials_version: int) -> str:
        """Returns the secret of a new session.

        `credentials_version` is the user's when the check of the password began: if it has changed
        meanwhile, the session is over at once.
        """
        self._make_room(user)
        secret = secrets.token_urlsafe(SECRET_BYTES)
        now_s = self._clock()
        self._by_digest[_digest(secret)] = LoginSession(user, credentials_version, now_s, now_s)
        return secret

    def find(self, secret: str) -> LoginSession | None:
        """Returns the session, which counts as used now; None if there is none or it is over."""
        digest = _digest(secret)
        session = self._by_digest.get(digest)
        if session is None:
            return None
        if self._is_over(session):
            self._drop(digest)
            return None
        session.used_s = self._clock()
        self._by_digest[digest] = self._by_digest.pop(digest)
        return session

    def end(self, secret: str) -> None:
        """Ends the session, if there is one, and what it has opened."""
        digest = _digest(secret)
        if digest in self._by_digest:
            self._drop(digest)

    def lasts_s(self, session: LoginSession) -> float:
        """Returns how long it lasts, however much it is used."""
        return session.begun_s + self.max_age_s - self._clock()

    def lasts_unused_s(self, session: LoginSession) -> float:
        """Returns how long it lasts unless it is used; 0 if it is over."""
        if session.is_ended or not self._is_as_begun(session):
            return 0.0
        return max(0.0, self._ends_s(session) - self._clock())

    def csrf_token(self, secret: str) -> str:
        """Returns the token that requests of this session have to repeat in a header."""
        mac = hmac.digest(self._key, secret.encode(), "sha256")
        return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()

    def _is_over(self, session: LoginSession) -> bool:
        return self._clock() >= self._ends_s(session) or not self._is_as_begun(session)

    def _ends_s(self, session: LoginSession) -> float:
        return min(session.used_s + self.idle_s, session.begun_s + self.max_age_s)

    def _is_as_begun(self, session: LoginSession) -> bool:
        user = session.user
        return not user.removed and user.credentials_version == session.credentials_version

    def _drop(self, digest: bytes) -> None:
        session = self._by_digest.pop(digest)
        session.is_ended = True
        for callback in tuple(session.watchers):
            callback()

    def _make_room(self, user: User) -> None:
        """Drops what is over, and the oldest of too many."""
        for digest, session in list(self._by_digest.items()):
            if self._is_over(session):
                self._drop(digest)
        own = [digest for digest, session in self._by_digest.items() if session.user is user]
        for digest in own[: max(0, len(own) - MAX_PER_USER + 1)]:
            self._drop(digest)
        while len(self._by_digest) >= MAX_SESSIONS:
            self._drop(next(iter(self._by_digest)))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).digest()
