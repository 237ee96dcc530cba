"""The history of a dead letter, against a model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.message.model import FieldValue, Properties, Table
from warrenmq.core.wire import properties as wire
from warrenmq.core.wire.death import add_death, would_cycle
from warrenmq.core.wire.properties import read_attributes
from warrenmq.core.wire.tables import (
    MAX_ENTRIES,
    decode_checked,
    encode_table,
    entries,
    join_entries,
)

from .support import TABLES

TIME_S = 1_700_000_000
REASONS = ("expired", "rejected", "maxlen", "delivery_limit")


class Death(NamedTuple):
    queue: str
    reason: str
    exchange: str = "x"
    routing_key: str = "k"
    keep_keys: bool = True


DEATHS = st.builds(
    Death,
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(REASONS),
    st.sampled_from(["", "x"]),
    st.sampled_from(["k", "l"]),
    st.booleans(),
)


def die(raw: bytes, death: Death) -> tuple[bytes, list[str], Table]:
    """The new list, the keys that travel on, and the new headers."""
    dead_letter = add_death(
        raw,
        queue=death.queue,
        reason=death.reason,
        exchange=death.exchange,
        routing_key=death.routing_key,
        time_s=TIME_S,
        keep_keys=death.keep_keys,
    )
    headers = wire.decode(dead_letter.properties).headers
    assert headers is not None
    assert [decode_checked(join_entries(old)) for old in dead_letter.deaths] == headers["x-death"]
    return dead_letter.properties, dead_letter.copies, headers


def after(properties: Properties, *deaths: Death) -> Properties:
    raw = wire.encode(properties)
    for death in deaths:
        raw = die(raw, death)[0]
    read_attributes(raw, 0, len(raw))
    return wire.decode(raw)


def headers_after(headers: Table, *deaths: Death) -> dict[str, Any]:
    return after(Properties(headers=headers), *deaths).headers or {}


class Model:
    """What the headers are to be, with nothing but dictionaries."""

    def __init__(self, properties: Properties) -> None:
        self.headers: dict[str, Any] = dict(properties.headers or {})
        self.expiration = properties.expiration

    def die(self, death: Death) -> list[str]:
        copies = self.keys("CC")
        known = self.headers.get("x-death")
        history = [old for old in known if isinstance(old, dict)] if isinstance(known, list) else []
        new: dict[str, Any] = {
            "count": 1,
            "exchange": death.exchange,
            "queue": death.queue,
            "reason": death.reason,
            "routing-keys": [death.routing_key, *copies],
            "time": datetime.fromtimestamp(TIME_S, UTC),
        }
        if self.expiration is not None:
            new["original-expiration"] = self.expiration
        same = [
            old
            for old in history
            if (old.get("queue"), old.get("reason")) == (death.queue, death.reason)
        ]
        if same:
            new = {**same[0], "count": same[0]["count"] + 1}
            history = [old for old in history if old not in same]
        for name in ("queue", "reason", "exchange"):
            if not history and not same:
                self.headers[f"x-first-death-{name}"] = getattr(death, name)
            self.headers.setdefault(f"x-first-death-{name}", getattr(death, name))
            self.headers[f"x-last-death-{name}"] = getattr(death, name)
        self.headers["x-death"] = [new, *history]
        if not death.keep_keys:
            self.headers.pop("CC", None)
        self.expiration = None
        return copies if death.keep_keys else []

    def keys(self, name: str) -> list[str]:
        value = self.headers.get(name)
        return [key for key in value if isinstance(key, str)] if isinstance(value, list) else []


COPIES = st.lists(st.sampled_from(["cc1", "cc2"]), max_size=2)


@given(
    TABLES, st.none() | COPIES, st.sampled_from([None, "5000"]),
    st.lists(DEATHS, min_size=1, max_size=8),
)  # fmt: skip
def test_deaths_against_a_model(
    headers: Table,
    copies: list[str] | None,
    expiration: str | None,
    deaths: list[Death],
) -> None:
    made = Properties(headers=headers, expiration=expiration, message_id="m", priority=3)
    if copies is not None:
        headers["CC"] = list(copies)
    model, raw = Model(made), wire.encode(made)
    for death in deaths:
        travelling = model.die(death)
        raw, keys, decoded = die(raw, death)
        assert keys == travelling
        assert decoded == model.headers
    assert read_attributes(raw, 0, len(raw)).expiration is None
    made.headers, made.expiration = model.headers, None
    assert wire.decode(raw) == made


def summary(headers: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(old["queue"], old["reason"], old["count"]) for old in headers["x-death"]]


def test_duplicate_entries_are_merged() -> None:
    same: list[FieldValue] = [
        {"queue": "q", "reason": "expired", "count": count} for count in (4, 2)
    ]
    headers = headers_after({"x-death": [*same, {"queue": "r"}]}, Death("q", "expired"))
    assert headers["x-death"] == [
        {"queue": "q", "reason": "expired", "count": 5}, {"queue": "r"},
    ]  # fmt: skip


def test_counts_are_64_bits_wide() -> None:
    raw = wire.encode(Properties())
    for count in (1, 2):
        raw = die(raw, Death("q", "expired"))[0]
        table = wire.split(raw)[wire.HEADERS]
        history = dict(entries(table))[b"x-death"]
        assert history.count(b"\x05countl" + count.to_bytes(8, "big")) == 1


def test_other_headers_stay_octet_for_octet() -> None:
    odd = b"\x01aT" + (2**62).to_bytes(8, "big") + b"\x01bS\x00\x00\x00\x01\xff\x01ci" + b"\xff" * 4
    raw = b"\x20\x00" + len(odd).to_bytes(4, "big") + odd
    dead = die(raw, Death("q", "expired"))[0]
    assert odd in dead


ODD_HISTORIES: list[FieldValue] = [
    None,
    "text",
    {"queue": "q", "reason": "expired", "count": 5},
    [],
    ["q", None, 7, [{}]],
    [{}],
    [{"queue": "q"}, {"reason": "expired"}],
    [{"queue": 1, "reason": True, "count": "many"}],
    [{"queue": "other", "reason": "expired", "count": 2**63 - 1, "time": b"\xff", "f": 0.1}],
]


def test_a_full_table() -> None:
    full = wire.encode(Properties(headers={str(number): None for number in range(MAX_ENTRIES)}))
    read_attributes(full, 0, len(full))
    raw, _, headers = die(full, Death("q", "expired"))
    assert len(headers) == MAX_ENTRIES + 7
    assert wire.decode(raw).headers == headers


@pytest.mark.parametrize("history", ODD_HISTORIES)
def test_invalid_histories(history: FieldValue) -> None:
    headers = headers_after({"x-death": history}, Death("q", "expired"))
    kept = [old for old in history if isinstance(old, dict)] if isinstance(history, list) else []
    assert headers["x-death"][0]["queue"] == "q"
    assert headers["x-death"][0]["count"] == 1
    assert headers["x-death"][1:] == kept


@pytest.mark.parametrize(
    ("count", "next_count"),
    [
        (1, 2),
        (2**63 - 2, 2**63 - 1),
        (2**63 - 1, 2**63 - 1),
        (-5, -4),
        ("x", 1),
        (None, 1),
        (1.5, 1),
    ],
)
def test_invalid_counts(count: FieldValue, next_count: int) -> None:
    old: Table = {"queue": "q", "reason": "expired", "count": count}
    assert summary(headers_after({"x-death": [old]}, Death("q", "expired"))) == [
        ("q", "expired", next_count)
    ]


@pytest.mark.parametrize("value", [None, "cc", {"a": 1}, [1, None, "cc"]])
def test_invalid_copies(value: FieldValue) -> None:
    raw, keys, _ = die(wire.encode(Properties(headers={"CC": value})), Death("q", "expired"))
    assert keys == (["cc"] if isinstance(value, list) else [])
    assert (wire.decode(raw).headers or {})["CC"] == value


# -- cycles


def raw_deaths(history: Sequence[FieldValue]) -> list[dict[bytes, bytes]]:
    return [dict(entries(encode_table(old))) for old in history if isinstance(old, dict)]


def cycles(history: Sequence[tuple[str, str]], target: str, reason: str) -> bool:
    """By the rule: newest first, a target that stands there with no `rejected` up to it."""
    if reason == "rejected":
        return False
    queues = [queue for queue, _ in history]
    if target not in queues:
        return False
    place = queues.index(target)
    return all(why != "rejected" for _, why in history[: place + 1])


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(REASONS)), max_size=6),
    st.sampled_from("abcd"),
    st.sampled_from(REASONS),
)
def test_cycles(history: list[tuple[str, str]], target: str, reason: str) -> None:
    table: list[FieldValue] = [{"queue": queue, "reason": why} for queue, why in history]
    assert would_cycle(raw_deaths(table), target, reason) == cycles(history, target, reason)


@pytest.mark.parametrize("history", ODD_HISTORIES)
def test_invalid_history_is_not_a_cycle(history: FieldValue) -> None:
    odd = history if isinstance(history, list) else []
    assert not would_cycle(raw_deaths(odd), "nowhere", "expired")
