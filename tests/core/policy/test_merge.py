"""Policy, operator policy and arguments: the smaller number, else argument before operator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.message.model import Table
from warrenmq.core.policy.merge import effective_rules, merged
from warrenmq.core.queue.arguments import DeclaredArguments, read_rules
from warrenmq.core.queue.rules import RetryDelay, Rules

MERGED: list[tuple[Table, Table, Table]] = [
    ({}, {}, {}),
    ({"max-length": 5}, {}, {"max-length": 5}),
    ({}, {"max-length": 5}, {"max-length": 5}),
    ({"max-length": 5}, {"max-length": 7}, {"max-length": 5}),
    ({"message-ttl": 0}, {"message-ttl": 9}, {"message-ttl": 0}),
    ({"max-in-memory-length": 8}, {"max-in-memory-length": 4}, {"max-in-memory-length": 4}),
    ({"delivery-limit": 8}, {"delivery-limit": 4}, {"delivery-limit": 4}),
    ({"delivery-limit": -1}, {"delivery-limit": 4}, {"delivery-limit": 4}),
    ({"delivery-limit": 0}, {"delivery-limit": 4}, {"delivery-limit": 0}),
    ({"delivery-limit": 8}, {"delivery-limit": -1}, {"delivery-limit": 8}),
    ({"delivery-limit": -1}, {"delivery-limit": -1}, {"delivery-limit": -1}),
    ({"consumer-timeout": 0}, {"consumer-timeout": 60_000}, {"consumer-timeout": 60_000}),
    ({"consumer-timeout": 9}, {"consumer-timeout": 0}, {"consumer-timeout": 9}),
    ({"consumer-timeout": 9}, {"consumer-timeout": 5}, {"consumer-timeout": 5}),
    ({"overflow": "drop-head"}, {"overflow": "reject-publish"}, {"overflow": "reject-publish"}),
    (
        {"max-length": 5, "dead-letter-exchange": "x"},
        {"max-length": 2, "expires": 1},
        {"max-length": 2, "dead-letter-exchange": "x", "expires": 1},
    ),
]


@pytest.mark.parametrize(("policy", "operator", "outcome"), MERGED)
def test_an_operator_policy_only_takes_away(policy: Table, operator: Table, outcome: Table) -> None:
    assert merged(policy, operator) == outcome


# What a queue was declared with, the definition, and what differs from no rules at all.
EFFECTIVE: list[tuple[Table, Table, dict[str, Any]]] = [
    ({}, {}, {}),
    ({}, {"message-ttl": 5}, {"message_ttl_ms": 5}),
    ({"x-message-ttl": 7}, {"message-ttl": 0}, {"message_ttl_ms": 0}),
    ({"x-max-length": 0}, {"max-length": 5}, {"max_length": 0}),
    ({"x-max-length": 7}, {"message-ttl": 5}, {"max_length": 7, "message_ttl_ms": 5}),
    ({}, {"overflow": "reject-publish"}, {"overflow": "reject-publish"}),
    ({"x-overflow": "drop-head"}, {"overflow": "reject-publish"}, {}),
    ({}, {"dead-letter-exchange": "p"}, {"dead_letter_exchange": "p"}),
    (
        {"x-dead-letter-exchange": "a"},
        {"dead-letter-exchange": "p", "dead-letter-routing-key": "k"},
        {"dead_letter_exchange": "a", "dead_letter_routing_key": "k"},
    ),
    (
        {"x-dead-letter-exchange": ""},
        {"dead-letter-routing-key": "k"},
        {"dead_letter_exchange": "", "dead_letter_routing_key": "k"},
    ),
    ({}, {"delivery-limit": 4}, {"delivery_limit": 4}),
    ({"x-delivery-limit": 3}, {"delivery-limit": 4}, {"delivery_limit": 3}),
    ({"x-delivery-limit": -1}, {"delivery-limit": 4}, {"delivery_limit": 4}),
    ({}, {"consumer-timeout": 60_000}, {"consumer_timeout_ms": 60_000}),
    ({"x-consumer-timeout": 0}, {"consumer-timeout": 9}, {"consumer_timeout_ms": 9}),
    ({}, {"alternate-exchange": "x", "ha-mode": "all", "queue-mode": "lazy"}, {}),
    ({"x-max-priority": 5}, {"max-length": 1}, {"max_priority": 5, "max_length": 1}),
]
QUORUM: list[tuple[Table, Table, dict[str, Any]]] = [
    ({}, {}, {}),
    ({}, {"delivery-limit": 50}, {"delivery_limit": 50}),
    ({"x-delivery-limit": 30}, {"delivery-limit": 50}, {"delivery_limit": 30}),
    ({}, {"max-in-memory-length": 5}, {}),
    ({}, {"delayed-retry-type": "all"}, {"retry_delay": RetryDelay("all", 1000, 60_000)}),
    (
        {"x-delayed-retry-type": "failed", "x-delayed-retry-min": 70_000},
        {"delayed-retry-type": "all", "delayed-retry-max": 65_000},
        {"retry_delay": RetryDelay("failed", 70_000, 70_000)},
    ),
    (
        {"x-delayed-retry-type": "failed", "x-delayed-retry-min": 70_000},
        {"delayed-retry-min": 5, "delayed-retry-max": 6},
        {"retry_delay": RetryDelay("failed", 5, 6)},
    ),
    (
        {"x-delayed-retry-type": "disabled"}, {"delayed-retry-type": "all"}, {"retry_delay": None},
    ),
]  # fmt: skip
STREAM: list[tuple[Table, Table, dict[str, Any]]] = [
    ({}, {"max-age": "1h"}, {"max_age_ms": 3_600_000}),
    ({"x-max-age": "90m"}, {"max-age": "1h"}, {"max_age_ms": 3_600_000}),
    ({"x-max-age": "30m"}, {"max-age": "1h"}, {"max_age_ms": 1_800_000}),
    ({}, {"archive": "cold"}, {"archive": "cold"}),
    ({"x-archive": "hot"}, {"archive": "cold"}, {"archive": "hot"}),
    (
        {"x-stream-max-segment-size-bytes": 9}, {"stream-max-segment-size-bytes": 5},
        {"segment_bytes": 5},
    ),
    ({}, {"stream-filter-size-bytes": 20}, {"filter_bytes": 20}),
]  # fmt: skip


def of(queue_type: str, arguments: Table) -> tuple[Table, Rules | None]:
    """The arguments of a queue of that type, and the rules that they make."""
    if queue_type != "classic":
        arguments = {"x-queue-type": queue_type, **arguments}
    return arguments, read_rules(DeclaredArguments("q", "/"), arguments)


@pytest.mark.parametrize(
    ("queue_type", "declared", "definition", "changes"),
    [
        (queue_type, *row)
        for queue_type, table in (("classic", EFFECTIVE), ("quorum", QUORUM), ("stream", STREAM))
        for row in table
    ],
)
def test_arguments_and_policy_are_combined(
    queue_type: str, declared: Table, definition: Table, changes: dict[str, Any]
) -> None:
    _, plain = of(queue_type, {})
    wanted = replace(plain or Rules(), **changes)
    arguments, rules = of(queue_type, declared)
    found = effective_rules(rules, arguments, definition)
    assert (found or Rules()) == wanted
    assert found is not None or wanted == Rules()


NUMBERS = ["message-ttl", "expires", "max-length", "max-length-bytes"]
DEFINITIONS = st.dictionaries(st.sampled_from(NUMBERS), st.integers(1, 1000))


@given(DEFINITIONS, DEFINITIONS, DEFINITIONS)
def test_smallest_number_applies(
    given_arguments: dict[str, Any], policy: dict[str, Any], operator: dict[str, Any]
) -> None:
    arguments, rules = of("classic", {f"x-{key}": given_arguments[key] for key in given_arguments})
    found = effective_rules(rules, arguments, merged(policy, operator)) or Rules()
    fields = (found.message_ttl_ms, found.expires_ms, found.max_length, found.max_length_bytes)
    for key, value in zip(NUMBERS, fields, strict=True):
        asked = [table[key] for table in (given_arguments, policy, operator) if key in table]
        assert value == min(asked, default=None)


def test_arguments_are_unchanged_without_policies() -> None:
    arguments, rules = of("quorum", {"x-max-length": 5})
    assert effective_rules(rules, arguments, {}) == rules
    assert effective_rules(None, {}, {}) is None
