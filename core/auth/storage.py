"""The port through which changes of users are stored; `definitions/writer.py` implements it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from .permissions import Permissions
from .user import User


class UserStorage(Protocol):
    """Stores users; each call returns the commit number to wait for until it is durable."""

    def save_user(self, user: User, password_hash: str) -> int: ...
    def delete_user(self, user: User) -> int:
        """Deletes a user with its permissions, topic permissions and limits."""

    def save_permissions(self, user: User, vhost: str, permissions: Permissions) -> int:
        """Raises `AuthError` if there is no such virtual host, as does `save_topic_permission`."""

    def delete_permissions(self, user: User, vhost: str) -> int: ...
    def save_topic_permission(
        self, user: User, vhost: str, exchange: str, write: str, read: str
    ) -> int: ...
    def delete_topic_permission(self, user: User, vhost: str, exchange: str) -> int: ...
    def save_user_limits(self, user: User, limits: Mapping[str, int]) -> int:
        """Replaces all limits of a user; an empty mapping removes them."""
