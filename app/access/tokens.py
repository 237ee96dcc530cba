"""Finds the users of bearer tokens by their secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ...core.auth import User
from ...hub.tokens.token import Token
from ..problems import Problem
from .managing_users import CREDENTIALS, ManagingUser
from .token_users import TokenUser

if TYPE_CHECKING:
    from ...core.auth import Users
    from ...hub.tokens.tokens import AccessTokens

Vhosts = frozenset[str] | None


class _Users:
    """The users of one token: one for messages, and one for each set of virtual hosts that its
    scopes manage. None has the tags or rights of another."""

    def __init__(self, owner: User, token: Token, lasts_s: Callable[[], float]) -> None:
        self._owner = owner
        self._token = token
        self._lasts_s = lasts_s
        self.plain = TokenUser(owner, token, lasts_s)
        self._managing: dict[Vhosts, ManagingUser] = {}

    def managing(self, method: str, path: str) -> ManagingUser:
        """Returns the user for a request below `/api`; raises `Problem` 403 if no scope allows the
        request."""
        is_change = method not in ("GET", "HEAD", "OPTIONS")
        if is_change and CREDENTIALS.match(path):
            raise Problem(
                403, "tokens can't create or revoke tokens and capabilities; log in with a password"
            )
        scopes = self._token.managed(path, is_change=is_change)
        if not scopes:
            way = "write" if is_change else "read"
            reason = (
                f"token '{self._token.name}' has no scope for {method} /api/{path}: it needs "
                f'{{"manage": "{way}", "path": "{path}"}}, where * at the end stands for any end'
            )
            raise Problem(403, reason)
        named = [scope.vhost for scope in scopes if scope.vhost is not None]
        vhosts = frozenset(named) if len(named) == len(scopes) else None
        found = self._managing.get(vhosts)
        if found is None:
            found = ManagingUser(self._owner, self._token, self._lasts_s, vhosts)
            self._managing[vhosts] = found
        return found

    def invalidate(self, reason: str) -> None:
        for user in (self.plain, *self._managing.values()):
            user.invalidate(reason)


class TokenUsers:
    """Keeps the users of each token in use, until it ends."""

    def __init__(self, tokens: AccessTokens, users: Users) -> None:
        self._tokens = tokens
        self._users = users
        self._found: dict[str, tuple[_Users, asyncio.TimerHandle]] = {}
        tokens.on_end = lambda token: self._end(token, "was revoked")

    def find(self, secret: str) -> User | None:
        """Returns the user of a valid token, None for any other."""
        found = self._find(secret)
        return None if found is None else found.plain

    def managing(self, secret: str, method: str, path: str) -> User | None:
        """Returns the user of a valid token for a request below `/api`, None for any other token.

        Raises `Problem` 403 if it has no scope for that.
        """
        found = self._find(secret)
        return None if found is None else found.managing(method, path)

    def _find(self, secret: str) -> _Users | None:
        token = self._tokens.find(secret)
        if token is None:
            return None
        found = self._found.get(token.id)
        if found is not None:
            return found[0]
        owner = self._users.get(token.owner)
        return None if owner is None else self._enter(token, owner)

    def _enter(self, token: Token, owner: User) -> _Users:
        users = _Users(owner, token, partial(self._tokens.lasts_s, token))
        expire: Callable[[Token, str], None] = self._end
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._tokens.lasts_s(token), expire, token, "has expired")
        self._found[token.id] = users, timer
        return users

    def _end(self, token: Token, how: str) -> None:
        found = self._found.pop(token.id, None)
        if found is not None:
            users, timer = found
            timer.cancel()
            users.invalidate(f"token '{token.name}' {how}")
            self._users.on_removed(users.plain)
