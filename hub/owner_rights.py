"""The permissions that the owners of subscriptions, capabilities and upstreams have now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .requests import Resource
from .subscriptions.subscription import Subscription
from .topics import names

EXTERNAL = frozenset(
    Resource(names.VHOST, "x", exchange) for exchange in (names.CONTENT, names.ENTRIES)
)
"""The exchanges of topics of other sites, to which everybody may subscribe by URL."""


class SubscriberRights(Protocol):
    """The permissions of owners. Each method whose name ends in `_refusal` returns None if the
    owner has the permission, else the reason why not, in words for the owner.

    The owner "" is an anonymous client. The routing key None stands for keys that are not known
    yet, and are checked with each message.
    """

    def owner_refusal(self, owner: str) -> str | None:
        """Returns why the owner can't have permissions: there is no such user."""

    def read_refusal(self, owner: str, resource: Resource, routing_key: str) -> str | None: ...

    def write_refusal(
        self, owner: str, resource: Resource, routing_key: str | None
    ) -> str | None: ...

    def watch(self, owner: str, changed: Callable[[str], None]) -> None:
        """Calls `changed(owner)` after each change of what the owner may, until `unwatch` with the
        same function.

        Repeating it watches a user who was created again with the same name.
        """

    def unwatch(self, owner: str, changed: Callable[[str], None]) -> None: ...


class AllowAll:
    """The permissions in a hub without users."""

    def owner_refusal(self, owner: str) -> str | None:
        return None

    def read_refusal(self, owner: str, resource: Resource, routing_key: str) -> str | None:
        return None

    def write_refusal(self, owner: str, resource: Resource, routing_key: str | None) -> str | None:
        return None

    def watch(self, owner: str, changed: Callable[[str], None]) -> None:
        """Does nothing: permissions never change."""

    def unwatch(self, owner: str, changed: Callable[[str], None]) -> None:
        """Does nothing: nothing was watched."""


def refusal(rights: SubscriberRights, subscription: Subscription) -> str | None:
    """Returns why the owner lacks the permissions for a subscription, None if nothing is wrong.

    Topics of other sites need none, as long as the owner exists.
    """
    owner, source = subscription.owner, subscription.source
    if subscription.is_websub and source in EXTERNAL:
        return rights.owner_refusal(owner)
    reason = rights.read_refusal(owner, source, subscription.topic)
    if reason is None and subscription.sink is not None:
        reason = rights.write_refusal(owner, subscription.sink, None)
    return reason
