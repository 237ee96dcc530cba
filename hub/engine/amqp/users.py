"""Copies the cluster's users, with their password hashes and permissions, to those of this process.

So RabbitMQ's users log in at the hub, and have the permissions that they have there.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ....core.auth import AuthError, TopicPermissions, Users, imported

Entry = Mapping[str, Any]
Place = tuple[str, str]
NO_KEY: Final = "{client_id}"
"""A pattern of routing keys that permits none: only MQTT clients have a client id."""

log = logging.getLogger(__name__)


class UserCopies:
    """The copies; `own` is the user of the hub itself, who is copied first: one administrator has
    to be there at any time."""

    def __init__(self, users: Users, own: str) -> None:
        self._users = users
        self._own = own
        self._refused: set[tuple[str, ...]] = set()

    def update(
        self, users: Sequence[Entry], permissions: Sequence[Entry], topics: Sequence[Entry]
    ) -> None:
        """Makes the copies equal to what RabbitMQ has; who has not changed is not touched."""
        names = {one["name"] for one in users}
        for one in sorted(users, key=lambda one: one["name"] != self._own):
            self._put(one)
        for user in tuple(self._users):
            if user.name not in names:
                self._users.remove(user.name)
        self._put_permissions(permissions)
        self._put_topics(topics)

    def _put(self, entry: Entry) -> None:
        name, tags = entry["name"], entry["tags"]
        wanted = frozenset(tags if isinstance(tags, list) else filter(None, tags.split(",")))
        try:
            password_hash = imported(entry["password_hash"], entry.get("hashing_algorithm"))
        except AuthError as error:
            self._report(("hash", name), f"user '{name}' can't log in here: {error}")
            password_hash = ""
        account = self._users.account(name)
        now = account and (account.password_hash, account.user.tags)
        if now == (password_hash, wanted):
            return
        try:
            self._users.add_hashed(name, password_hash, wanted)
        except AuthError as error:
            self._report(("user", name), f"user '{name}' is unknown here: {error}")

    def _put_permissions(self, entries: Sequence[Entry]) -> None:
        wanted: dict[str, dict[str, tuple[str, str, str]]] = defaultdict(dict)
        for one in entries:
            wanted[one["user"]][one["vhost"]] = one["configure"], one["write"], one["read"]
        for user in tuple(self._users):
            now = {vhost: tuple(found) for vhost, found in user.permissions.items()}
            for vhost, patterns in wanted[user.name].items():
                if now.pop(vhost, None) != patterns:
                    self._set_permissions(user.name, vhost, patterns)
            for vhost in now:
                self._users.clear_permissions(user.name, vhost)

    def _set_permissions(self, name: str, vhost: str, patterns: tuple[str, str, str]) -> None:
        try:
            self._users.set_permissions(name, vhost, *patterns)
        except AuthError as error:
            if self._users.existing(name).may_enter(vhost):
                self._users.clear_permissions(name, vhost)
            text = f"user '{name}' has no permissions in vhost '{vhost}' here: {error}"
            self._report(("permissions", name, vhost, *patterns), text)

    def _put_topics(self, entries: Sequence[Entry]) -> None:
        wanted: dict[str, dict[Place, tuple[str, str]]] = defaultdict(dict)
        for one in entries:
            wanted[one["user"]][one["vhost"], one["exchange"]] = one["write"], one["read"]
        for user in tuple(self._users):
            now = {place: tuple(found) for place, found in user.topic_permissions.items()}
            for place, patterns in wanted[user.name].items():
                if now.pop(place, None) != patterns:
                    self._set_topics(user.name, place, patterns)
            for vhost, exchange in now:
                self._users.clear_topic_permissions(user.name, vhost, exchange)

    def _set_topics(self, name: str, place: Place, patterns: tuple[str, str]) -> None:
        try:
            self._users.set_topic_permission(name, *place, *patterns)
        except AuthError as error:
            none = TopicPermissions(NO_KEY, NO_KEY)
            if self._users.existing(name).topic_permissions.get(place) != none:
                self._users.set_topic_permission(name, *place, *none)
            text = f"user '{name}' has no topic permissions at exchange '{place[1]}' here: {error}"
            self._report(("topics", name, *place, *patterns), text)

    def _report(self, what: tuple[str, ...], text: str) -> None:
        """Logs it once: it is found anew every few seconds."""
        if what not in self._refused:
            self._refused.add(what)
            log.warning("RabbitMQ's %s", text)
