"""Who may log in, and what changes of users do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from warrenmq.core.auth import (
    AuthError,
    LastAdministrator,
    Permissions,
    Unknown,
    User,
    Users,
    hashed,
    hashes,
    imported,
)
from warrenmq.core.auth.hashes import SHA256
from warrenmq.core.errors import ChannelError

from .conftest import Clock
from .test_hashes import OF_RABBITMQ

Change = Callable[[], int]


@dataclass
class NotingKeeper:
    """Writes down what it is to keep; may refuse."""

    kept: list[tuple[Any, ...]] = field(default_factory=list)
    error: Exception | None = None

    def _note(self, *what: Any) -> int:
        if self.error is not None:
            raise self.error
        self.kept.append(what)
        return len(self.kept)

    def keep_user(self, user: User, password_hash: str) -> int:
        return self._note("user", user.name, password_hash, sorted(user.tags))

    def end_user(self, user: User) -> int:
        return self._note("end", user.name)

    def keep_permissions(self, user: User, vhost: str, permissions: Permissions) -> int:
        return self._note("permissions", user.name, vhost, permissions)

    def end_permissions(self, user: User, vhost: str) -> int:
        return self._note("end permissions", user.name, vhost)

    def keep_topic_permission(
        self, user: User, vhost: str, exchange: str, write: str, read: str
    ) -> int:
        return self._note("topic", user.name, vhost, exchange, write, read)

    def end_topic_permission(self, user: User, vhost: str, exchange: str) -> int:
        return self._note("end topic", user.name, vhost, exchange)

    def keep_user_limits(self, user: User, limits: Any) -> int:
        return self._note("limits", user.name, dict(limits))


@pytest.fixture
def keeper(users: Users) -> NotingKeeper:
    users.keeper = NotingKeeper()
    return users.keeper


class TestPasswords:
    def test_right_one(self, users: Users, tony: User) -> None:
        assert users.check("tony", "secret", loopback=False) is tony

    @pytest.mark.parametrize("password", ["", "Secret", "secret ", "secret\0", "\udcff"])
    def test_wrong_one(self, users: Users, tony: User, password: str) -> None:
        assert users.check("tony", password, loopback=True) is None

    def test_an_unknown_user_costs_a_hash_too(
        self, users: Users, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        checked: list[str | None] = []

        def matches(kept: str | None, password: str) -> bool:
            checked.append(kept)
            return True

        monkeypatch.setattr(hashes, "matches", matches)
        assert users.check("nobody", "secret", loopback=True) is None
        assert checked == [None]

    def test_guest_only_from_loopback(self, users: Users) -> None:
        assert users.check("guest", "guest", loopback=False) is None
        assert users.known("guest", "guest", loopback=True) is users.get("guest")
        assert users.known("guest", "guest", loopback=False) is None

    def test_a_hash_from_elsewhere(self, users: Users) -> None:
        users.add_hashed("evan", users.password_hash("guest"))
        assert users.check("evan", "guest", loopback=False) is users.get("evan")

    def test_no_hash(self, users: Users) -> None:
        with pytest.raises(AuthError, match="not an argon2 hash"):
            users.add_hashed("evan", "secret")
        assert users.get("evan") is None

    def test_nobody_logs_in_without_a_password(self, users: Users) -> None:
        users.add_hashed("evan", "")
        assert users.check("evan", "", loopback=True) is None
        assert users.check("evan", "secret", loopback=True) is None
        with pytest.raises(AuthError, match="an empty password"):
            users.add("evan", "")


@pytest.mark.parametrize("algorithm", OF_RABBITMQ)
class TestHashesOfRabbitMQ:
    def test_the_password_is_hashed_anew_when_it_was_right(
        self, users: Users, keeper: NotingKeeper, algorithm: str
    ) -> None:
        users.add_hashed("evan", imported(OF_RABBITMQ[algorithm], algorithm), ["monitoring"])
        evan, version = users.existing("evan"), users.existing("evan").version
        assert users.check("evan", "wrong", loopback=True) is None
        users.keep_better_hashes()
        assert hashes.is_foreign(users.password_hash("evan"))
        assert users.check("evan", "secret", loopback=True) is evan
        users.keep_better_hashes()
        better = users.password_hash("evan")
        assert better.startswith("$argon2id$")
        assert keeper.kept[-1] == ("user", "evan", better, ["monitoring"])
        # The password is the same: who is connected, or remembered, stays so.
        assert evan.version == version
        assert users.known("evan", "secret", loopback=True) is evan
        assert users.check("evan", "secret", loopback=True) is evan
        kept = len(keeper.kept)
        users.keep_better_hashes()
        assert len(keeper.kept) == kept

    def test_not_where_nothing_is_kept(self, users: Users, algorithm: str) -> None:
        users.add_hashed("evan", imported(OF_RABBITMQ[algorithm], algorithm))
        assert users.check("evan", "secret", loopback=True)
        users.keep_better_hashes()
        assert hashes.is_foreign(users.password_hash("evan"))

    def test_not_over_a_password_that_was_set_meanwhile(
        self, users: Users, keeper: NotingKeeper, algorithm: str
    ) -> None:
        users.add_hashed("evan", imported(OF_RABBITMQ[algorithm], algorithm))
        users.check("evan", "secret", loopback=True)
        users.set_password("evan", hashed("other"))
        users.keep_better_hashes()
        assert users.check("evan", "other", loopback=True)
        assert not users.check("evan", "secret", loopback=True)


class TestChangesWhileAPasswordIsChecked:
    @pytest.fixture
    def meanwhile(self, monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
        """What happens during the next checks, one each."""
        changes: list[Callable[[], object]] = []
        matches = hashes.matches

        def slow(kept: str | None, password: str) -> bool:
            found = matches(kept, password)
            if changes:
                changes.pop(0)()
            return found

        monkeypatch.setattr(hashes, "matches", slow)
        return changes

    def test_a_better_hash_refuses_nobody(
        self, users: Users, keeper: NotingKeeper, meanwhile: list[Callable[[], object]]
    ) -> None:
        """Two who log in at the same time from two places: one of them improves the hash."""
        users.add_hashed("evan", imported(OF_RABBITMQ[SHA256]))

        def other() -> None:
            assert users.check("evan", "secret", loopback=False)
            users.keep_better_hashes()

        meanwhile.append(other)
        assert users.check("evan", "secret", loopback=False) is users.get("evan")

    def test_new_tags_refuse_nobody(
        self, users: Users, tony: User, meanwhile: list[Callable[[], object]]
    ) -> None:
        meanwhile.append(lambda: users.set_tags("tony", []))
        assert users.check("tony", "secret", loopback=False) is tony

    def test_an_old_password_is_wrong(
        self, users: Users, tony: User, meanwhile: list[Callable[[], object]]
    ) -> None:
        meanwhile.append(lambda: users.set_password("tony", hashed("other")))
        assert users.check("tony", "secret", loopback=False) is None

    def test_who_was_removed_is_nobody(
        self, users: Users, tony: User, meanwhile: list[Callable[[], object]]
    ) -> None:
        meanwhile.append(lambda: users.remove("tony"))
        assert users.check("tony", "secret", loopback=False) is None


class TestKnown:
    def test_nothing_before_a_check(self, users: Users, tony: User) -> None:
        assert users.known("tony", "secret", loopback=True) is None

    def test_for_a_minute_after(self, users: Users, tony: User, clock: Clock) -> None:
        users.check("tony", "secret", loopback=True)
        clock.now += 59
        assert users.known("tony", "secret", loopback=True) is tony
        assert users.known("tony", "other", loopback=True) is None
        clock.now += 2
        assert users.known("tony", "secret", loopback=True) is None

    def test_not_after_a_failed_check(self, users: Users, tony: User) -> None:
        users.check("tony", "wrong", loopback=True)
        assert users.known("tony", "wrong", loopback=True) is None

    def test_not_after_a_new_password(self, users: Users, tony: User) -> None:
        users.check("tony", "secret", loopback=True)
        users.add("tony", "other")
        assert users.get("tony") is tony
        assert users.known("tony", "secret", loopback=True) is None

    def test_not_after_removal(self, users: Users, tony: User) -> None:
        users.check("tony", "secret", loopback=True)
        users.remove("tony")
        assert users.known("tony", "secret", loopback=True) is None
        assert users.check("tony", "secret", loopback=True) is None


class TestTags:
    def test_of_rabbitmq_and_others(self, users: Users, tony: User) -> None:
        tags = {"administrator", "monitoring", "policymaker", "management", "impersonator", "mine"}
        users.set_tags("tony", tags)
        assert tony.tags == tags
        assert users.check("tony", "secret", loopback=True) is tony

    def test_adding_replaces_them(self, users: Users, tony: User) -> None:
        users.add("tony", "secret")
        assert tony.tags == frozenset()

    def test_setting_a_password_does_not(self, users: Users, tony: User) -> None:
        users.set_password("tony", hashed("other"))
        assert tony.tags == {"management"}
        assert users.check("tony", "other", loopback=True) is tony


class TestTheLastAdministrator:
    def test_can_not_be_removed(self, users: Users, tony: User) -> None:
        with pytest.raises(LastAdministrator, match="'guest' is the last one with the tag admin"):
            users.remove("guest")
        assert users.existing("guest").may_enter("/")

    def test_can_not_lose_the_tag(self, users: Users, tony: User) -> None:
        guest = users.existing("guest")
        changes: list[Change] = [
            lambda: users.set_tags("guest", ["monitoring"]),
            lambda: users.add("guest", "guest"),
            lambda: users.add_hashed("guest", ""),
        ]
        for change in changes:
            with pytest.raises(LastAdministrator):
                change()
        assert guest.tags == {"administrator"}
        assert users.check("guest", "guest", loopback=True) is guest

    def test_can_when_there_is_another(self, users: Users, tony: User) -> None:
        users.set_tags("tony", ["administrator"])
        users.remove("guest")
        assert [user.name for user in users] == ["tony"]
        with pytest.raises(LastAdministrator):
            users.remove("tony")


class TestRemoval:
    def test_it_loses_every_right(self, users: Users, tony: User) -> None:
        users.set_permissions("tony", "/", ".*", ".*", ".*")
        users.set_topic_permission("tony", "/", "x", ".*", ".*")
        users.set_limits("tony", {"max-channels": 5})
        users.remove("tony")
        users.remove("tony")
        assert tony.removed
        assert not tony.permitted("/", "read", "news")
        assert (tony.tags, tony.permissions, tony.topic_permissions) == (frozenset(), {}, {})
        assert users.get("tony") is None
        assert [user.name for user in users] == ["guest"]

    def test_one_of_the_same_name_is_somebody_else(self, users: Users, tony: User) -> None:
        users.set_permissions("tony", "/", ".*", ".*", ".*")
        users.remove("tony")
        users.add("tony", "secret")
        assert users.get("tony") is not tony
        assert not users.existing("tony").may_enter("/")

    def test_of_a_vhost_ends_the_permissions_in_it(
        self, users: Users, tony: User, keeper: NotingKeeper
    ) -> None:
        users.set_permissions("tony", "v", "", "", "")
        users.set_topic_permission("tony", "v", "x", "", "")
        users.set_topic_permission("guest", "v", "x", "", "")
        users.set_topic_permission("guest", "/", "x", "", "")
        users.forget_vhost("v")
        assert not tony.may_enter("v")
        assert tony.topic_permissions == {}
        assert set(users.existing("guest").topic_permissions) == {("/", "x")}
        assert users.existing("guest").may_enter("/")
        assert keeper.kept[-3:] == [
            ("end topic", "guest", "v", "x"),
            ("end permissions", "tony", "v"),
            ("end topic", "tony", "v", "x"),
        ]


class TestLimits:
    def test_replaced_changed_and_cleared(self, users: Users, tony: User) -> None:
        users.set_limits("tony", {"max-connections": 1})
        users.set_limits("tony", {"max-channels": 5})
        assert tony.limits == {"max-channels": 5}
        users.set_limit("tony", "max-connections", -1)
        assert tony.limits == {"max-channels": 5, "max-connections": -1}
        users.set_limit("tony", "max-channels", None)
        users.set_limit("tony", "max-channels", None)
        assert tony.limits == {"max-connections": -1}

    def test_what_is_none(self, users: Users, tony: User, keeper: NotingKeeper) -> None:
        with pytest.raises(ChannelError, match="user 'tony' has no limit 'max-queues'"):
            users.set_limits("tony", {"max-channels": 1, "max-queues": 1})
        with pytest.raises(ChannelError, match="user 'tony' has no limit 'max-queues'"):
            users.set_limit("tony", "max-queues", None)
        assert (tony.limits, keeper.kept) == ({}, [])


class TestKeeping:
    def test_every_change_is_kept(self, users: Users, keeper: NotingKeeper, tony: User) -> None:
        del keeper.kept[:]
        kept_hash = users.password_hash("tony")
        commits = [
            users.set_tags("tony", ["a"]),
            users.set_permissions("tony", "/", "a", "b", "c"),
            users.set_topic_permission("tony", "/", "x", "a", "b"),
            users.set_limits("tony", {"max-channels": 5}),
            users.clear_permissions("tony", "/"),
            users.clear_topic_permissions("tony", "/"),
            users.remove("tony"),
        ]
        assert commits == [1, 2, 3, 4, 5, 6, 7]
        assert keeper.kept == [
            ("user", "tony", kept_hash, ["a"]),
            ("permissions", "tony", "/", Permissions("a", "b", "c")),
            ("topic", "tony", "/", "x", "a", "b"),
            ("limits", "tony", {"max-channels": 5}),
            ("end permissions", "tony", "/"),
            ("end topic", "tony", "/", "x"),
            ("end", "tony"),
        ]

    def test_what_can_not_be_kept_is_not_done(
        self, users: Users, tony: User, keeper: NotingKeeper
    ) -> None:
        keeper.error = AuthError("no")
        changes: list[Change] = [
            lambda: users.set_tags("tony", []),
            lambda: users.set_permissions("tony", "/", "", "", ""),
            lambda: users.set_topic_permission("tony", "/", "x", "", ""),
            lambda: users.set_limits("tony", {"max-channels": 1}),
            lambda: users.remove("tony"),
        ]
        for change in changes:
            with pytest.raises(AuthError, match="no"):
                change()
        assert tony.tags == {"management"}
        assert tony.permissions == {}
        assert (tony.topic_permissions, tony.limits) == ({}, {})
        assert users.get("tony") is tony

    def test_unknown_user(self, users: Users) -> None:
        changes: list[Callable[[], object]] = [
            lambda: users.set_permissions("nobody", "/", "", "", ""),
            lambda: users.clear_permissions("nobody", "/"),
            lambda: users.set_topic_permission("nobody", "/", "x", "", ""),
            lambda: users.clear_topic_permissions("nobody", "/"),
            lambda: users.set_limits("nobody", {}),
            lambda: users.set_limit("nobody", "max-channels", 1),
            lambda: users.set_tags("nobody", []),
            lambda: users.set_password("nobody", ""),
            lambda: users.password_hash("nobody"),
        ]
        for change in changes:
            with pytest.raises(Unknown, match="no user 'nobody'"):
                change()

    @pytest.mark.parametrize("name", ["", "\udcff", "x" * 1025])
    def test_bad_name_or_tag(self, users: Users, name: str) -> None:
        with pytest.raises(AuthError):
            users.add(name, "secret")
        with pytest.raises(AuthError):
            users.add("evan", "secret", [name])
        assert users.get("evan") is None
