"""The keys of a policy's definition, their types and ranges."""

from __future__ import annotations

import pytest

from warrenmq.core.message.model import FieldValue, Table
from warrenmq.core.policy.keys import PolicyError, check_definition, is_for, without_effect

TEN_YEARS_MS = 315_360_000_000

GOOD: list[tuple[str, FieldValue]] = [
    ("message-ttl", 0), ("message-ttl", TEN_YEARS_MS), ("expires", 1),
    ("max-length", 0), ("max-length", 2**63 - 1), ("max-length-bytes", 0),
    ("max-in-memory-length", 0), ("max-in-memory-bytes", 0), ("delivery-limit", -1),
    ("consumer-timeout", 0), ("overflow", "reject-publish-dlx"), ("queue-mode", "lazy"),
    ("queue-version", 1), ("queue-version", 2),
    ("dead-letter-exchange", ""), ("dead-letter-exchange", "x" * 255),
    ("dead-letter-routing-key", "k"), ("dead-letter-strategy", "at-least-once"),
    ("delayed-retry-type", "all"), ("delayed-retry-min", 0), ("delayed-retry-max", 9),
    ("max-age", "7D"), ("stream-max-segment-size-bytes", 500_000_000),
    ("stream-filter-size-bytes", 16), ("stream-filter-size-bytes", 255),
    ("archive", "cold"), ("archive", "x" * 255),
    ("queue-leader-locator", "balanced"), ("queue-master-locator", "min-masters"),
    ("alternate-exchange", "unrouted"), ("federation-upstream", "u"),
    ("federation-upstream-set", "all"), ("ha-mode", "exactly"), ("ha-params", 2),
    ("ha-sync-mode", "automatic"), ("ha-params", ["a@b"]),
    ("target-group-size", 5), ("initial-cluster-size", 3), ("max-segment-size", 1_000_000),
]  # fmt: skip

BAD: list[tuple[str, FieldValue, str]] = [
    ("message-ttl", -1, "-1 is out of range 0 to 315360000000"),
    ("message-ttl", TEN_YEARS_MS + 1, "315360000001 is out of range 0 to 315360000000"),
    ("message-ttl", "60000", "a whole number is needed, not 60000 (longstr)"),
    ("message-ttl", 1.5, "a whole number is needed, not 1.5 (double)"),
    ("message-ttl", True, "a whole number is needed, not true (bool)"),
    ("expires", 0, "0 is out of range 1 to 315360000000"),
    ("max-length", 2**63, "9223372036854775808 is out of range 0 to 9223372036854775807"),
    ("max-length-bytes", -1, "-1 is out of range 0 to 9223372036854775807"),
    ("delivery-limit", -2, "-2 is out of range -1 to 9223372036854775807"),
    ("consumer-timeout", -1, "-1 is out of range 0 to 315360000000"),
    (
        "overflow", "drop-tail",
        "'drop-tail' is not one of drop-head, reject-publish, reject-publish-dlx",
    ),
    ("overflow", 1, "'1' is not one of drop-head, reject-publish, reject-publish-dlx"),
    ("queue-mode", "eager", "'eager' is not one of default, lazy"),
    ("queue-version", 3, "3 is out of range 1 to 2"),
    ("dead-letter-exchange", 5, "a text is needed, not 5 (signedint)"),
    ("dead-letter-exchange", "a\nb", "a name has no line end"),
    ("dead-letter-exchange", "ü" * 128, "it has 256 bytes, at most 255"),
    ("alternate-exchange", True, "a text is needed, not true (bool)"),
    ("alternate-exchange", "a\rb", "a name has no line end"),
    ("dead-letter-strategy", "x", "'x' is not one of at-most-once, at-least-once"),
    ("max-age", "7", "'7' is not a valid age (a number followed by Y, M, D, h, m or s)"),
    ("max-age", 7, "'7' is not a valid age (a number followed by Y, M, D, h, m or s)"),
    ("archive", "", "it must not be empty"),
    ("archive", "a\nb", "a name has no line end"),
    ("archive", "x" * 256, "it has 256 bytes, at most 255"),
    ("archive", 5, "a text is needed, not 5 (signedint)"),
    ("stream-filter-size-bytes", 256, "256 is out of range 16 to 255"),
    (
        "max-priority", 5,
        "it can't be set by a policy; declare the queue with x-max-priority",
    ),
    (
        "single-active-consumer", True,
        "it can't be set by a policy; declare the queue with x-single-active-consumer",
    ),
    ("max-lenght", 5, "unknown key"),
    ("x-max-length", 5, "unknown key; did you mean max-length?"),
    ("", 5, "unknown key"),
]  # fmt: skip

OPERATOR = {
    "message-ttl", "expires", "max-length", "max-length-bytes", "max-in-memory-length",
    "max-in-memory-bytes", "delivery-limit", "consumer-timeout", "overflow", "queue-version",
    "target-group-size",
}  # fmt: skip


def refused(definition: Table, *, operator: bool = False) -> str:
    with pytest.raises(PolicyError) as caught:
        check_definition(definition, operator=operator)
    return str(caught.value)


@pytest.mark.parametrize(("key", "value"), GOOD)
def test_value_in_range_is_accepted(key: str, value: FieldValue) -> None:
    check_definition({key: value}, operator=False)
    if key in OPERATOR:
        check_definition({key: value}, operator=True)
    else:
        assert refused({key: value}, operator=True) == f"{key}: operator policies don't support it"


@pytest.mark.parametrize(("key", "value", "complaint"), BAD)
def test_an_invalid_value_is_refused_with_the_reason(
    key: str, value: FieldValue, complaint: str
) -> None:
    assert refused({"expires": 5, key: value}) == f"{key}: {complaint}"


def test_an_empty_definition_is_refused() -> None:
    assert refused({}) == "its definition is empty: it needs at least one key"


def test_a_federation_has_one_upstream_or_a_set() -> None:
    both: Table = {"federation-upstream": "a", "federation-upstream-set": "b"}
    assert refused(both) == "federation-upstream and federation-upstream-set can't be set together"


def test_keys_without_effect_are_listed() -> None:
    definition: Table = {"ha-mode": "all", "max-length": 1, "target-group-size": 5}
    assert without_effect(definition) == ["ha-mode", "target-group-size"]


@pytest.mark.parametrize(
    ("definition", "types"),
    [
        ({"max-length-bytes": 1}, "classic quorum stream"),
        ({"max-length": 1}, "classic quorum"),
        ({"max-length": 1, "alternate-exchange": "x"}, "classic quorum"),
        ({"overflow": "reject-publish"}, "classic quorum"),
        ({"overflow": "reject-publish-dlx"}, "classic"),
        ({"max-in-memory-length": 1}, "quorum"),
        ({"delayed-retry-type": "all"}, "quorum"),
        ({"max-age": "1h"}, "stream"),
        ({"max-age": "1h", "max-length-bytes": 5}, "stream"),
        ({"archive": "cold"}, "stream"),
        ({"max-age": "1h", "max-length": 5}, ""),
        ({"ha-mode": "all"}, "classic quorum stream"),
        ({"target-group-size": 5, "max-length": 5}, "classic quorum"),
    ],
)
def test_policy_applies_to_types_that_support_all_its_keys(definition: Table, types: str) -> None:
    found = [kind for kind in ("classic", "quorum", "stream") if is_for(definition, kind)]
    assert found == types.split()
