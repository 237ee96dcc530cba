"""The requests that a standby carries out itself: publishes with the password of a user.

They need nothing that only the active hub has: RabbitMQ's users and permissions are known here too,
and RabbitMQ takes and confirms the message on this hub's own connections, whether another hub is
active or not. All others are passed on. So what the active hub knows alone (tokens, sessions,
secret URLs, tunnels) and what it counts (failed logins, quotas) stays in one place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.types import Receive, Scope, Send

from ..access.authentication import Authenticator
from ..access.clients import Clients
from ..access.cross_site import SIGNS
from ..problems import Problem
from ..requests.paths import TUNNELS_PATH, Prefixes, Target, parse
from .hops import FIELD

_BASIC: Final = b"basic "
_BELOW_GATEWAY: Final = f"{TUNNELS_PATH}/".encode()
_PASSED_ON: Final = SIGNS | {b"cookie", FIELD}
"""Header fields of browsers and of other standbys, whose requests are passed on."""


class StandbyPublisher:
    """Publishes with `publish`. `is_tunnel` tells of a Host field whether a tunnel answers it."""

    def __init__(
        self,
        publish: Callable[[Scope, Receive, Send, Target], Awaitable[None]],
        authenticator: Authenticator,
        *,
        clients: Clients | None,
        is_tunnel: Callable[[str], bool],
        base_path: str,
    ) -> None:
        self._publish = publish
        self._authenticator = authenticator
        self._clients = clients
        self._is_tunnel = is_tunnel
        self._prefixes = Prefixes(base_path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Publishes, and answers; returns False for a request that is to be passed on, of which
        nothing is read then. Raises `ClientDisconnect`."""
        target = self._target(scope)
        if target is None or not await self._is_of_user(scope):
            return False
        self._reveal(scope)
        await self._publish(scope, receive, send, target)
        return True

    def _target(self, scope: Scope) -> Target | None:
        """Returns where the request publishes to, as `Application` finds it."""
        _, path = self._prefixes.split(scope["raw_path"])
        if scope["method"] != "POST" or path.startswith(_BELOW_GATEWAY):
            return None
        try:
            target = parse(path)
        except Problem:
            return None
        return target if target is not None and target.facet == "endpoint" else None

    async def _is_of_user(self, scope: Scope) -> bool:
        """Returns whether its one login is a right password, and no browser or tunnel sent it."""
        logins, host = [], b""
        for name, value in scope["headers"]:
            if name in _PASSED_ON:
                return False
            if name == b"authorization":
                logins.append(value)
            elif name == b"host":
                host = value
        if [one[: len(_BASIC)].lower() for one in logins] != [_BASIC]:
            return False
        if self._is_tunnel(host.decode("latin-1")):
            return False
        # A copy, since the active hub is to find the client itself.
        client = {**scope, "extensions": {**scope["extensions"]}}
        self._reveal(client)
        try:
            await self._authenticator.user(logins[0], client)
        except Problem:
            return False
        return True

    def _reveal(self, scope: Scope) -> None:
        if self._clients is not None:
            self._clients.reveal(scope)
