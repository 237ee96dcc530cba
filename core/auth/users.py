"""Changes of users: their passwords, tags, permissions and limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..resources.limits import USER_LIMITS, checked, merged
from . import hashes
from .accounts import Account, Accounts
from .errors import LastAdministrator
from .names import check_exchange, check_name
from .permissions import Permissions, Rights, TopicPermissions, TopicRights
from .user import ADMINISTRATOR, User


class Users(Accounts):
    """Whoever changes a user gets the commit number from which on the change outlives the process,
    0 if there is nothing to wait for.
    """

    # -- changes of users

    def add(self, name: str, password: str, tags: Iterable[str] = ()) -> int:
        """Adds the user or replaces its password and tags; takes as long as a login."""
        return self.add_hashed(name, hashes.hashed(password), tags)

    def add_hashed(self, name: str, password_hash: str, tags: Iterable[str] = ()) -> int:
        """As `add` with a hash as it is kept, from `hashed` or `imported`; with the empty one
        nobody logs in.

        Raises `AuthError` if it is none, or for a name or tag that can't be kept, and
        `LastAdministrator` if that user is it and would not be one any more.
        """
        hashes.check(password_hash)
        tags = frozenset(tags)
        for text in (name, *tags):
            check_name(text)
        user = self.get(name) or User(name)
        self._check_remaining(user, tags)
        before, user.tags = user.tags, tags
        try:
            commit = 0 if self.keeper is None else self.keeper.keep_user(user, password_hash)
        except BaseException:
            user.tags = before
            raise
        self.store(Account(user, password_hash))
        return commit

    def set_password(self, name: str, password_hash: str) -> int:
        """Who is connected stays so. Raises `Unknown`, `AuthError` for what is no hash."""
        return self.add_hashed(name, password_hash, self.existing(name).tags)

    def set_tags(self, name: str, tags: Iterable[str]) -> int:
        """In place of those before. Raises as `add_hashed`, or `Unknown`."""
        return self.add_hashed(name, self.password_hash(name), tags)

    def remove(self, name: str) -> int:
        """Does nothing if there is no such user; what is connected as it is not heard any more, and
        is told and disconnected in slices.

        Raises `LastAdministrator`.
        """
        user = self.get(name)
        if user is None:
            return 0
        self._check_remaining(user, frozenset())
        commit = 0 if self.keeper is None else self.keeper.end_user(user)
        del self._accounts[name]
        self._verified.pop(name, None)
        self.version += 1
        user.end()
        self.on_removed(user)
        return commit

    # -- what they may do

    def set_permissions(self, name: str, vhost: str, configure: str, write: str, read: str) -> int:
        """Raises `Unknown`, and `AuthError` for a pattern that the engine refuses."""
        user = self.existing(name)
        rights = Rights(Permissions(configure, write, read))
        commit = 0
        if self.keeper is not None:
            commit = self.keeper.keep_permissions(user, vhost, rights.permissions)
        user.set_rights(vhost, rights)
        self.version += 1
        return commit

    def clear_permissions(self, name: str, vhost: str) -> int:
        """There need not be any; who is in the virtual host stays there and may do nothing.

        Raises `Unknown` for the user.
        """
        user = self.existing(name)
        commit = 0 if self.keeper is None else self.keeper.end_permissions(user, vhost)
        user.set_rights(vhost, None)
        self.version += 1
        return commit

    def set_topic_permission(
        self, name: str, vhost: str, exchange: str, write: str, read: str
    ) -> int:
        """Which routing keys the user may publish with to a topic exchange (write), and bind to it
        (read). The exchange need not exist. Raises as `set_permissions`, and `AuthError` for a name
        that no exchange can have.
        """
        user = self.existing(name)
        check_exchange(exchange)
        rights = TopicRights(TopicPermissions(write, read), name, vhost, exchange)
        commit = 0
        if self.keeper is not None:
            commit = self.keeper.keep_topic_permission(user, vhost, exchange, write, read)
        user.set_topic_rights(vhost, exchange, rights)
        self.version += 1
        return commit

    def clear_topic_permissions(self, name: str, vhost: str, exchange: str | None = None) -> int:
        """Those for one exchange, or for all of the virtual host: every key is permitted then.

        Raises `Unknown` for the user.
        """
        user = self.existing(name)
        commit = 0
        for place in user.topic_permissions:
            if place[0] == vhost and exchange in (None, place[1]):
                if self.keeper is not None:
                    commit = self.keeper.end_topic_permission(user, *place)
                user.set_topic_rights(*place, None)
        self.version += 1
        return commit

    def set_limits(self, name: str, limits: Mapping[str, int]) -> int:
        """`max-connections` and `max-channels` in place of those before; -1 is no limit. They
        concern who comes: nobody is disconnected.

        Raises `Unknown`, and `ChannelError` 406 for what is no limit of a user.
        """
        user = self.existing(name)
        limits = checked(f"user '{name}'", USER_LIMITS, limits)
        commit = 0 if self.keeper is None else self.keeper.keep_user_limits(user, limits)
        user.limits = limits
        return commit

    def set_limit(self, name: str, limit: str, value: int | None) -> int:
        """One of them, None clears it. Raises as `set_limits`."""
        limits = self.existing(name).limits
        return self.set_limits(name, merged(f"user '{name}'", USER_LIMITS, limits, limit, value))

    def forget_vhost(self, vhost: str) -> None:
        """Ends all permissions in a virtual host that goes."""
        for user in self:
            if user.may_enter(vhost):
                self.clear_permissions(user.name, vhost)
            if any(place[0] == vhost for place in user.topic_permissions):
                self.clear_topic_permissions(user.name, vhost)

    # -- inside

    def _check_remaining(self, user: User, tags: frozenset[str]) -> None:
        if ADMINISTRATOR not in user.tags or ADMINISTRATOR in tags:
            return
        if not any(ADMINISTRATOR in other.tags for other in self if other is not user):
            raise LastAdministrator(
                f"user '{user.name}' is the last one with the tag {ADMINISTRATOR}: give it to "
                f"another user first"
            )
