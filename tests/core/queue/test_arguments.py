from __future__ import annotations

import logging

import pytest

from warrenmq.core.errors import ChannelError
from warrenmq.core.message.model import Table
from warrenmq.core.queue.arguments import DeclaredArguments, read_rules
from warrenmq.core.queue.rules import Deduplication, RetryDelay, Rules

NEWS = DeclaredArguments("news", "/")


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
    assert read_rules(NEWS, arguments) is read_rules(
        DeclaredArguments("other", "/"), dict(arguments)
    )
    for wrong in (True, 1.0):  # Equal to 1, and not a whole number.
        assert "x-max-length" in refusal({**arguments, "x-max-length": wrong})
    assert "x-single-active-consumer" in refusal({**arguments, "x-single-active-consumer": 1})


QUORUM_RULES = Rules(max_priority=31, delivery_limit=20)


@pytest.mark.parametrize(
    ("arguments", "rules"),
    [
        (
            {
                "x-message-ttl": 1000, "x-expires": 2000, "x-max-length": 3,
                "x-max-length-bytes": 4, "x-overflow": "reject-publish",
                "x-dead-letter-exchange": "dead", "x-dead-letter-routing-key": "letters",
                "x-dead-letter-strategy": "at-least-once",
            },
            Rules(1000, 2000, 3, 4, "reject-publish", "dead", "letters", at_least_once=True),
        ),
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
                "x-archive": "cold",
            },
            Rules(
                max_length_bytes=1, max_age_ms=604_800_000, segment_bytes=2, filter_bytes=16,
                archive="cold",
            ),
        ),
    ],
)  # fmt: skip
def test_rules(arguments: Table, rules: Rules | None) -> None:
    assert read_rules(NEWS, arguments) == rules


def test_strict_arguments() -> None:
    read_rules(NEWS, {"x-max-length": 1, "other": 2}, strict=True)
    with pytest.raises(ChannelError, match="strict-arguments is on"):
        read_rules(NEWS, {"x-max-lenght": 1}, strict=True)


def test_unknown_arguments_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        read_rules(NEWS, {"x-stray": 1, "x-max-length": 5, "x-queue-master-locator": "a"})
    assert [record.getMessage() for record in caplog.records] == [
        "queue 'news' in vhost '/': unknown argument 'x-stray' is stored and ignored"
    ]
