"""Checks the rights of the owners of subscriptions and other hub objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ...core.auth import TopicAccess, User, Users
from ...core.auth.authorization import at_topics
from ...core.vhost import VirtualHost
from ...hub.requests import Resource

_GONE = "the user who owns it no longer exists"
_NOBODY = "without credentials only external topics can be subscribed to"


class OwnerRights:
    """Implements the hub's `SubscriberRights` with the broker's users.

    The owner "" has the rights of `hub_user`, if that is set. Reasons are sent to callbacks, so
    they name no user.
    """

    def __init__(self, users: Users, vhosts: Mapping[str, VirtualHost], hub_user: str = "") -> None:
        self._users = users
        self._vhosts = vhosts
        self._hub_user = hub_user
        self._watched: dict[tuple[str, Callable[[str], None]], tuple[User, Callable[[], None]]] = {}

    def owner_refusal(self, owner: str) -> str | None:
        return _GONE if owner and self._user(owner) is None else None

    def read_refusal(self, owner: str, resource: Resource, routing_key: str) -> str | None:
        user = self._user(owner)
        if user is None:
            return _GONE if owner else _NOBODY
        return self._refuse(user, "read", resource, routing_key)

    def write_refusal(self, owner: str, resource: Resource, routing_key: str | None) -> str | None:
        user = self._user(owner)
        if user is None:
            return _GONE if owner else _NOBODY
        return self._refuse(user, "write", resource, routing_key)

    def watch(self, owner: str, changed: Callable[[str], None]) -> None:
        user, watched = self._user(owner), self._watched.get((owner, changed))
        if watched is not None and watched[0] is user:
            return
        self.unwatch(owner, changed)
        if user is not None:
            callback = partial(changed, owner)
            user.watch(callback)
            self._watched[owner, changed] = user, callback

    def unwatch(self, owner: str, changed: Callable[[str], None]) -> None:
        watched = self._watched.pop((owner, changed), None)
        if watched is not None:
            user, callback = watched
            user.unwatch(callback)

    def _user(self, owner: str) -> User | None:
        return self._users.get(owner or self._hub_user)

    def _refuse(
        self, user: User, access: TopicAccess, resource: Resource, routing_key: str | None
    ) -> str | None:
        vhost = self._vhosts.get(resource.vhost)
        if vhost is None:
            return f"the virtual host '{resource.vhost}' was deleted"
        if not user.permitted(resource.vhost, access, resource.name):
            return f"its owner may not {access} {resource}"
        if resource.kind == "x" and routing_key is not None:
            return self._refuse_key(user, access, resource, vhost, routing_key)
        return None

    def _refuse_key(
        self,
        user: User,
        access: TopicAccess,
        resource: Resource,
        vhost: VirtualHost,
        routing_key: str,
    ) -> str | None:
        exchange = vhost.exchanges.get(resource.name)
        if exchange is None:
            return None
        topics = at_topics(
            user, resource.vhost, resource.name, exchange.type_name, exchange.arguments
        )
        if topics is None or topics.allow(access, routing_key):
            return None
        return f"its owner may not {access} the key '{routing_key}' of {resource}"
