from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.route.support import FakeQueue, exchange
from warren.core.errors import ChannelError
from warren.core.model import FieldValue, Table
from warren.core.route.exchange import Destination, Exchange
from warren.core.route.registry import exchange_types

TYPES = ["direct", "fanout", "topic", "headers"]


@pytest.fixture(params=TYPES)
def source(request: pytest.FixtureRequest) -> Exchange:
    return exchange(request.param, "source")


def matched(exchange: Exchange) -> list[Destination]:
    return list(exchange.match("k", {"a": 1}))


def test_a_binding_counts_once(source: Exchange) -> None:
    queue = FakeQueue("q")
    assert source.bind(queue, "k", {"a": 1})
    assert not source.bind(queue, "k", {"a": 1.0})
    assert source.bind(queue, "k", {})
    assert source.binding_count == 2
    assert [(b.destination, b.routing_key, b.arguments) for b in source.bindings()] == [
        (queue, "k", {"a": 1}),
        (queue, "k", {}),
    ]


def test_unbind_takes_one_and_may_be_repeated(source: Exchange) -> None:
    queue = FakeQueue("q")
    source.bind(queue, "k", {"a": 1})
    source.bind(queue, "k", {})
    assert not source.unbind(queue, "other", {})
    assert source.unbind(queue, "k", {"a": 1.0})
    assert not source.unbind(queue, "k", {"a": 1})
    assert (source.binding_count, set(matched(source))) == (1, {queue})
    assert source.unbind(queue, "k", {})
    assert (source.binding_count, matched(source)) == (0, [])


def test_unbind_all_takes_one_destination(source: Exchange) -> None:
    going, staying = FakeQueue("going"), FakeQueue("staying")
    for key in ("k", "l", "*.k"):
        source.bind(going, key, {})
        source.bind(staying, key, {})
    assert source.unbind_all(going) == 3
    assert source.unbind_all(going) == 0
    assert source.binding_count == 3
    assert set(matched(source)) == {staying}


def test_clear_takes_all(source: Exchange) -> None:
    target = exchange("fanout", "target")
    source.bind(target, "k", {})
    source.bind(FakeQueue("q"), "k", {})
    source.clear()
    assert (source.binding_count, list(source.bindings()), matched(source)) == (0, [], [])
    assert target.incoming == ()


def links(source: Exchange, target: Exchange) -> tuple[bool, list[Exchange]]:
    return source.reaches_exchanges, list(target.incoming)


def test_exchanges_know_who_leads_to_them(source: Exchange) -> None:
    target, other = exchange("fanout", "target"), exchange("direct", "other")
    for key in ("k", "l"):
        source.bind(target, key, {})
    other.bind(target, "k", {})
    assert links(source, target) == (True, [source, other])
    source.unbind(target, "k", {})
    assert links(source, target) == (True, [source, other])
    source.unbind(target, "l", {})
    assert links(source, target) == (False, [other])
    other.unbind_all(target)
    assert links(source, target) == (False, [])


def test_an_exchange_may_lead_to_itself(source: Exchange) -> None:
    source.bind(source, "k", {})
    assert links(source, source) == (True, [source])
    assert matched(source) == [source]
    source.clear()
    assert links(source, source) == (False, [])


@pytest.mark.parametrize("name", ["other", "", "ä" * 127])
def test_the_alternate_is_a_name(name: str) -> None:
    assert exchange("direct", alternate_exchange=name).alternate == name
    assert exchange("direct").alternate is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'x' in vhost '/'"),
        (None, "invalid type 'void' for arg"),
        (True, "invalid type 'bool' for arg"),
        ("a\r", "invalid arg 'alternate-exchange' for exchange 'x' in vhost '/': "),
        ("a\n", "not the name of an exchange"),
        ("ä" * 128, "not the name of an exchange"),
    ],
)
def test_an_alternate_that_is_no_name_is_refused(value: FieldValue, text: str) -> None:
    with pytest.raises(ChannelError, match=text) as refusal:
        exchange("direct", alternate_exchange=value)
    assert refusal.value.code == 406


@pytest.mark.parametrize("argument", ["x-persist-messages", "x-persist-ms"])
def test_known_arguments_that_are_not_built_are_refused(argument: str) -> None:
    with pytest.raises(ChannelError, match="is not supported") as refusal:
        exchange("direct", **{argument: 5})
    assert refusal.value.code == 406


def test_unknown_arguments_are_kept() -> None:
    assert exchange("direct", x_colour="red").arguments == {"x-colour": "red"}


QUEUES = [FakeQueue(f"q{number}") for number in range(3)]
KEYS = ["k", "#", "*", "l"]
TABLES: list[Table] = [{}, {"a": 1}, {"a": 2}, {"x-match": "any"}, {"x-match": "any", "a": None}]

Wish = tuple[FakeQueue, str, int]
wishes = st.tuples(st.sampled_from(QUEUES), st.sampled_from(KEYS), st.integers(0, len(TABLES) - 1))


def bind(source: Exchange, held: list[Wish], wish: Wish) -> None:
    queue, key, table = wish
    assert source.bind(queue, key, TABLES[table]) == (wish not in held)
    held += [] if wish in held else [wish]


def unbind(source: Exchange, held: list[Wish], wish: Wish) -> None:
    queue, key, table = wish
    assert source.unbind(queue, key, TABLES[table]) == (wish in held)
    held[:] = [other for other in held if other != wish]


def unbind_all(source: Exchange, held: list[Wish], wish: Wish) -> None:
    assert source.unbind_all(wish[0]) == sum(other[0] is wish[0] for other in held)
    held[:] = [other for other in held if other[0] is not wish[0]]


Step = Callable[[Exchange, list[Wish], Wish], None]


@given(
    st.sampled_from(TYPES),
    st.lists(st.tuples(st.sampled_from([bind, bind, unbind, unbind_all]), wishes), max_size=40),
)
def test_any_history_leaves_what_a_fresh_exchange_would_have(
    type_name: str, steps: list[tuple[Step, Wish]]
) -> None:
    source = exchange(type_name)
    held: list[Wish] = []
    for step, wish in steps:
        step(source, held, wish)
    fresh = exchange(type_name)
    for queue, key, table in held:
        fresh.bind(queue, key, TABLES[table])
    assert source.binding_count == len(held) == len(list(source.bindings()))
    for key in ("k", "other", ""):
        for headers in (None, {"a": 1}, {"a": 2, "b": 1}):
            assert set(source.match(key, headers)) == set(fresh.match(key, headers))


def test_every_built_in_type_is_tested_here() -> None:
    assert sorted(exchange_types) == sorted(TYPES)
