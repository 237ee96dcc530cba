"""Patterns of permissions, and those of routing keys with names in them."""

from __future__ import annotations

import pytest

from warrenmq.core.auth import AuthError, patterns
from warrenmq.core.auth.patterns import Matcher


def matcher(pattern: str) -> Matcher:
    return patterns.matcher(pattern, "the owner")


def topic_matcher(pattern: str, user: str, vhost: str) -> Matcher:
    return patterns.topic_matcher(pattern, user, vhost, "the owner")


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
        # Beyond RE2: lookaround, possessive and atomic groups, references, anchors, large counts.
        (r"^(?!amq\.).*", "amq.direct", False),
        (r"^(?!amq\.).*", "nova", True),
        (r"^(?!(amq\.)|(.*_fanout_)|(reply_)).*", "reply_1", False),
        (r"(?<=eu\.)news", "eu.news", True),
        (r"(?<!eu\.)news", "eu.news", False),
        ("^a++b", "aab", True),
        ("^a*+a", "aaa", False),
        ("^(?>a|ab)c", "abc", False),
        (r"^(\w+)\.\1$", "eu.eu", True),
        (r"^(?<one>\w+)\.\k<one>$", "eu.us", False),
        (r"news\Z", "news", True),
        (r"a\Rb", "a\r\nb", True),
        ("^a{1001}$", "a" * 1001, True),
        (r"^(\((?:[^()]|(?1))*\))$", "(a(b)c)", True),
        (r"^[\x{e9}\x{20AC}](?!x)", "\u20ac", True),
        (r"^\x9(?!x)", "\t", True),
        (r"^\Q\x{9}\E(?!x)", "\\x{9}", True),
        (r"^\w(?!x)", "\u00e9", False),
    ],
)
def test_a_pattern_is_unanchored(pattern: str, name: str, answer: bool) -> None:
    assert matcher(pattern)(name) is answer


@pytest.mark.parametrize("make", [matcher, lambda pattern: topic_matcher(pattern, "u", "v")])
@pytest.mark.parametrize(
    "pattern", ["(a", "a{2,1}", "(?=a", "x" * 65_536, "\\1", "(?!)\\x{110000}", "\ud800"]
)
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
    "pattern", ["(a+)+(?=b)$", r"^(a?){255}(?!b)a{255}$", "(?R)|a(?!a)", r"((a*)*\2*)*(?=c)"]
)
def test_a_pattern_that_exceeds_its_steps_does_not_match(
    pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = matcher(pattern)
    for name in ("a" * 255, "a" * 254, "a" * 255):
        assert found(name) is False
    (logged,) = (record.getMessage() for record in caplog.records)
    assert logged.startswith(f"the owner: the pattern '{pattern}' needs more than 2500 steps")


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
        (r"^(?!{vhost}\.){username}\.", "tony.orders", True),
        (r"^(?!{username}\.)", "tony.orders", False),
        ("(?!a){client_id}", "b", False),
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


def test_a_pattern_has_up_to_65535_bytes() -> None:
    long = "|".join(f"queue-{number:03}" for number in range(6_100))[:65_535]
    assert matcher(long)("queue-005")
    with pytest.raises(AuthError, match="a pattern has 65536 bytes, at most 65535"):
        matcher(long + "x")
