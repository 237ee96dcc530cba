"""x-consistent-hash (amqp.md section 4): weights, what is hashed, what is refused."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.core.definitions.support import new_broker, restarted
from tests.core.route.support import FakeQueue, exchange
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.model import FieldValue, MessageHeaders, Properties, Table
from warrenmq.core.route.exchange import Exchange
from warrenmq.core.route.resolve import resolve
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


def refused(**arguments: FieldValue) -> str:
    with pytest.raises(ChannelError) as refusal:
        hashing(**arguments)
    assert refusal.value.code == 406
    return refusal.value.explanation


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


def test_a_queue_unbound_leaves_about_its_share_and_moves_nothing_else() -> None:
    source = hashing()
    before = places(source)
    queue = next(one for one in source.destinations if one.name == "c")
    source.unbind(queue, "20", {})
    after = places(source)
    moved = [old for old, new in zip(before, after, strict=True) if old != new]
    assert set(moved) == {"c"}
    assert len(moved) == before.count("c")
    source.bind(queue, "20", {})
    assert places(source) == before


def test_keys_stay_whatever_the_order_of_binding() -> None:
    assert places(hashing(dict(reversed(WEIGHTS.items())))) == places(hashing())


def test_one_bucket_for_a_message_even_with_cc() -> None:
    source = hashing()
    for number in range(100):
        keys = (f"key-{number}", "cc", "bcc")
        route = resolve(source, keys, None, exchange_by_name=lambda _: None, watched=False)
        assert [queue.name for queue in route.queues] == [place(source, keys[0])]


def test_another_binding_of_a_queue_is_ignored_until_the_first_is_gone() -> None:
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


@pytest.mark.parametrize("weight", ["1", "10000", "007", "+5"])
def test_weights(weight: str) -> None:
    assert place(hashing({"a": weight}), "k") == "a"


@pytest.mark.parametrize(
    ("weight", "text"),
    [
        ("0", "The binding key must be greater than 0: '0' for exchange 'x' in vhost '/'"),
        ("-1", "The binding key must be greater than 0: '-1' for"),
        ("10001", "The binding key must be at most 10000: '10001' for exchange 'x' in vhost '/'"),
        ("9" * 255, "The binding key must be at most 10000: '999"),
        ("", "The binding key must be an integer: '' for exchange 'x' in vhost '/'"),
        ("ten", "The binding key must be an integer: 'ten' for"),
        ("1.0", "The binding key must be an integer"),
        ("1_0", "The binding key must be an integer"),
        (" 1", "The binding key must be an integer"),
        ("1\n", "The binding key must be an integer"),
        ("٣", "The binding key must be an integer"),
    ],
)
def test_weights_that_are_refused(weight: str, text: str) -> None:
    with pytest.raises(ChannelError) as refusal:
        hashing({"a": weight})
    assert refusal.value.code == 406
    assert refusal.value.explanation.startswith(text)


def test_nothing_bound_is_no_route() -> None:
    assert list(hashing({}).match("k", None)) == []


# -- what is hashed


def depends(source: Exchange) -> tuple[bool, bool]:
    return source.uses_key, source.uses_headers


def test_the_key_alone_decides_and_can_be_remembered() -> None:
    source = hashing()
    assert depends(source) == (True, False)
    assert place(source, "k", message({"a": 1}, message_id="1")) == place(source, "k")


@pytest.mark.parametrize("argument", ["hash_header", "x_hash_on"])
def test_a_header_decides(argument: str) -> None:
    source = hashing(**{argument: "user"})
    assert depends(source) == (False, True)
    for number in range(100):
        assert place(source, "any", message({"user": f"key-{number}"})) == place(
            hashing(), f"key-{number}"
        )


def test_numbers_in_the_header_count_by_value() -> None:
    source = hashing(hash_header="n")
    for number in range(100):
        assert place(source, "", message({"n": number})) == place(
            source, "", message({"n": float(number)})
        )


@pytest.mark.parametrize("name", ["message_id", "correlation_id"])
def test_a_text_property_decides(name: str) -> None:
    source = hashing(hash_property=name)
    assert depends(source) == (False, True)
    for number in range(100):
        text = f"key-{number}"
        beside = {"app_id": "a", "type": "t", "reply_to": "r"}
        headers = message({name: "other"}, **{name: text}, **beside)
        assert place(source, "any", headers) == place(hashing(), text)


def test_the_timestamp_decides() -> None:
    source = hashing(hash_property="timestamp")
    found = Counter(
        place(source, "any", message(timestamp=1_795_219_200 + second)) for second in range(600)
    )
    assert sorted(found) == ["a", "b", "c", "d"]
    assert found["c"] == pytest.approx(200, rel=0.25)


@pytest.mark.parametrize(
    "arguments",
    [
        {"hash_header": "user"}, {"x_hash_on": "user"}, {"hash_property": "message_id"},
        {"hash_property": "correlation_id"}, {"hash_property": "timestamp"},
    ],
)  # fmt: skip
def test_a_message_without_header_or_property_goes_to_one_fixed_queue(
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


# -- arguments


@pytest.mark.parametrize("algorithm", ["ring", "jump"])
def test_algorithms_of_lavinmq(algorithm: str) -> None:
    assert places(hashing(x_algorithm=algorithm)) == places(hashing())


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"hash_header": "a", "hash_property": "message_id"},
            "hash-header and hash-property are mutually exclusive: exchange 'x' in vhost '/'",
        ),
        (
            {"hash_header": "a", "x_hash_on": "a"},
            "hash-header and x-hash-on are mutually exclusive: exchange 'x' in vhost '/'",
        ),
        (
            {"x_hash_on": "a", "hash_property": "message_id"},
            "hash-property and x-hash-on are mutually exclusive: exchange 'x' in vhost '/'",
        ),
        (
            {"hash_property": "app_id"},
            "Unsupported property: app_id; hash-property of exchange 'x' in vhost '/' can be "
            "message_id, correlation_id, timestamp",
        ),
        ({"hash_property": "message-id"}, "Unsupported property: message-id; "),
        (
            {"hash_property": 5},
            "invalid type 'signedint' for arg 'hash-property' in exchange 'x' in vhost '/'",
        ),
        ({"hash_header": None}, "invalid type 'void' for arg 'hash-header' in exchange 'x'"),
        ({"x_hash_on": True}, "invalid type 'bool' for arg 'x-hash-on' in exchange 'x'"),
        ({"x_algorithm": 1}, "invalid type 'signedint' for arg 'x-algorithm' in exchange 'x'"),
        (
            {"x_algorithm": "maglev"},
            "invalid arg 'x-algorithm' for exchange 'x' in vhost '/': 'maglev' is neither ring "
            "nor jump",
        ),
    ],
)
def test_arguments_that_are_refused(arguments: dict[str, FieldValue], text: str) -> None:
    assert refused(**arguments).startswith(text)


# -- restarts


def test_keys_stay_over_a_restart_and_over_unbind_and_bind_again() -> None:
    broker, store = new_broker()
    vhost = broker.vhosts["/"]
    source = vhost.declare_exchange(
        "x", "x-consistent-hash", durable=True, auto_delete=False, internal=False, arguments={}
    )
    for name, weight in WEIGHTS.items():
        vhost.bind(source, vhost.declare_queue(name, durable=True), weight, {})
        # Ignored, and so it must be after a restart.
        vhost.bind(source, vhost.queues[name], "5000", {})
    before = places(source)
    again = restarted(store)[0].vhosts["/"]
    assert again.exchanges["x"].binding_count == 8
    assert places(again.exchanges["x"]) == before
    for name in ("c", "a"):
        again.unbind(again.exchanges["x"], again.queues[name], WEIGHTS[name], {})
        again.unbind(again.exchanges["x"], again.queues[name], "5000", {})
        again.bind(again.exchanges["x"], again.queues[name], WEIGHTS[name], {})
    assert places(again.exchanges["x"]) == before == places(hashing())
