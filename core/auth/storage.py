"""The port through which changes of users are stored; `definitions/writer.py` implements it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from .permissions import Permissions
from .user import User


class UserStorage(Protocol):
    """Stores users; each call returns the commit number to wait for until it is durable."""

    def keep_user(self, user: User, password_hash: str) -> int: ...
    def end_user(self, user: User) -> int:
        """Deletes a user with its permissions, topic permissions and limits."""

    def keep_permissions(self, user: User, vhost: str, permissions: Permissions) -> int:
        """Raises `AuthError` if there is no such virtual host, as does `keep_topic_permission`."""

    def end_permissions(self, user: User, vhost: str) -> int: ...
    def keep_topic_permission(
        self, user: User, vhost: str, exchange: str, write: str, read: str
    ) -> int: ...
    def end_topic_permission(self, user: User, vhost: str, exchange: str) -> int: ...
    def keep_user_limits(self, user: User, limits: Mapping[str, int]) -> int:
        """Replaces all limits of a user; an empty mapping removes them."""
