"""The tags that users need for an operation, as in RabbitMQ's management plugin."""

from __future__ import annotations

from dataclasses import dataclass

from ....core.auth import User
from ...problems import Problem


@dataclass(frozen=True, slots=True)
class RequiredTag:
    """Any of these tags is enough; the first has the fewest rights."""

    tags: tuple[str, ...]

    def has(self, user: User) -> bool:
        return not user.tags.isdisjoint(self.tags)

    def require(self, user: User) -> None:
        """Raises `Problem` 403 naming the tag that is missing."""
        if not self.has(user):
            raise Problem(403, f"user '{user.name}' needs the tag '{self.tags[0]}' for this")


class NoTag(RequiredTag):
    """Every user may."""

    def has(self, user: User) -> bool:
        return not user.removed

    def require(self, user: User) -> None:
        """Raises `Problem` 403 for a user who was deleted."""
        if user.removed:
            raise Problem(403, f"user '{user.name}' was deleted")


class NoLogin(RequiredTag):
    """Everybody may, without credentials; the handler reads only its own."""

    def has(self, user: User) -> bool:
        return True

    def require(self, user: User) -> None:
        """Raises nothing."""


NO_LOGIN = NoLogin(())
ANYBODY = NoTag(())
ADMINISTRATOR = RequiredTag(("administrator",))
MONITORING = RequiredTag(("monitoring", "administrator"))
POLICYMAKER = RequiredTag(("policymaker", "administrator"))
MANAGEMENT = RequiredTag(("management", "policymaker", "monitoring", "administrator"))


def sees(user: User, vhost: str) -> bool:
    """Returns whether lists show the user what is in the virtual host."""
    return user.may_enter(vhost) or MONITORING.has(user)
