from __future__ import annotations

import logging

import pytest

from warrenmq.core.errors import ChannelError
from warrenmq.core.message.deduplication import CACHE_SIZE_MAX
from warrenmq.core.message.model import FieldValue, Table
from warrenmq.core.queue.arguments import KNOWN, MAX_TTL_MS, OF_TYPE, Declared, read_rules
from warrenmq.core.queue.rules import Deduplication, RetryDelay, Rules

NEWS = Declared("news", "/")


def refusal(arguments: Table) -> str:
    with pytest.raises(ChannelError) as caught:
        read_rules(NEWS, arguments)
    assert caught.value.code == 406
    return caught.value.explanation


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"x-queue-type": "classic"},
        {"x-queue-mode": "lazy", "x-queue-version": 2},
        {"x-overflow": "drop-head"},
        {"x-dead-letter-strategy": "at-most-once"},
        {"x-queue-leader-locator": "client-local"},
        {"x-unheard-of": 1, "no-x": True},
        {"x-single-active-consumer": False},
    ],
)
def test_a_plain_queue_has_no_rules(arguments: Table) -> None:
    assert read_rules(NEWS, arguments) is None


def test_queues_with_the_same_arguments_share_their_rules() -> None:
    arguments: Table = {"x-max-length": 1, "x-single-active-consumer": True}
    assert read_rules(NEWS, arguments) is read_rules(Declared("other", "/"), dict(arguments))
    for wrong in (True, 1.0):  # Equal to 1, and not a whole number.
        assert "x-max-length" in refusal({**arguments, "x-max-length": wrong})
    assert "x-single-active-consumer" in refusal({**arguments, "x-single-active-consumer": 1})


def test_all_rules() -> None:
    arguments: Table = {
        "x-message-ttl": 1000,
        "x-expires": 2000,
        "x-max-length": 3,
        "x-max-length-bytes": 4,
        "x-overflow": "reject-publish",
        "x-dead-letter-exchange": "dead",
        "x-dead-letter-routing-key": "letters",
        "x-dead-letter-strategy": "at-least-once",
    }
    rules = read_rules(NEWS, arguments)
    assert rules == Rules(1000, 2000, 3, 4, "reject-publish", "dead", "letters", at_least_once=True)
    assert (rules.limited, rules.checks_publishes) == (True, True)


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
    assert (rules.limited, rules.checks_publishes) == (limited, rejects)


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
        read_rules(NEWS, {argument: value})
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
        assert read_rules(NEWS, beside | {argument: value}) is not None
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
        read_rules(NEWS, {argument: value})
    for other in ("", "else", "Drop-Head", 5, None):
        assert f"invalid arg '{argument}' for queue 'news' in vhost '/'" in refusal(
            {argument: other}
        )


def test_a_dead_letter_key_needs_an_exchange() -> None:
    assert refusal({"x-dead-letter-routing-key": "k"}) == (
        "invalid arg 'x-dead-letter-routing-key' for queue 'news' in vhost '/': "
        "needs an x-dead-letter-exchange beside it"
    )
    rules = read_rules(NEWS, {"x-dead-letter-exchange": ""})
    assert rules == Rules(dead_letter_exchange="")


QUORUM_RULES = Rules(max_priority=31, delivery_limit=20)


@pytest.mark.parametrize(
    ("arguments", "rules"),
    [
        ({"x-max-priority": 255}, Rules(max_priority=255)),
        ({"x-single-active-consumer": True}, Rules(single_active=True)),
        ({"x-delivery-limit": 0}, Rules(delivery_limit=0)),
        ({"x-delivery-limit": -1}, Rules(delivery_limit=-1)),
        ({"x-consumer-timeout": 0}, Rules(consumer_timeout_ms=0)),
        (
            {"x-message-deduplication": True},
            Rules(deduplication=Deduplication(128, None, "x-deduplication-header")),
        ),
        (
            {
                "x-message-deduplication": True, "x-cache-size": 5, "x-cache-ttl": 9,
                "x-deduplication-header": "id",
            },
            Rules(deduplication=Deduplication(5, 9, "id")),
        ),
        ({"x-cache-size": 5}, None),
        ({"x-queue-type": "quorum"}, QUORUM_RULES),
        (
            {"x-queue-type": "quorum", "x-delivery-limit": 3},
            Rules(max_priority=31, delivery_limit=3),
        ),
        (
            {"x-queue-type": "quorum", "x-delayed-retry-type": "all"},
            Rules(
                max_priority=31, delivery_limit=20, retry_delay=RetryDelay("all", 1000, 60_000)
            ),
        ),
        ({"x-queue-type": "quorum", "x-delayed-retry-type": "disabled"}, QUORUM_RULES),
        ({"x-queue-type": "stream"}, Rules()),
        (
            {
                "x-queue-type": "stream", "x-max-age": "7D", "x-max-length-bytes": 1,
                "x-stream-max-segment-size-bytes": 2, "x-stream-filter-size-bytes": 16,
            },
            Rules(max_length_bytes=1, max_age_ms=604_800_000, segment_bytes=2, filter_bytes=16),
        ),
    ],
)  # fmt: skip
def test_rules(arguments: Table, rules: Rules | None) -> None:
    assert read_rules(NEWS, arguments) == rules


@pytest.mark.parametrize(
    ("kind", "argument"),
    [(kind, argument) for kind in OF_TYPE for argument in sorted(KNOWN - OF_TYPE[kind])],
)
def test_arguments_of_other_types_are_refused(kind: str, argument: str) -> None:
    assert refusal({"x-queue-type": kind, argument: 1}) == (
        f"invalid arg '{argument}' for queue 'news' in vhost '/': {kind} queues don't have it"
    )


@pytest.mark.parametrize(
    ("kind", "argument", "low", "high"),
    [
        ("classic", "x-max-priority", 0, 255),
        ("classic", "x-delivery-limit", -1, 2**63 - 1),
        ("classic", "x-consumer-timeout", 0, MAX_TTL_MS),
        ("classic", "x-cache-size", 1, CACHE_SIZE_MAX),
        ("classic", "x-cache-ttl", 0, MAX_TTL_MS),
        ("quorum", "x-delayed-retry-min", 0, MAX_TTL_MS),
        ("quorum", "x-delayed-retry-max", 0, MAX_TTL_MS),
        ("stream", "x-stream-max-segment-size-bytes", 0, 3_000_000_000),
        ("stream", "x-stream-filter-size-bytes", 16, 255),
        ("stream", "x-max-length-bytes", 0, 2**63 - 1),
    ],
)
def test_numbers_of_types(kind: str, argument: str, low: int, high: int) -> None:
    beside: Table = {"x-queue-type": kind}
    for value in (low, high):
        read_rules(NEWS, beside | {argument: value})
    for value in (low - 1, high + 1):
        assert f"{value} is out of range {low} to {high}" in refusal(beside | {argument: value})
    assert "a whole number is needed" in refusal(beside | {argument: "5"})


@pytest.mark.parametrize("argument", ["x-single-active-consumer", "x-message-deduplication"])
def test_booleans(argument: str) -> None:
    for value in (1, "true", None):
        assert "a boolean is needed" in refusal({argument: value})


@pytest.mark.parametrize("age", ["", "7", "D", "-1D", "1d", "1.5h", "7D ", "7DD"])
def test_ages(age: str) -> None:
    assert "is no age" in refusal({"x-queue-type": "stream", "x-max-age": age})


def test_a_retry_delay_must_not_end_before_it_begins() -> None:
    arguments: Table = {
        "x-queue-type": "quorum", "x-delayed-retry-type": "all", "x-delayed-retry-min": 9,
        "x-delayed-retry-max": 8,
    }  # fmt: skip
    assert "8 is less than x-delayed-retry-min, 9" in refusal(arguments)


def test_an_unknown_queue_type_is_refused() -> None:
    assert refusal({"x-queue-type": "delay"}) == (
        "invalid arg 'x-queue-type' for queue 'news' in vhost '/': unknown queue type 'delay', "
        "there are classic, quorum, stream"
    )


@pytest.mark.parametrize("kind", ["quorum", "stream"])
@pytest.mark.parametrize(
    ("declared", "text"),
    [
        (Declared("q", "/", durable=False), "invalid property 'non-durable' for queue 'q'"),
        (Declared("q", "/", exclusive=True), "invalid property 'exclusive-owner' for queue 'q'"),
        (Declared("q", "/", auto_delete=True), "invalid property 'auto-delete' for queue 'q'"),
        (Declared("", "/"), "Cannot declare a server-named queue for type rabbit_"),
    ],
)
def test_what_is_there_for_good(kind: str, declared: Declared, text: str) -> None:
    with pytest.raises(ChannelError) as caught:
        read_rules(declared, {"x-queue-type": kind})
    assert caught.value.code == 406
    assert caught.value.explanation.startswith(text)


def test_strict_arguments() -> None:
    read_rules(NEWS, {"x-max-length": 1, "other": 2}, strict=True)
    with pytest.raises(ChannelError, match="strict-arguments is on"):
        read_rules(NEWS, {"x-max-lenght": 1}, strict=True)


def test_unknown_arguments_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        read_rules(NEWS, {"x-stray": 1, "x-max-length": 5, "x-queue-master-locator": "a"})
    assert [record.getMessage() for record in caplog.records] == [
        "queue 'news' in vhost '/': unknown argument 'x-stray' is kept and ignored"
    ]
