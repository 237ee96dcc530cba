"""What the owner of something may still do, asked of whoever knows the users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .requests import Resource
from .subscriptions.subscription import Subscription
from .topics import names

EXTERNAL = frozenset(
    Resource(names.VHOST, "x", exchange) for exchange in (names.CONTENT, names.ENTRIES)
)
"""Where everybody may subscribe to topics by their URL."""


class Rights(Protocol):
    """Each `refuse_` gives None for yes, else why not, in words for the one it is taken from.

    The owner "" is whoever came to `/hub` without credentials. The key None stands for keys
    that nobody knows yet: those are asked about when they come.
    """

    def refuse_owner(self, owner: str) -> str | None:
        """Whether the owner is still there."""

    def refuse_read(self, owner: str, resource: Resource, routing_key: str) -> str | None: ...

    def refuse_write(
        self, owner: str, resource: Resource, routing_key: str | None
    ) -> str | None: ...

    def watch(self, owner: str, changed: Callable[[str], None]) -> None:
        """Calls `changed(owner)` after each change of what the owner may, until `unwatch`.

        Repeating it does no harm, and follows a user who was made anew under the same name.
        """

    def unwatch(self, owner: str) -> None: ...


class EverybodyMay:
    """For a hub without users."""

    def refuse_owner(self, owner: str) -> str | None:
        return None

    def refuse_read(self, owner: str, resource: Resource, routing_key: str) -> str | None:
        return None

    def refuse_write(self, owner: str, resource: Resource, routing_key: str | None) -> str | None:
        return None

    def watch(self, owner: str, changed: Callable[[str], None]) -> None:
        """Nothing ever changes."""

    def unwatch(self, owner: str) -> None:
        """As `watch`."""


def refusal(rights: Rights, subscription: Subscription) -> str | None:
    """Why the owner may not have this subscription any more, or None.

    External topics are everybody's, as long as there is an owner.
    """
    owner, source = subscription.owner, subscription.source
    if subscription.is_websub and source in EXTERNAL:
        return rights.refuse_owner(owner)
    reason = rights.refuse_read(owner, source, subscription.topic)
    if reason is None and subscription.sink is not None:
        reason = rights.refuse_write(owner, subscription.sink, None)
    return reason
