"""The users of bearer tokens: each has the permissions of its owner, as far as the scopes allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...core.auth import Access, Kind, TopicRights, User
from ...core.errors import access_refused
from ...hub.requests import Kind as Letter
from ...hub.tokens.token import Token

_LETTERS: Final[dict[Kind, Letter]] = {"exchange": "x", "queue": "q"}


class TokenUser(User):
    """A user without tags, with the name of the token's owner."""

    def __init__(self, owner: User, token: Token, lasts_s: Callable[[], float]) -> None:
        super().__init__(owner.name)
        self.lasts_s = lasts_s
        """Returns how long the token is valid yet."""
        self._owner = owner
        self._token = token
        self.over = ""
        """Why the token is not valid any more; empty while it is."""
        owner.watch(self.changed)

    @property
    def token_name(self) -> str:
        return self._token.name

    @property
    def limited(self) -> User:
        return self._owner

    @property
    def ending(self) -> str:
        return self.over or self._owner.ending

    def may_enter(self, vhost: str) -> bool:
        return self._token.enters(vhost) and not self.over and self._owner.may_enter(vhost)

    def permitted(self, vhost: str, access: Access, resource: str) -> bool:
        kinds: tuple[Kind, ...] = ("exchange", "queue")
        return any(self._permitted(vhost, access, kind, resource) for kind in kinds)

    def _permitted(self, vhost: str, access: Access, kind: Kind, resource: str) -> bool:
        allowed = self._token.allows(access, vhost, _LETTERS[kind], resource)
        return allowed and not self.over and self._owner.permitted(vhost, access, resource)

    def require(self, vhost: str, access: Access, kind: Kind, resource: str) -> None:
        if self.over:
            raise access_refused(self.over)
        if not self._token.allows(access, vhost, _LETTERS[kind], resource):
            raise access_refused(
                f"token '{self._token.name}' has no scope to {access} {kind} '{resource}' in vhost "
                f"'{vhost}'"
            )
        self._owner.require(vhost, access, kind, resource)

    def require_any(self, vhost: str, kind: Kind, resource: str) -> None:
        ways: tuple[Access, ...] = ("read", "write")
        if not any(self._permitted(vhost, access, kind, resource) for access in ways):
            raise access_refused(
                f"token '{self._token.name}' has no scope for {kind} '{resource}' in vhost "
                f"'{vhost}'"
            )

    def require_label(self, label: str) -> None:
        """Raises `ChannelError` 403 if no scope is for tunnels with this label."""
        if self.over or not self._token.allows_label(label.lower()):
            missing = (
                f"token '{self._token.name}' has no scope to enrol the label '{label}': it needs "
                '{"tunnel": "LABEL"}, where * at the end stands for any end'
            )
            raise access_refused(self.over or missing)

    def topic_rights(self, vhost: str, exchange: str) -> TopicRights | None:
        return self._owner.topic_rights(vhost, exchange)

    def invalidate(self, reason: str) -> None:
        """Takes all permissions away, and notifies those who watch the user."""
        if not self.over:
            self.over = reason
            self._owner.unwatch(self.changed)
            self.end()
