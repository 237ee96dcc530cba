"""Who may call what: the tags of a user (RabbitMQ's, see its management plugin)."""

from __future__ import annotations

from dataclasses import dataclass

from ....core.auth import User
from ...problems import Problem


@dataclass(frozen=True, slots=True)
class RequiredTag:
    """Users with any of these tags have it; the first is the least."""

    tags: tuple[str, ...]

    def has(self, user: User) -> bool:
        return not user.tags.isdisjoint(self.tags)

    def require(self, user: User) -> None:
        """Raises `Problem` 403 naming the tag that is missing."""
        if not self.has(user):
            raise Problem(403, f"user '{user.name}' needs the tag '{self.tags[0]}' for this")


ADMINISTRATOR = RequiredTag(("administrator",))
MONITORING = RequiredTag(("monitoring", "administrator"))
POLICYMAKER = RequiredTag(("policymaker", "administrator"))
MANAGEMENT = RequiredTag(("management", "policymaker", "monitoring", "administrator"))


def sees(user: User, vhost: str) -> bool:
    """Whether lists show what is in a virtual host to a user."""
    return user.may_enter(vhost) or MONITORING.has(user)
