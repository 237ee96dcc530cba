"""Password checks, and changes of users."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import Mock

import pytest

from warrenmq.core.auth import (
    AuthError,
    LastAdministrator,
    User,
    Users,
    hashed,
    hashes,
    imported,
)
from warrenmq.core.auth.hashes import SHA256
from warrenmq.core.definitions.user_writer import UserWriter

from .conftest import Clock
from .test_hashes import OF_RABBITMQ

Change = Callable[[], int]


@pytest.fixture
def storage(users: Users) -> Mock:
    """Stores nothing; the calls are noted."""
    users.storage = Mock(spec_set=UserWriter)
    return users.storage


class TestPasswords:
    @pytest.mark.parametrize("password", ["", "Secret", "secret ", "secret\0", "\udcff"])
    def test_wrong_password_is_refused(self, users: Users, tony: User, password: str) -> None:
        assert users.passwords.check("tony", password, loopback=True) is None

    def test_an_unknown_user_costs_a_hash_too(
        self, users: Users, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        checked: list[str | None] = []

        def matches(kept: str | None, password: str) -> bool:
            checked.append(kept)
            return True

        monkeypatch.setattr(hashes, "matches", matches)
        assert users.passwords.check("nobody", "secret", loopback=True) is None
        assert checked == [None]

    def test_guest_logs_in_from_loopback_only(self, users: Users) -> None:
        assert users.passwords.check("guest", "guest", loopback=False) is None
        assert users.passwords.known("guest", "guest", loopback=True) is users.get("guest")
        assert users.passwords.known("guest", "guest", loopback=False) is None

    def test_account_without_a_hash_refuses_every_password(self, users: Users) -> None:
        with pytest.raises(AuthError, match="not an argon2 hash"):
            users.add_hashed("evan", "secret")
        assert users.get("evan") is None


@pytest.mark.parametrize("algorithm", OF_RABBITMQ)
class TestHashesOfRabbitMQ:
    def test_right_password_replaces_a_foreign_hash(
        self, users: Users, storage: Mock, algorithm: str
    ) -> None:
        users.add_hashed("evan", imported(OF_RABBITMQ[algorithm], algorithm), ["monitoring"])
        evan, version = users.existing("evan"), users.existing("evan").version
        assert users.passwords.check("evan", "wrong", loopback=True) is None
        users.passwords.store_better_hashes()
        assert hashes.is_foreign(users.password_hash("evan"))
        assert users.passwords.check("evan", "secret", loopback=True) is evan
        users.passwords.store_better_hashes()
        better = users.password_hash("evan")
        assert better.startswith("$argon2id$")
        storage.save_user.assert_called_with(evan, better)
        # The password is the same: who is connected, or remembered, stays so.
        assert evan.version == version
        assert users.passwords.known("evan", "secret", loopback=True) is evan
        assert users.passwords.check("evan", "secret", loopback=True) is evan
        calls = storage.save_user.call_count
        users.passwords.store_better_hashes()
        assert storage.save_user.call_count == calls

    def test_users_without_storage_keep_their_hash(self, users: Users, algorithm: str) -> None:
        users.add_hashed("evan", imported(OF_RABBITMQ[algorithm], algorithm))
        assert users.passwords.check("evan", "secret", loopback=True)
        users.passwords.store_better_hashes()
        assert hashes.is_foreign(users.password_hash("evan"))

    def test_rehash_does_not_replace_a_newer_password(
        self, users: Users, storage: Mock, algorithm: str
    ) -> None:
        users.add_hashed("evan", imported(OF_RABBITMQ[algorithm], algorithm))
        users.passwords.check("evan", "secret", loopback=True)
        users.set_password("evan", hashed("other"))
        users.passwords.store_better_hashes()
        assert users.passwords.check("evan", "other", loopback=True)
        assert not users.passwords.check("evan", "secret", loopback=True)


class TestChangesWhileAPasswordIsChecked:
    @pytest.fixture
    def meanwhile(self, monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
        """Functions called during the next checks, one in each."""
        changes: list[Callable[[], object]] = []
        matches = hashes.matches

        def slow(kept: str | None, password: str) -> bool:
            found = matches(kept, password)
            if changes:
                changes.pop(0)()
            return found

        monkeypatch.setattr(hashes, "matches", slow)
        return changes

    def test_rehash_refuses_no_login(
        self, users: Users, storage: Mock, meanwhile: list[Callable[[], object]]
    ) -> None:
        """Two who log in at the same time from two places: one of them improves the hash."""
        users.add_hashed("evan", imported(OF_RABBITMQ[SHA256]))

        def other() -> None:
            assert users.passwords.check("evan", "secret", loopback=False)
            users.passwords.store_better_hashes()

        meanwhile.append(other)
        assert users.passwords.check("evan", "secret", loopback=False) is users.get("evan")

    @pytest.mark.parametrize(
        ("change", "is_known"),
        [
            (lambda users: users.set_tags("tony", []), True),
            (lambda users: users.set_password("tony", hashed("other")), False),
            (lambda users: users.remove("tony"), False),
        ],
        ids=["other tags", "another password", "removed"],
    )
    def test_login_is_refused_only_after_a_change_of_the_password(
        self,
        users: Users,
        tony: User,
        meanwhile: list[Callable[[], object]],
        change: Callable[[Users], object],
        is_known: bool,
    ) -> None:
        meanwhile.append(lambda: change(users))
        found = users.passwords.check("tony", "secret", loopback=False)
        assert found is (tony if is_known else None)


class TestKnown:
    def test_verified_password_is_cached_for_a_minute(
        self, users: Users, tony: User, clock: Clock
    ) -> None:
        users.passwords.check("tony", "secret", loopback=True)
        clock.now += 60
        assert users.passwords.known("tony", "secret", loopback=True) is tony
        assert users.passwords.known("tony", "other", loopback=True) is None
        clock.now += 2
        assert users.passwords.known("tony", "secret", loopback=True) is None


class TestTags:
    def test_setting_a_password_keeps_the_tags(self, users: Users, tony: User) -> None:
        users.set_password("tony", hashed("other"))
        assert tony.tags == {"management"}
        assert users.passwords.check("tony", "other", loopback=True) is tony


class TestTheLastAdministrator:
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
        assert users.passwords.check("guest", "guest", loopback=True) is guest


class TestRemoval:
    def test_removed_user_loses_every_right(self, users: Users, tony: User) -> None:
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

    def test_deleting_a_vhost_removes_its_permissions(
        self, users: Users, tony: User, storage: Mock
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
        names = [call[0] for call in storage.method_calls[-3:]]
        assert names == ["delete_topic_permission", "delete_permissions", "delete_topic_permission"]


class TestKeeping:
    def test_change_that_can_not_be_stored_is_not_made(
        self, users: Users, tony: User, storage: Mock
    ) -> None:
        for name in (
            "save_user",
            "save_permissions",
            "save_topic_permission",
            "delete_user",
            "save_user_limits",
        ):
            getattr(storage, name).side_effect = AuthError("no")
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

    @pytest.mark.parametrize("name", ["", "\udcff", "x" * 1025])
    def test_invalid_name_or_tag_is_refused(self, users: Users, name: str) -> None:
        with pytest.raises(AuthError):
            users.add(name, "secret")
        with pytest.raises(AuthError):
            users.add("evan", "secret", [name])
        assert users.get("evan") is None
