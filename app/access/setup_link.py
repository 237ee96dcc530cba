"""The link at which the first administrator of a new server is created.

The server prints it when it starts and no administrator can log in over HTTP: `guest` can't, except
in development. The link works for an hour, as long as there is no administrator and the server
runs; the next start prints another one. Its secret is in the fragment of the URL, which browsers do
not send, so it gets into no log of a proxy and no Referer field.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from typing import Final

from ...core.auth import ADMINISTRATOR, GUEST, Users
from ..requests.paths import SETUP_FRAGMENT

LASTS_S: Final = 3_600
SECRET_BYTES: Final = 32


def has_administrator(users: Users) -> bool:
    """Returns whether there is an administrator other than `guest`."""
    return any(ADMINISTRATOR in user.tags and user.name != GUEST for user in users)


class SetupLink:
    """The link for the first administrator. `takes_password` says whether the administrator may
    have this name and password."""

    def __init__(
        self,
        users: Users,
        takes_password: Callable[[str, str], bool] = lambda *_: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.takes_password = takes_password
        self._users = users
        self._clock = clock
        self._secret = secrets.token_urlsafe(SECRET_BYTES)
        self._ends_s = clock() + LASTS_S

    def url(self, base_url: str) -> str:
        """Returns the link, which is a credential."""
        return f"{base_url}{SETUP_FRAGMENT}{self._secret}"

    def accepts(self, secret: str) -> bool:
        """Returns whether the request with this secret may create the first administrator."""
        is_right = hmac.compare_digest(secret.encode(), self._secret.encode())
        return is_right and self._clock() < self._ends_s and not has_administrator(self._users)
