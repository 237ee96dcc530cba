"""Definitions of users, their permissions and limits."""

from __future__ import annotations

from typing import NamedTuple, Self

from ...message.model import Table
from ..fields import VERSION, FieldReader, arguments, number, text
from ..keys import DefinitionKind, key_of


class UserDefinition(NamedTuple):
    """A user; its password is stored as a hash only."""

    name: str
    password_hash: str
    tags: tuple[str, ...]

    def key(self) -> bytes:
        return key_of(DefinitionKind.USER, self.name)

    def value(self) -> bytes:
        tags = b"".join(map(text, self.tags))
        return VERSION + text(self.password_hash) + number(len(self.tags)) + tags

    @classmethod
    def decode(cls, key: FieldReader, value: FieldReader) -> Self:
        password_hash = value.text()
        return cls(key.text(), password_hash, tuple(value.text() for _ in range(value.number())))

    def description(self) -> str:
        return f"user '{self.name}'"


class UserLimitsDefinition(NamedTuple):
    """The limits of a user: numbers by name (`max-connections` ...)."""

    user: str
    limits: Table

    def key(self) -> bytes:
        return key_of(DefinitionKind.USER_LIMITS, self.user)

    def value(self) -> bytes:
        return VERSION + arguments(self.limits)

    @classmethod
    def decode(cls, key: FieldReader, value: FieldReader) -> Self:
        return cls(key.text(), value.arguments())

    def description(self) -> str:
        return f"limits of user '{self.user}'"


class PermissionDefinition(NamedTuple):
    """The permissions of a user in a virtual host: three patterns of names."""

    user: str
    vhost: str
    configure: str
    write: str
    read: str

    def key(self) -> bytes:
        return key_of(DefinitionKind.PERMISSION, self.user, self.vhost)

    def value(self) -> bytes:
        return VERSION + text(self.configure) + text(self.write) + text(self.read)

    @classmethod
    def decode(cls, key: FieldReader, value: FieldReader) -> Self:
        return cls(key.text(), key.text(), value.text(), value.text(), value.text())

    def description(self) -> str:
        return f"permission of user '{self.user}' in vhost '{self.vhost}'"


class TopicPermissionDefinition(NamedTuple):
    """The routing keys that a user may publish and bind with at a topic exchange: two patterns."""

    user: str
    vhost: str
    exchange: str
    write: str
    read: str

    def key(self) -> bytes:
        return key_of(DefinitionKind.TOPIC_PERMISSION, self.user, self.vhost, self.exchange)

    def value(self) -> bytes:
        return VERSION + text(self.write) + text(self.read)

    @classmethod
    def decode(cls, key: FieldReader, value: FieldReader) -> Self:
        return cls(key.text(), key.text(), key.text(), value.text(), value.text())

    def description(self) -> str:
        return (
            f"topic permission of user '{self.user}' for exchange '{self.exchange}' in vhost "
            f"'{self.vhost}'"
        )
