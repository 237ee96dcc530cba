"""The user of a request below `/api`, and how long the request was admitted for: its answer may
take longer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...core.auth import User
from .sessions import LoginSession, Sessions


class Admission:
    """The user of a request, by the `session` of its cookie, by a password or by a token.

    It is over when the session or the token is, when the user is deleted, and when the user gets
    another password or other tags.
    """

    __slots__ = ("_credentials_version", "_session", "_sessions", "user")

    def __init__(
        self, user: User, sessions: Sessions | None = None, session: LoginSession | None = None
    ) -> None:
        self.user = user
        self._credentials_version = user.credentials_version
        self._sessions = sessions
        self._session = session

    def lasts_s(self) -> float:
        """Returns how long it lasts unless its session is used; 0 if it is over, infinity where
        only a change ends it."""
        user = self.user
        if user.removed or user.credentials_version != self._credentials_version:
            return 0.0
        if self._sessions is None or self._session is None:
            return math.inf
        return self._sessions.lasts_unused_s(self._session)

    @contextmanager
    def watching(self, changed: Callable[[], None]) -> Iterator[None]:
        """Calls `changed` when it may end for another reason than time."""
        watchers = set() if self._session is None else self._session.watchers
        watchers.add(changed)
        self.user.watch(changed)
        try:
            yield
        finally:
            watchers.discard(changed)
            self.user.unwatch(changed)
