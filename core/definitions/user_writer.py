"""Writes the definitions of users to the store; nothing here waits for the disk."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ..auth import Permissions, User
from ..auth.errors import no_vhost
from . import kinds
from .keys import DefinitionKind, key_of, of_user

if TYPE_CHECKING:
    from .set_aside import UnappliedDefinitions


class UserWriter:
    """Writes users and permissions; each call returns the commit number to wait for."""

    def __init__(self, set_aside: UnappliedDefinitions, vhosts: Collection[str]) -> None:
        self._set_aside = set_aside
        self._vhosts = vhosts

    def save_user(self, user: User, password_hash: str) -> int:
        tags = tuple(sorted(user.tags))
        definition = kinds.UserDefinition(user.name, password_hash, tags)
        return self._set_aside.define(definition.key(), definition.value())

    def delete_user(self, user: User) -> int:
        heads = of_user(user.name)
        for key in [key for key in self._set_aside.defined if key.startswith(heads)]:
            self._set_aside.define(key, None)
        return self._set_aside.define(key_of(DefinitionKind.USER, user.name), None)

    def save_permissions(self, user: User, vhost: str, permissions: Permissions) -> int:
        """Raises `AuthError` if there is no such virtual host."""
        self._refuse_unknown(vhost)
        definition = kinds.PermissionDefinition(
            user.name, vhost, permissions.configure, permissions.write, permissions.read
        )
        return self._set_aside.define(definition.key(), definition.value())

    def delete_permissions(self, user: User, vhost: str) -> int:
        return self._set_aside.define(key_of(DefinitionKind.PERMISSION, user.name, vhost), None)

    def save_topic_permission(
        self, user: User, vhost: str, exchange: str, write: str, read: str
    ) -> int:
        """Raises `AuthError` if there is no such virtual host."""
        self._refuse_unknown(vhost)
        found = kinds.TopicPermissionDefinition(user.name, vhost, exchange, write, read)
        return self._set_aside.define(found.key(), found.value())

    def delete_topic_permission(self, user: User, vhost: str, exchange: str) -> int:
        return self._set_aside.define(
            key_of(DefinitionKind.TOPIC_PERMISSION, user.name, vhost, exchange), None
        )

    def save_user_limits(self, user: User, limits: Mapping[str, int]) -> int:
        """Stores all limits, replacing those before; an empty table deletes them."""
        found = kinds.UserLimitsDefinition(user.name, dict(limits))
        return self._set_aside.define(found.key(), found.value() if limits else None)

    def _refuse_unknown(self, vhost: str) -> None:
        if vhost not in self._vhosts:
            raise no_vhost(vhost)
