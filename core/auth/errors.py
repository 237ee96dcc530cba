"""Errors of changes to users, passwords and permissions; the texts are for the client."""

from __future__ import annotations

from ..errors import WarrenError


class AuthError(WarrenError):
    """A user, password hash or permission that can't be stored."""


class Unknown(AuthError):
    """Raised for an unknown user or virtual host."""


class LastAdministrator(AuthError):
    """The change would leave no administrator."""


def no_user(name: str) -> Unknown:
    return Unknown(f"no user '{name}'")


def no_vhost(name: str) -> Unknown:
    return Unknown(f"no vhost '{name}'")
