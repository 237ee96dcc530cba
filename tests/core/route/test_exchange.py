from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.route.support import FakeQueue, exchange, unbind_each
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.model import FieldValue, Table
from warrenmq.core.route.exchange import Exchange
from warrenmq.core.route.registry import exchange_types

TYPES = [
    "direct",
    "fanout",
    "topic",
    "headers",
    "x-consistent-hash",
    "x-modulus-hash",
    "x-recent-history",
]
ANY_OF = ["x-random", "x-local-random"]
"""Whom these give a message to is not decided by it."""
ARGUMENTS: dict[str, dict[str, FieldValue]] = {"x-delayed-message": {"x_delayed_type": "direct"}}


@pytest.fixture(params=[*TYPES, *ANY_OF, *ARGUMENTS])
def source(request: pytest.FixtureRequest) -> Exchange:
    """Keys are numbers here, for those types to which a key is a weight."""
    return exchange(request.param, "source", **ARGUMENTS.get(request.param, {}))


def links(source: Exchange, target: Exchange) -> tuple[bool, list[Exchange]]:
    return source.reaches_exchanges, list(target.incoming)


def test_incoming_lists_the_bound_exchanges(source: Exchange) -> None:
    target, other = exchange("fanout", "target"), exchange("direct", "other")
    for key in ("1", "2"):
        source.bind(target, key, {})
    other.bind(target, "1", {})
    assert links(source, target) == (True, [source, other])
    source.unbind(target, "1", {})
    assert links(source, target) == (True, [source, other])
    source.unbind(target, "2", {})
    assert links(source, target) == (False, [other])
    unbind_each(other, target)
    assert links(source, target) == (False, [])


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
def test_invalid_alternate_name_is_refused(value: FieldValue, text: str) -> None:
    with pytest.raises(ChannelError, match=text) as refusal:
        exchange("direct", alternate_exchange=value)
    assert refusal.value.code == 406


QUEUES = [FakeQueue(f"q{number}") for number in range(3)]
KEYS = ["1", "#", "*", "2"]
WEIGHTS = ["1", "2", "30", "400"]
TABLES: list[Table] = [{}, {"a": 1}, {"a": 2}, {"x-match": "any"}, {"x-match": "any", "a": None}]

Wish = tuple[FakeQueue, str, int]


def wishes(keys: list[str]) -> st.SearchStrategy[Wish]:
    return st.tuples(
        st.sampled_from(QUEUES), st.sampled_from(keys), st.integers(0, len(TABLES) - 1)
    )


def bind(source: Exchange, held: list[Wish], wish: Wish) -> None:
    queue, key, table = wish
    assert source.bind(queue, key, TABLES[table]) == (wish not in held)
    held += [] if wish in held else [wish]


def unbind(source: Exchange, held: list[Wish], wish: Wish) -> None:
    queue, key, table = wish
    assert source.unbind(queue, key, TABLES[table]) == (wish in held)
    held[:] = [other for other in held if other != wish]


def unbind_all(source: Exchange, held: list[Wish], wish: Wish) -> None:
    assert unbind_each(source, wish[0]) == sum(other[0] is wish[0] for other in held)
    held[:] = [other for other in held if other[0] is not wish[0]]


Step = Callable[[Exchange, list[Wish], Wish], None]


def histories(keys: list[str]) -> st.SearchStrategy[list[tuple[Step, Wish]]]:
    steps = st.sampled_from([bind, bind, unbind, unbind_all])
    return st.lists(st.tuples(steps, wishes(keys)), max_size=40)


@given(
    st.sampled_from(TYPES).flatmap(
        lambda name: st.tuples(
            st.just(name), histories(WEIGHTS if name == "x-consistent-hash" else KEYS)
        )
    )
)
def test_any_history_of_bindings_matches_as_a_new_exchange(
    history: tuple[str, list[tuple[Step, Wish]]],
) -> None:
    type_name, steps = history
    source = exchange(type_name)
    held: list[Wish] = []
    for step, wish in steps:
        step(source, held, wish)
    fresh = exchange(type_name)
    for queue, key, table in held:
        fresh.bind(queue, key, TABLES[table])
    assert source.binding_count == len(held) == len(list(source.bindings()))
    for key in ("1", "other", ""):
        for headers in (None, {"a": 1}, {"a": 2, "b": 1}):
            assert set(source.match(key, headers)) == set(fresh.match(key, headers))


def test_every_built_in_type_is_tested_here() -> None:
    assert sorted(exchange_types) == sorted([*TYPES, *ANY_OF])
