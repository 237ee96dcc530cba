"""What a user may do, and who hears of a change (amqp.md section 8)."""

from __future__ import annotations

import pytest

from warrenmq.core.auth import AuthError, User, Users, permissions, user
from warrenmq.core.errors import ChannelError


class TestPermissions:
    def test_the_default_user_may_do_all_in_the_first_vhost_only(self, users: Users) -> None:
        guest = users.existing("guest")
        assert guest.may_enter("/")
        assert guest.permitted("/", "configure", "any")
        assert not guest.may_enter("other")
        assert not guest.permitted("other", "read", "any")

    def test_each_access_has_its_own(self, users: Users, tony: User) -> None:
        users.set_permissions("tony", "/", "^c", "^w", "^r")
        allowed = [
            (access, name)
            for access in ("configure", "write", "read")
            for name in "cwr"
            if tony.permitted("/", access, name)
        ]
        assert allowed == [("configure", "c"), ("write", "w"), ("read", "r")]
        assert tony.permissions["/"] == permissions.Permissions("^c", "^w", "^r")

    def test_the_default_exchange_has_a_name(self, users: Users, tony: User) -> None:
        users.set_permissions("tony", "/", "", "^amq\\.default$", "")
        assert tony.permitted("/", "write", "")
        with pytest.raises(ChannelError, match="read access to exchange 'amq.default' in vhost"):
            tony.require("/", "read", "exchange", "")

    def test_refusal_text(self, tony: User) -> None:
        with pytest.raises(ChannelError) as refusal:
            tony.require("v", "configure", "queue", "n")
        assert refusal.value.code == 403
        assert refusal.value.reply_text == (
            "ACCESS_REFUSED - configure access to queue 'n' in vhost 'v' refused for user 'tony'"
        )

    @pytest.mark.parametrize("patterns", [(".*", "", ""), ("", ".*", ""), ("", "", ".*")])
    def test_any_right_is_enough_to_ask(
        self, users: Users, tony: User, patterns: tuple[str, str, str]
    ) -> None:
        with pytest.raises(ChannelError) as refusal:
            tony.require_any("/", "queue", "n")
        assert refusal.value.reply_text == (
            "ACCESS_REFUSED - access to queue 'n' in vhost '/' refused for user 'tony'"
        )
        users.set_permissions("tony", "/", *patterns)
        tony.require_any("/", "queue", "n")

    def test_invented_names_do_not_fill_the_memory(
        self, users: Users, tony: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(user, "MAX_CACHED_ANSWERS", 10)
        users.set_permissions("tony", "/", ".*", "", "")
        for number in range(25):
            assert tony.permitted("/", "configure", f"q{number}")
        assert len(tony._answers) <= 10


class TestTopicPermissions:
    def test_none_permit_every_key(self, users: Users, tony: User) -> None:
        users.set_topic_permission("tony", "/", "other", "", "")
        assert tony.topic_rights("/", "news") is None
        assert tony.topic_rights("v", "other") is None

    def test_each_access_has_its_own(self, users: Users, tony: User) -> None:
        users.set_topic_permission("tony", "/", "news", "^{username}", "^{vhost}")
        rights = tony.topic_rights("/", "news")
        assert rights is not None
        for _ in range(2):
            assert rights.allow("write", "tony.a")
            assert not rights.allow("write", "/.a")
            assert rights.allow("read", "/.a")
            assert not rights.allow("read", "tony.a")

    @pytest.mark.parametrize(
        ("exchange", "text"),
        [("x" * 256, "has 256 bytes, at most 255"), ("\ud800", "is no Unicode text")],
    )
    def test_names_that_no_exchange_has(
        self, users: Users, tony: User, exchange: str, text: str
    ) -> None:
        with pytest.raises(AuthError, match=text):
            users.set_topic_permission("tony", "/", exchange, "a", "b")
        assert tony.topic_permissions == {}

    def test_refusal_text(self, users: Users, tony: User) -> None:
        users.set_topic_permission("tony", "v", "x", "^a", "")
        rights = tony.topic_rights("v", "x")
        assert rights is not None
        rights.require("write", "a")
        with pytest.raises(ChannelError) as refusal:
            rights.require("write", "b")
        assert refusal.value.code == 403
        assert refusal.value.explanation == (
            "write access to topic 'b' in exchange 'x' in vhost 'v' refused for user 'tony'"
        )

    def test_invented_keys_do_not_fill_the_memory(
        self, users: Users, tony: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(permissions, "MAX_CACHED_ANSWERS", 10)
        users.set_topic_permission("tony", "/", "x", "^k", "")
        rights = tony.topic_rights("/", "x")
        assert rights is not None
        for number in range(25):
            assert rights.allow("write", f"k{number}")
        assert len(rights._answers) <= 10

    def test_a_change_is_a_change_of_the_user(self, users: Users, tony: User) -> None:
        before = tony.version
        users.set_topic_permission("tony", "/", "x", "a", "b")
        assert tony.version == before + 1
        assert tony.topic_permissions == {("/", "x"): permissions.TopicPermissions("a", "b")}

    def test_cleared_for_one_exchange_or_all(self, users: Users, tony: User) -> None:
        for vhost, exchange in (("/", "x"), ("/", "y"), ("/", "z"), ("v", "x")):
            users.set_topic_permission("tony", vhost, exchange, "a", "b")
        users.clear_topic_permissions("tony", "/", "x")
        assert set(tony.topic_permissions) == {("/", "y"), ("/", "z"), ("v", "x")}
        users.clear_topic_permissions("tony", "/")
        assert set(tony.topic_permissions) == {("v", "x")}


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
        users.set_tags("tony", ["monitoring"])
        users.set_topic_permission("tony", "/", "x", "", "")
        users.remove("tony")
        assert versions == [start + 1, start + 2, start + 3, start + 4, start + 5, start + 6]
        tony.unwatch(watch)
        tony.changed()
        assert len(versions) == 6
