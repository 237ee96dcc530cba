"""Permissions of a user, and the watchers of changes (amqp.md section 8)."""

from __future__ import annotations

import pytest

from warrenmq.core.auth import AuthError, User, Users, permissions, user
from warrenmq.core.auth.patterns import Matcher


def test_the_caches_of_answers_are_bounded(
    users: Users, tony: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked long ago is matched again, what was asked just now is not."""
    for module in (user, permissions):
        monkeypatch.setattr(module, "MAX_CACHED_ANSWERS", 10)
    matched: list[str] = []

    def counting(*_: str) -> Matcher:
        def match(name: str) -> bool:
            matched.append(name)
            return True

        return match

    monkeypatch.setattr(permissions, "matcher", counting)
    monkeypatch.setattr(permissions, "topic_matcher", counting)
    users.set_permissions("tony", "/", ".*", "", "")
    users.set_topic_permission("tony", "/", "x", ".*", "")
    topics = tony.topic_rights("/", "x")
    assert topics is not None
    names = [f"k{number}" for number in range(25)] * 2
    for name in names:
        for _ in range(2):
            assert tony.permitted("/", "configure", name)
            assert topics.allow("write", name)
    assert matched == [name for name in names for _ in range(2)]


class TestTopicPermissions:
    @pytest.mark.parametrize(
        ("exchange", "text"),
        [("x" * 256, "has 256 bytes, at most 255"), ("\ud800", "is not valid Unicode")],
    )
    def test_names_that_no_exchange_has(
        self, users: Users, tony: User, exchange: str, text: str
    ) -> None:
        with pytest.raises(AuthError, match=text):
            users.set_topic_permission("tony", "/", exchange, "a", "b")
        assert tony.topic_permissions == {}


class TestChanges:
    def test_watchers_are_called_at_every_change(self, users: Users, tony: User) -> None:
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
