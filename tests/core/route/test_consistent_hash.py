"""x-consistent-hash (amqp.md section 4): weights, what is hashed, what is refused."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.core.definitions.support import new_broker, restarted
from tests.core.route.support import FakeQueue, exchange
from warrenmq.core.message.model import FieldValue, MessageHeaders, Properties, Table
from warrenmq.core.route.exchange import Exchange
from warrenmq.core.wire import properties as wire

KEYS = 100_000
WEIGHTS = {"a": "10", "b": "10", "c": "20", "d": "20"}


def hashing(weights: dict[str, str] = WEIGHTS, /, **arguments: FieldValue) -> Exchange:
    made = exchange("x-consistent-hash", "x", **arguments)
    for name, weight in weights.items():
        made.bind(FakeQueue(name), weight, {})
    return made


def place(source: Exchange, key: str, headers: Table | None = None) -> str:
    (found,) = source.match(key, headers)
    return found.name


def places(source: Exchange, count: int = 2000) -> list[str]:
    return [place(source, f"key-{number}") for number in range(count)]


def message(headers: Table | None = None, **properties: Any) -> MessageHeaders:
    """What a message with these properties is routed by."""
    raw = wire.encode(Properties(headers=headers, **properties))
    return MessageHeaders(headers or {}, raw)


# -- weights


def test_shares_of_100_000_random_keys_are_within_5_percent_of_their_weights() -> None:
    source, chance = hashing(), Random(7)
    counts = Counter(place(source, chance.randbytes(9).hex()) for _ in range(KEYS))
    for name, weight in WEIGHTS.items():
        assert counts[name] / KEYS == pytest.approx(int(weight) / 60, rel=0.05)


def test_a_queue_bound_takes_about_its_share_and_moves_nothing_else() -> None:
    source = hashing()
    before = places(source)
    source.bind(FakeQueue("new"), "20", {})
    moved = [new for old, new in zip(before, places(source), strict=True) if old != new]
    assert set(moved) == {"new"}
    assert len(moved) / len(before) == pytest.approx(20 / 80, rel=0.1)


def test_second_binding_of_a_queue_is_ignored_until_the_first_is_removed() -> None:
    source = hashing({"a": "10", "b": "10"})
    before, queue = places(source), next(iter(source.destinations))
    assert not source.bind(queue, "10", {})
    assert source.bind(queue, "1000", {})
    assert source.binding_count == 3
    assert places(source) == before
    source.unbind(queue, "10", {})
    assert places(source).count("a") > 1950
    source.unbind(queue, "1000", {})
    assert set(places(source)) == {"b"}


# -- what is hashed


@pytest.mark.parametrize(
    "arguments",
    [
        {"hash_header": "user"}, {"x_hash_on": "user"}, {"hash_property": "message_id"},
        {"hash_property": "correlation_id"}, {"hash_property": "timestamp"},
    ],
)  # fmt: skip
def test_messages_without_the_hashed_value_go_to_one_queue(
    arguments: dict[str, FieldValue],
) -> None:
    source = hashing(**arguments)
    without: list[Table | None] = [
        None,
        {},
        message(),
        message({"other": 1}, app_id="a"),
        message({"user": None}),
    ]
    found = {place(source, key, headers) for key in ("k", "l", "m") for headers in without}
    assert found == {place(hashing(), "")}


# -- restarts


def test_mapping_survives_a_restart_and_rebinding() -> None:
    broker, store = new_broker()
    vhost = broker.vhosts["/"]
    source = vhost.declare_exchange(
        "x", "x-consistent-hash", durable=True, auto_delete=False, internal=False, arguments={}
    )
    for name, weight in WEIGHTS.items():
        vhost.bindings.add(source, vhost.declare_queue(name, durable=True), weight, {})
        # Ignored, and so it must be after a restart.
        vhost.bindings.add(source, vhost.queues[name], "5000", {})
    before = places(source)
    again = restarted(store)[0].vhosts["/"]
    assert again.exchanges["x"].binding_count == 8
    assert places(again.exchanges["x"]) == before
    for name in ("c", "a"):
        again.bindings.remove(again.exchanges["x"], again.queues[name], WEIGHTS[name], {})
        again.bindings.remove(again.exchanges["x"], again.queues[name], "5000", {})
        again.bindings.add(again.exchanges["x"], again.queues[name], WEIGHTS[name], {})
    assert places(again.exchanges["x"]) == before == places(hashing())
