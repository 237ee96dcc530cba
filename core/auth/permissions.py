"""The permissions of a user: patterns of names and of routing keys, and cached results."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from ..errors import access_refused
from .patterns import Matcher, matcher, topic_matcher

Access = Literal["configure", "write", "read"]
TopicAccess = Literal["write", "read"]

MAX_CACHED_ANSWERS: Final = 10_000
"""Per user, and per topic exchange of a user; a client that invents names can't fill the memory."""


class Permissions(NamedTuple):
    """Unanchored patterns of the names a user may configure, write and read; empty denies."""

    configure: str
    write: str
    read: str


class TopicPermissions(NamedTuple):
    """Unanchored patterns of the routing keys a user may publish and bind with."""

    write: str
    read: str


class Rights:
    """The compiled permissions in one virtual host. Raises `AuthError` for an invalid pattern."""

    __slots__ = ("matchers", "permissions")

    def __init__(self, permissions: Permissions, user: str, vhost: str) -> None:
        self.permissions = permissions
        owner = f"permission of user '{user}' in vhost '{vhost}'"
        self.matchers: dict[str, Matcher] = {
            access: matcher(pattern, f"{access} {owner}")
            for access, pattern in permissions._asdict().items()
        }

    def allow(self, access: Access, name: str) -> bool:
        return self.matchers[access](name)


class TopicRights:
    """The compiled topic permissions of a user for an exchange.

    Raises `AuthError` for an invalid pattern.
    """

    __slots__ = ("_answers", "_text", "matchers", "permissions")

    def __init__(self, permissions: TopicPermissions, user: str, vhost: str, exchange: str) -> None:
        self.permissions = permissions
        owner = f"topic permission of user '{user}' for exchange '{exchange}' in vhost '{vhost}'"
        self.matchers: dict[str, Matcher] = {
            access: topic_matcher(pattern, user, vhost, f"{access} {owner}")
            for access, pattern in permissions._asdict().items()
        }
        self._answers: dict[tuple[str, str], bool] = {}
        self._text = f"in exchange '{exchange}' in vhost '{vhost}' refused for user '{user}'"

    def allow(self, access: TopicAccess, routing_key: str) -> bool:
        answer = self._answers.get((access, routing_key))
        return self._evaluate(access, routing_key) if answer is None else answer

    def require(self, access: TopicAccess, routing_key: str) -> None:
        """Raises `ChannelError` 403 if the key is not permitted."""
        if not self.allow(access, routing_key):
            raise access_refused(f"{access} access to topic '{routing_key}' {self._text}")

    def _evaluate(self, access: TopicAccess, routing_key: str) -> bool:
        if len(self._answers) >= MAX_CACHED_ANSWERS:
            self._answers.clear()
        answer = self._answers[access, routing_key] = self.matchers[access](routing_key)
        return answer
