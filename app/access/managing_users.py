"""The users of bearer tokens at the management API."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ...core.auth import ADMINISTRATOR, Access, Kind, User
from ...core.errors import access_refused
from ...hub.tokens.token import Token
from .token_users import TokenUser

MANAGEMENT: Final = "management"
POLICYMAKER: Final = "policymaker"
CREDENTIALS: Final = re.compile(r"hub/(tokens|capabilities)(/|$)|hub/outputs/[^/]*/tokens(/|$)")
"""Paths that no token changes: what it made could outlive it."""


class ManagingUser(TokenUser):
    """A user with the tags of the token's owner; for some virtual hosts only, without the tags that
    are for all of them."""

    def __init__(
        self, owner: User, token: Token, lasts_s: Callable[[], float], vhosts: frozenset[str] | None
    ) -> None:
        super().__init__(owner, token, lasts_s)
        self._vhosts = vhosts
        self._take_tags()

    def changed(self) -> None:
        self._take_tags()
        super().changed()

    def _take_tags(self) -> None:
        tags = frozenset() if self.over else self._owner.tags
        if self._vhosts is not None and tags:
            may_make_policies = not tags.isdisjoint((POLICYMAKER, ADMINISTRATOR))
            tags = frozenset((MANAGEMENT, POLICYMAKER) if may_make_policies else (MANAGEMENT,))
        self.tags = tags

    def may_enter(self, vhost: str) -> bool:
        return self._has(vhost) and self._owner.may_enter(vhost)

    def permitted(self, vhost: str, access: Access, resource: str) -> bool:
        return self._has(vhost) and self._owner.permitted(vhost, access, resource)

    def require(self, vhost: str, access: Access, kind: Kind, resource: str) -> None:
        self._require_vhost(vhost)
        self._owner.require(vhost, access, kind, resource)

    def require_any(self, vhost: str, kind: Kind, resource: str) -> None:
        self._require_vhost(vhost)
        self._owner.require_any(vhost, kind, resource)

    def _has(self, vhost: str) -> bool:
        return not self.over and (self._vhosts is None or vhost in self._vhosts)

    def _require_vhost(self, vhost: str) -> None:
        if not self._has(vhost):
            missing = f"token '{self.token_name}' has no scope to manage vhost '{vhost}'"
            raise access_refused(self.over or missing)
