"""What is wrong with a change of users, passwords or rights; the texts are for whoever asked."""

from __future__ import annotations

from ..errors import WarrenError


class AuthError(WarrenError):
    """A user, password hash or permission that can't be stored."""


class Unknown(AuthError):
    """There is no such user or virtual host."""


class LastAdministrator(AuthError):
    """Nobody would be left who may change users."""


def no_user(name: str) -> Unknown:
    return Unknown(f"no user '{name}'")


def no_vhost(name: str) -> Unknown:
    return Unknown(f"no vhost '{name}'")
