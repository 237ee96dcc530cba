from __future__ import annotations

import logging

import pytest

from warren.core.errors import ChannelError
from warren.core.model import FieldValue, Table
from warren.core.queue.arguments import _NOT_BUILT, MAX_TTL_MS, Rules, read_rules


def refusal(arguments: Table) -> str:
    with pytest.raises(ChannelError) as caught:
        read_rules("news", "/", arguments)
    assert caught.value.code == 406
    return caught.value.explanation


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"x-queue-type": "classic"},
        {"x-queue-mode": "lazy", "x-queue-version": 2},
        {"x-overflow": "drop-head"},
        {"x-dead-letter-strategy": "at-least-once"},
        {"x-queue-leader-locator": "client-local"},
        {"x-unheard-of": 1, "no-x": True},
    ],
)
def test_a_plain_queue_has_no_rules(arguments: Table) -> None:
    assert read_rules("news", "/", arguments) is None


def test_all_rules() -> None:
    arguments: Table = {
        "x-message-ttl": 1000,
        "x-expires": 2000,
        "x-max-length": 3,
        "x-max-length-bytes": 4,
        "x-overflow": "reject-publish",
        "x-dead-letter-exchange": "dead",
        "x-dead-letter-routing-key": "letters",
    }
    rules = read_rules("news", "/", arguments)
    assert rules == Rules(1000, 2000, 3, 4, "reject-publish", "dead", "letters")
    assert (rules.limited, rules.rejects) == (True, True)


@pytest.mark.parametrize(
    ("rules", "limited", "rejects"),
    [
        (Rules(), False, False),
        (Rules(overflow="reject-publish"), False, False),
        (Rules(max_length=0), True, False),
        (Rules(max_length_bytes=0), True, False),
        (Rules(max_length=1, overflow="reject-publish-dlx"), True, True),
    ],
)
def test_what_is_limited(rules: Rules, limited: bool, rejects: bool) -> None:
    assert (rules.limited, rules.rejects) == (limited, rejects)


@pytest.mark.parametrize(
    ("argument", "low", "high"),
    [
        ("x-message-ttl", 0, MAX_TTL_MS),
        ("x-expires", 1, MAX_TTL_MS),
        ("x-max-length", 0, 2**63 - 1),
        ("x-max-length-bytes", 0, 2**63 - 1),
        ("x-queue-version", 1, 2),
    ],
)
def test_numbers(argument: str, low: int, high: int) -> None:
    for value in (low, high):
        read_rules("news", "/", {argument: value})
    for value in (low - 1, high + 1):
        assert refusal({argument: value}) == (
            f"invalid arg '{argument}' for queue 'news' in vhost '/': "
            f"{value} is out of range {low} to {high}"
        )
    wrong: list[tuple[FieldValue, str]] = [
        ("5", "longstr"), (5.0, "double"), (True, "bool"), (None, "void"), ([], "array")
    ]  # fmt: skip
    for other, kind in wrong:
        assert f"{kind} given, a whole number is needed" in refusal({argument: other})


@pytest.mark.parametrize("argument", ["x-dead-letter-exchange", "x-dead-letter-routing-key"])
def test_names(argument: str) -> None:
    beside: Table = {"x-dead-letter-exchange": ""}
    for value in ("", "name", "\u00fc" * 127):
        assert read_rules("news", "/", beside | {argument: value}) is not None
    assert "256 bytes given, 255 at most" in refusal(beside | {argument: "\u00fc" * 128})
    for other in (5, b"\xff", None, True):
        assert "a string is needed" in refusal(beside | {argument: other})


@pytest.mark.parametrize(
    ("argument", "values"),
    [
        ("x-overflow", ("drop-head", "reject-publish", "reject-publish-dlx")),
        ("x-queue-mode", ("default", "lazy")),
        ("x-dead-letter-strategy", ("at-most-once", "at-least-once")),
        ("x-queue-type", ("classic",)),
    ],
)
def test_choices(argument: str, values: tuple[str, ...]) -> None:
    for value in values:
        read_rules("news", "/", {argument: value})
    for other in ("", "else", "Drop-Head", 5, None):
        assert f"invalid arg '{argument}' for queue 'news' in vhost '/'" in refusal(
            {argument: other}
        )


def test_a_dead_letter_key_needs_an_exchange() -> None:
    assert refusal({"x-dead-letter-routing-key": "k"}) == (
        "invalid arg 'x-dead-letter-routing-key' for queue 'news' in vhost '/': "
        "needs an x-dead-letter-exchange beside it"
    )
    rules = read_rules("news", "/", {"x-dead-letter-exchange": ""})
    assert rules == Rules(dead_letter_exchange="")


@pytest.mark.parametrize("argument", sorted(_NOT_BUILT))
def test_what_is_not_built_is_refused(argument: str) -> None:
    assert f"'{argument}'" in refusal({argument: 1})
    assert "not supported" in refusal({argument: 1})


@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_queue_types_that_are_not_built(kind: str) -> None:
    assert refusal({"x-queue-type": kind}).endswith(f"queue type '{kind}' is not supported")


def test_unknown_arguments_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        read_rules("news", "/", {"x-stray": 1, "x-max-length": 5, "x-queue-master-locator": "a"})
    assert [record.getMessage() for record in caplog.records] == [
        "queue 'news' in vhost '/': unknown argument 'x-stray' is kept and ignored"
    ]
