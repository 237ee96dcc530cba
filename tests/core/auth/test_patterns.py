"""Patterns of permissions, and those of routing keys with names in them."""

from __future__ import annotations

import pytest

from warrenmq.core.auth import AuthError
from warrenmq.core.auth.patterns import matcher, topic_matcher


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
    ],
)
def test_a_pattern_is_unanchored(pattern: str, name: str, answer: bool) -> None:
    assert matcher(pattern)(name) is answer


@pytest.mark.parametrize("make", [matcher, lambda pattern: topic_matcher(pattern, "u", "v")])
@pytest.mark.parametrize("pattern", ["(a", "a{2,1}", "(?=a)", "x" * 257, "\\1", "\ud800"])
def test_invalid_pattern_is_refused(
    make: object, pattern: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert callable(make)
    with pytest.raises(AuthError, match="pattern"):
        make(pattern)
    assert capfd.readouterr().err == ""


def test_the_reason_is_readable() -> None:
    with pytest.raises(AuthError, match="^pattern '\\(a' is not a regular expression: missing"):
        matcher("(a")


def test_a_runaway_pattern_is_linear() -> None:
    assert matcher("(a+)+$")("a" * 255 + "!") is False


@pytest.mark.parametrize(
    ("pattern", "key", "answer"),
    [
        ("^{username}\\.", "tony.orders", True),
        ("^{username}\\.", "evan.orders", False),
        ("^{vhost}-{username}$", "eu-tony", True),
        ("^{vhost}-{username}$", "us-tony", False),
        ("{username}|{vhost}", "a.eu.b", True),
        # An AMQP or HTTP client has no client id, so nothing is like it.
        ("^{client_id}$", "", False),
        ("^{client_id}$", "{client_id}", False),
        ("^({client_id}|{username})$", "tony", True),
        ("^a{2}$", "aa", True),
        ("^{other}$", "{other}", True),
        # As RabbitMQ: a pattern that is empty is for the key that is empty.
        ("", "", True),
        ("", "a", False),
        (".*", "", True),
    ],
)
def test_user_name_and_vhost_are_inserted(pattern: str, key: str, answer: bool) -> None:
    assert topic_matcher(pattern, "tony", "eu")(key) is answer


@pytest.mark.parametrize("name", [".*", "a|b", "(", "[x]", "^", "a\\", "{vhost}", "\u00fc+"])
def test_special_characters_of_a_name_are_escaped(name: str) -> None:
    allows = topic_matcher("^{username}$", name, "secret")
    assert allows(name)
    assert not allows("secret")
    assert not allows("b")


def test_a_pattern_has_up_to_256_characters() -> None:
    assert matcher("a" * 256)("a" * 256)
    with pytest.raises(AuthError, match="a pattern has 257 characters, at most 256"):
        matcher("a" * 257)
