"""A user: name, tags, limits, and permissions by virtual host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, NamedTuple

from ..errors import access_refused
from .pcre import LimitedPattern, exceeded
from .permissions import (
    MAX_CACHED_ANSWERS,
    Access,
    Permissions,
    Rights,
    TopicPermissions,
    TopicRights,
)

Kind = Literal["queue", "exchange"]

DEFAULT_EXCHANGE: Final = "amq.default"
"""The name of the default exchange in permissions and error texts."""
ADMINISTRATOR: Final = "administrator"


class User:
    """A user of `Users`; connections may still refer to one that was removed."""

    def __init__(self, name: str, tags: Iterable[str] = ()) -> None:
        self.name = name
        self.tags = frozenset(tags)
        self.limits: Mapping[str, int] = {}
        """`max-connections` and `max-channels`; absent or -1 is no limit."""
        self.removed = False
        self.version = 0
        """Grows with every change; a result cached with an older version is invalid."""
        self.credentials_version = 0
        """Grows whenever password and tags are set; sessions from before are over."""
        self._rights: dict[str, Rights] = {}
        self._topics: dict[tuple[str, str], TopicRights] = {}
        self._answers: dict[tuple[str, str, str], bool] = {}
        self._watchers: set[Callable[[], None]] = set()

    def __repr__(self) -> str:
        return f"User({self.name!r})"

    @property
    def permissions(self) -> dict[str, Permissions]:
        """The permissions by virtual host, as a copy."""
        return {vhost: rights.permissions for vhost, rights in self._rights.items()}

    @property
    def topic_permissions(self) -> dict[tuple[str, str], TopicPermissions]:
        """The topic permissions by virtual host and exchange, as a copy."""
        return {place: rights.permissions for place, rights in self._topics.items()}

    @property
    def exceeded_patterns(self) -> list[LimitedPattern]:
        """The patterns of its permissions that have exceeded a limit."""
        matchers = [rights.matchers for rights in self._rights.values()]
        matchers += [rights.matchers for rights in self._topics.values()]
        return exceeded(matcher for found in matchers for matcher in found.values())

    @property
    def limited(self) -> User:
        """The user whose limits count the connections."""
        return self

    @property
    def ending(self) -> str:
        """Why the connections of a removed user end."""
        return f"user '{self.name}' is deleted"

    def may_enter(self, vhost: str) -> bool:
        """Whether any permission is set there, an empty one included."""
        return vhost in self._rights

    def permitted(self, vhost: str, access: Access, resource: str) -> bool:
        answer = self._answers.get((vhost, access, resource))
        return self._evaluate(vhost, access, resource) if answer is None else answer

    def require(self, vhost: str, access: Access, kind: Kind, resource: str) -> None:
        """Raises `ChannelError` 403 if the access is not permitted."""
        if not self.permitted(vhost, access, resource):
            raise access_refused(f"{access} access to {self._refused(vhost, kind, resource)}")

    def require_any(self, vhost: str, kind: Kind, resource: str) -> None:
        """Checks for any of the three permissions, which is enough to see that a resource exists,
        as in a passive declare.

        Raises `ChannelError` 403.
        """
        ways: tuple[Access, ...] = ("configure", "write", "read")
        if not any(self.permitted(vhost, access, resource) for access in ways):
            raise access_refused(f"access to {self._refused(vhost, kind, resource)}")

    def topic_rights(self, vhost: str, exchange: str) -> TopicRights | None:
        """Returns the topic permissions for an exchange; None permits every key."""
        return self._topics.get((vhost, exchange)) if self._topics else None

    def watch(self, callback: Callable[[], None]) -> None:
        """Calls `callback` at each change of password, tags or permissions, and at removal."""
        self._watchers.add(callback)

    def unwatch(self, callback: Callable[[], None]) -> None:
        self._watchers.discard(callback)

    def changed(self) -> None:
        """Clears the cached results and calls the watchers."""
        self.version += 1
        self._answers.clear()
        for callback in tuple(self._watchers):
            callback()

    def _refused(self, vhost: str, kind: Kind, resource: str) -> str:
        name = resource or DEFAULT_EXCHANGE
        return f"{kind} '{name}' in vhost '{vhost}' refused for user '{self.name}'"

    def _evaluate(self, vhost: str, access: Access, resource: str) -> bool:
        rights = self._rights.get(vhost)
        answer = rights is not None and rights.allow(access, resource or DEFAULT_EXCHANGE)
        if len(self._answers) >= MAX_CACHED_ANSWERS:
            self._answers.clear()
        self._answers[vhost, access, resource] = answer
        return answer

    # -- for `Users` alone

    def set_rights(self, vhost: str, rights: Rights | None) -> None:
        if rights is None:
            self._rights.pop(vhost, None)
        else:
            self._rights[vhost] = rights
        self.changed()

    def set_topic_rights(self, vhost: str, exchange: str, rights: TopicRights | None) -> None:
        if rights is None:
            self._topics.pop((vhost, exchange), None)
        else:
            self._topics[vhost, exchange] = rights
        self.changed()

    def end(self) -> None:
        """Revokes all rights of a removed user."""
        self.removed = True
        self.tags = frozenset()
        self.limits = {}
        self._rights.clear()
        self._topics.clear()
        self.changed()


class Account(NamedTuple):
    """A user with its password hash."""

    user: User
    password_hash: str
