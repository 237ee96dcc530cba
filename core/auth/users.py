"""The users of a broker: adds, changes and removes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from ..resources.limits import USER_LIMITS, checked, merged
from . import hashes
from .errors import LastAdministrator, no_user
from .names import check_exchange, check_name
from .passwords import Passwords
from .permissions import Permissions, Rights, TopicPermissions, TopicRights
from .storage import UserStorage
from .throttle import Throttle
from .user import ADMINISTRATOR, Account, User


class Users:
    """The users by name; each change returns the commit number to wait for, 0 for none."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.storage: UserStorage | None = None
        self.on_removed: Callable[[User], None] = lambda _: None
        """Called with each user that is removed: the broker ends its connections."""
        self.version = 0
        """Grows with every change of any user."""
        self.throttle = Throttle(clock)
        """Limits failed logins."""
        self.passwords = Passwords(self, clock)
        self._accounts: dict[str, Account] = {}

    def __iter__(self) -> Iterator[User]:
        return (account.user for account in self._accounts.values())

    def get(self, name: str) -> User | None:
        account = self._accounts.get(name)
        return account.user if account is not None else None

    def existing(self, name: str) -> User:
        """Returns the user. Raises `Unknown`."""
        user = self.get(name)
        if user is None:
            raise no_user(name)
        return user

    def account(self, name: str) -> Account | None:
        return self._accounts.get(name)

    def password_hash(self, name: str) -> str:
        """Returns the stored hash (see `hashes.py`). Raises `Unknown`."""
        return self._accounts[self.existing(name).name].password_hash

    # -- changes of users

    def add(self, name: str, password: str, tags: Iterable[str] = ()) -> int:
        """Adds the user or replaces its password and tags; takes as long as a login."""
        return self.add_hashed(name, hashes.hashed(password), tags)

    def add_hashed(self, name: str, password_hash: str, tags: Iterable[str] = ()) -> int:
        """As `add` with a hash from `hashed` or `imported`; with an empty one nobody can log in.

        Raises `AuthError` for an invalid hash, name or tag, and `LastAdministrator` if the last
        administrator would lose that tag.
        """
        hashes.check(password_hash)
        tags = frozenset(tags)
        for text in (name, *tags):
            check_name(text)
        user = self.get(name) or User(name)
        self._check_remaining(user, tags)
        before, user.tags = user.tags, tags
        try:
            commit = 0 if self.storage is None else self.storage.save_user(user, password_hash)
        except BaseException:
            user.tags = before
            raise
        self._accounts[name] = Account(user, password_hash)
        self.passwords.forget(name)
        self.version += 1
        user.credentials_version += 1
        user.changed()
        return commit

    def replace_hash(self, account: Account, password_hash: str) -> Account | None:
        """Stores another hash of the same password, unless the account has changed or users are
        not stored; returns the new account."""
        user = account.user
        if self._accounts.get(user.name) is not account or self.storage is None:
            return None
        self.storage.save_user(user, password_hash)
        better = self._accounts[user.name] = Account(user, password_hash)
        return better

    def set_password(self, name: str, password_hash: str) -> int:
        """Replaces the password; connections stay. Raises `Unknown`, `AuthError` for no hash."""
        return self.add_hashed(name, password_hash, self.existing(name).tags)

    def set_tags(self, name: str, tags: Iterable[str]) -> int:
        """Replaces the tags. Raises as `add_hashed`, or `Unknown`."""
        return self.add_hashed(name, self.password_hash(name), tags)

    def remove(self, name: str) -> int:
        """Removes a user and closes its connections, in slices; an absent one is no error.

        Raises `LastAdministrator`.
        """
        user = self.get(name)
        if user is None:
            return 0
        self._check_remaining(user, frozenset())
        commit = 0 if self.storage is None else self.storage.delete_user(user)
        del self._accounts[name]
        self.passwords.forget(name)
        self.version += 1
        user.end()
        self.on_removed(user)
        return commit

    # -- permissions and limits

    def set_permissions(self, name: str, vhost: str, configure: str, write: str, read: str) -> int:
        """Replaces the permissions. Raises `Unknown`, `AuthError` for an invalid pattern."""
        user = self.existing(name)
        rights = Rights(Permissions(configure, write, read), name, vhost)
        commit = 0
        if self.storage is not None:
            commit = self.storage.save_permissions(user, vhost, rights.permissions)
        user.set_rights(vhost, rights)
        self.version += 1
        return commit

    def clear_permissions(self, name: str, vhost: str) -> int:
        """Removes the permissions, if any; connections stay, without rights.

        Raises `Unknown` for the user.
        """
        user = self.existing(name)
        commit = 0 if self.storage is None else self.storage.delete_permissions(user, vhost)
        user.set_rights(vhost, None)
        self.version += 1
        return commit

    def set_topic_permission(
        self, name: str, vhost: str, exchange: str, write: str, read: str
    ) -> int:
        """Sets the routing keys with which the user may publish to a topic exchange (write) and
        bind to it (read). The exchange need not exist. Raises as `set_permissions`, and `AuthError`
        for a name that no exchange can have.
        """
        user = self.existing(name)
        check_exchange(exchange)
        rights = TopicRights(TopicPermissions(write, read), name, vhost, exchange)
        commit = 0
        if self.storage is not None:
            commit = self.storage.save_topic_permission(user, vhost, exchange, write, read)
        user.set_topic_rights(vhost, exchange, rights)
        self.version += 1
        return commit

    def clear_topic_permissions(self, name: str, vhost: str, exchange: str | None = None) -> int:
        """Removes those for one exchange, or for all: every key is permitted then.

        Raises `Unknown` for the user.
        """
        user = self.existing(name)
        commit = 0
        for place in user.topic_permissions:
            if place[0] == vhost and exchange in (None, place[1]):
                if self.storage is not None:
                    commit = self.storage.delete_topic_permission(user, *place)
                user.set_topic_rights(*place, None)
        self.version += 1
        return commit

    def set_limits(self, name: str, limits: Mapping[str, int]) -> int:
        """Replaces `max-connections` and `max-channels`; -1 is no limit. Nobody is disconnected.

        Raises `Unknown`, and `ChannelError` 406 for an invalid limit.
        """
        user = self.existing(name)
        limits = checked(f"user '{name}'", USER_LIMITS, limits)
        commit = 0 if self.storage is None else self.storage.save_user_limits(user, limits)
        user.limits = limits
        return commit

    def set_limit(self, name: str, limit: str, value: int | None) -> int:
        """Sets one limit, None clears it. Raises as `set_limits`."""
        limits = self.existing(name).limits
        return self.set_limits(name, merged(f"user '{name}'", USER_LIMITS, limits, limit, value))

    def forget_vhost(self, vhost: str) -> None:
        """Removes all permissions in a deleted virtual host."""
        for user in self:
            if user.may_enter(vhost):
                self.clear_permissions(user.name, vhost)
            if any(place[0] == vhost for place in user.topic_permissions):
                self.clear_topic_permissions(user.name, vhost)

    def _check_remaining(self, user: User, tags: frozenset[str]) -> None:
        if ADMINISTRATOR not in user.tags or ADMINISTRATOR in tags:
            return
        if not any(ADMINISTRATOR in other.tags for other in self if other is not user):
            raise LastAdministrator(
                f"user '{user.name}' is the last one with the tag {ADMINISTRATOR}: give it to "
                f"another user first"
            )
