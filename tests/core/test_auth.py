"""Users, passwords, permissions (AMQP 0-9-1 as RabbitMQ extends it: access control)."""

from __future__ import annotations

import pytest

from tests.support.users import guest_users
from warren.core import auth
from warren.core.auth import AuthError, User, Users
from warren.core.errors import ChannelError


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "ARGON2_MEMORY_KIB", 8)
    monkeypatch.setattr(auth, "ARGON2_TIME_COST", 1)


@pytest.fixture
def users(clock: Clock) -> Users:
    return guest_users(clock)


@pytest.fixture
def tony(users: Users) -> User:
    users.add("tony", "secret", ["management"])
    found = users.get("tony")
    assert found is not None
    return found


def test_parameters_are_those_of_the_threat_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    users = Users()
    users.add("admin", "secret")
    assert users.password_hash("admin").startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert auth._NOBODY_HASH.startswith("$argon2id$v=19$m=19456,t=2,p=1$")


class TestPasswords:
    def test_right_one(self, users: Users, tony: User) -> None:
        assert users.check("tony", "secret", loopback=False) is tony

    @pytest.mark.parametrize("password", ["", "Secret", "secret ", "secret\0", "\udcff"])
    def test_wrong_one(self, users: Users, tony: User, password: str) -> None:
        assert users.check("tony", password, loopback=True) is None

    def test_unknown_user_costs_a_hash_too(
        self, users: Users, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        checked: list[str] = []
        matches = auth._matches
        monkeypatch.setattr(
            auth,
            "_matches",
            lambda h, p: checked.append(h) or matches(h, p),  # type: ignore[func-returns-value]
        )
        assert users.check("nobody", "secret", loopback=True) is None
        assert checked == [auth._NOBODY_HASH]

    def test_guest_only_from_loopback(self, users: Users) -> None:
        assert users.check("guest", "guest", loopback=False) is None
        assert users.known("guest", "guest", loopback=True) is users.get("guest")
        assert users.known("guest", "guest", loopback=False) is None

    def test_hash_from_elsewhere(self, users: Users) -> None:
        users.add_hashed("evan", users.password_hash("guest"))
        assert users.check("evan", "guest", loopback=False) is users.get("evan")

    @pytest.mark.parametrize("password_hash", ["", "secret", "$2b$12$abc", "$argon2id$v=19$x$y$z"])
    def test_no_hash(self, users: Users, password_hash: str) -> None:
        with pytest.raises(AuthError, match="not an argon2 hash"):
            users.add_hashed("evan", password_hash)

    @pytest.mark.parametrize(("usual", "absurd"), [("m=19456", "m=4194304"), ("t=2", "t=1000000")])
    def test_hash_that_would_stop_the_server(self, users: Users, usual: str, absurd: str) -> None:
        with pytest.raises(AuthError, match="the password hash asks for"):
            users.add_hashed("evan", auth._NOBODY_HASH.replace(usual, absurd))


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


class TestPermissions:
    def test_default_user_may_do_all_in_the_first_vhost_only(self, users: Users) -> None:
        guest = users.get("guest")
        assert guest is not None
        assert guest.may_enter("/")
        assert guest.permitted("/", "configure", "any")
        assert not guest.may_enter("other")
        assert not guest.permitted("other", "read", "any")

    @pytest.mark.parametrize(
        ("pattern", "name", "answer"),
        [
            ("", "a", False),
            ("", "", False),
            (".*", "", True),
            ("^$", "a", False),
            ("ew", "news", True),
            ("^news$", "news", True),
            ("^news$", "newsx", False),
            ("^(news|mail)-", "mail-eu", True),
            ("^a.b$", "a\nb", True),
            ("^caf\u00e9", "caf\u00e9-1", True),
            ("^amq\\.default$", "", True),
        ],
    )
    def test_pattern(self, users: Users, tony: User, pattern: str, name: str, answer: bool) -> None:
        users.set_permissions("tony", "/", "", "", pattern)
        assert tony.permitted("/", "read", name) is answer
        assert tony.permitted("/", "read", name) is answer
        assert not tony.permitted("/", "write", name)

    def test_each_access_has_its_own(self, users: Users, tony: User) -> None:
        users.set_permissions("tony", "/", "^c", "^w", "^r")
        allowed = [
            (access, name)
            for access in ("configure", "write", "read")
            for name in "cwr"
            if tony.permitted("/", access, name)
        ]
        assert allowed == [("configure", "c"), ("write", "w"), ("read", "r")]

    def test_refusal_text(self, tony: User) -> None:
        with pytest.raises(ChannelError) as refusal:
            tony.require("v", "configure", "queue", "n")
        assert refusal.value.code == 403
        assert refusal.value.reply_text == (
            "ACCESS_REFUSED - configure access to queue 'n' in vhost 'v' refused for user 'tony'"
        )

    def test_default_exchange_has_a_name_in_texts(self, tony: User) -> None:
        with pytest.raises(ChannelError, match="write access to exchange 'amq.default' in vhost"):
            tony.require("/", "write", "exchange", "")

    @pytest.mark.parametrize("pattern", ["(a", "a{2,1}", "(?=a)", "x" * 257, "\\1"])
    def test_bad_pattern(
        self, users: Users, tony: User, pattern: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(AuthError, match="pattern"):
            users.set_permissions("tony", "/", ".*", ".*", pattern)
        assert not tony.may_enter("/")
        assert capfd.readouterr().err == ""

    def test_runaway_pattern_is_linear(self, users: Users, tony: User) -> None:
        users.set_permissions("tony", "/", "", "", "(a+)+$")
        assert tony.permitted("/", "read", "a" * 255 + "!") is False

    def test_unknown_user(self, users: Users) -> None:
        with pytest.raises(AuthError, match="no user 'nobody'"):
            users.set_permissions("nobody", "/", "", "", "")

    def test_invented_names_do_not_fill_the_memory(self, users: Users, tony: User) -> None:
        users.set_permissions("tony", "/", ".*", "", "")
        for number in range(auth.MAX_CACHED_ANSWERS + 10):
            assert tony.permitted("/", "configure", f"q{number}")
        assert len(tony._answers) <= auth.MAX_CACHED_ANSWERS


class TestChanges:
    def test_answers_are_asked_anew(self, users: Users, tony: User) -> None:
        users.set_permissions("tony", "/", "", ".*", "")
        assert tony.permitted("/", "write", "news")
        users.set_permissions("tony", "/", "", "^mail", "")
        assert not tony.permitted("/", "write", "news")
        users.clear_permissions("tony", "/")
        assert not tony.may_enter("/")

    def test_watchers_hear_of_every_change(self, users: Users, tony: User) -> None:
        versions: list[int] = []

        def watch() -> None:
            versions.append(tony.version)

        tony.watch(watch)
        start = tony.version
        users.set_permissions("tony", "/", "", "", "")
        users.clear_permissions("tony", "/")
        users.add("tony", "other")
        users.remove("tony")
        assert versions == [start + 1, start + 2, start + 3, start + 4]
        tony.unwatch(watch)
        tony.changed()
        assert len(versions) == 4

    def test_removed_user_loses_its_rights(self, users: Users, tony: User) -> None:
        users.set_permissions("tony", "/", ".*", ".*", ".*")
        users.remove("tony")
        users.remove("tony")
        assert not tony.permitted("/", "read", "news")
        assert tony.tags == frozenset()
        assert users.get("tony") is None
        assert [user.name for user in users] == ["guest"]
