from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.route.support import FakeQueue, exchange, unbind_each
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.equivalence import comparable
from warrenmq.core.message.model import FieldValue, Table
from warrenmq.core.route.headers import HeadersExchange

MODES = ["all", "any", "all-with-x", "any-with-x"]


def matches(arguments: Table, headers: Table) -> bool:
    """The definition, one binding at a time."""
    mode = arguments.get("x-match", "all")
    answers = [
        name in headers and (value is None or comparable(value) == comparable(headers[name]))
        for name, value in arguments.items()
        if name != "x-match" and (mode in ("all-with-x", "any-with-x") or name[:2] != "x-")
    ]
    return all(answers) if mode in ("all", "all-with-x") else any(answers)


@pytest.mark.parametrize(
    ("arguments", "matching", "others"),
    [
        (
            {"a": 1, "b": 2},
            [{"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}],
            [{"a": 1}, {"a": 1, "b": 3}],
        ),
        (
            {"x-match": "any", "a": 1, "b": 2},
            [{"a": 1}, {"b": 2, "a": 3}],
            [{}, {"a": 2}, {"c": 1}],
        ),
        ({}, [{}, {"a": 1}], []),
        ({"x-match": "all-with-x"}, [{}, {"a": 1}], []),
        ({"x-match": "any"}, [], [{}, {"a": 1}]),
        ({"x-match": "any-with-x"}, [], [{}, {"x-match": "any-with-x"}]),
        ({"x-a": 1, "b": 2}, [{"b": 2}], [{"x-a": 1}]),
        ({"x-match": "any", "x-a": 1}, [], [{"x-a": 1}]),
        ({"x-match": "all-with-x", "x-a": 1, "b": 2}, [{"x-a": 1, "b": 2}], [{"b": 2}]),
        ({"x-match": "any-with-x", "x-a": 1, "b": 2}, [{"x-a": 1}, {"b": 2}], [{"x-a": 2}]),
        ({"a": None}, [{"a": 1}, {"a": None}, {"a": ""}], [{}, {"b": None}]),
        ({"x-match": "any", "a": None, "b": 1}, [{"a": 0}, {"b": 1}], [{"b": 2}]),
        ({"a": 1}, [{"a": 1.0}, {"a": Decimal(1)}], [{"a": True}, {"a": "1"}, {"a": None}]),
        ({"a": True}, [{"a": True}], [{"a": 1}, {"a": False}]),
        ({"a": "é"}, [{"a": "é"}, {"a": "é".encode()}], [{"a": "e"}, {"a": b"\xe9"}]),
        ({"a": b"\xff"}, [{"a": bytearray(b"\xff")}], [{"a": "\ufffd"}]),
        ({"a": [1, {"b": 2}]}, [{"a": [1.0, {"b": 2}]}], [{"a": [1]}, {"a": [{"b": 2}, 1]}]),
    ],
)
def test_bindings(arguments: Table, matching: list[Table], others: list[Table]) -> None:
    headers_exchange, queue = exchange("headers"), FakeQueue("q")
    headers_exchange.bind(queue, "ignored", arguments)
    for headers in matching:
        assert list(headers_exchange.match("", headers)) == [queue], headers
    for headers in others:
        assert list(headers_exchange.match("", headers)) == [], headers


def test_no_headers_are_as_good_as_empty_ones() -> None:
    headers_exchange, queue, other = exchange("headers"), FakeQueue("q"), FakeQueue("r")
    headers_exchange.bind(queue, "", {})
    headers_exchange.bind(other, "", {"a": None})
    assert list(headers_exchange.match("", None)) == [queue]
    assert (headers_exchange.uses_key, headers_exchange.uses_headers) == (False, True)


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("some", "Invalid x-match field value some; expected all, any, all-with-x, or any-with-x"),
        ("", "Invalid x-match field value ; expected"),
        (5, r"Invalid x-match field type signedint \(value 5\); expected longstr"),
        (None, r"Invalid x-match field type void \(value null\); expected longstr"),
    ],
)
def test_another_x_match_is_refused(mode: FieldValue, text: str) -> None:
    headers_exchange = exchange("headers")
    with pytest.raises(ChannelError, match=text) as refusal:
        headers_exchange.bind(FakeQueue("q"), "", {"x-match": mode})
    assert refusal.value.code == 406
    assert headers_exchange.binding_count == 0


values: st.SearchStrategy[FieldValue] = st.sampled_from([None, True, 1, 1.0, 2, "a", b"a", "b"])
names = st.sampled_from(["a", "b", "c", "x-a"])
tables: st.SearchStrategy[Table] = st.dictionaries(names, values, max_size=4)
modes: st.SearchStrategy[Table] = st.sampled_from([{}, *({"x-match": mode} for mode in MODES)])
arguments = st.builds(lambda mode, table: mode | table, modes, tables)


@given(st.lists(arguments, max_size=8), tables, st.data())
def test_matches_as_the_definition_says(
    wanted: list[Table], headers: Table, data: st.DataObject
) -> None:
    headers_exchange = exchange("headers")
    queues = [FakeQueue(str(number)) for number in range(len(wanted))]
    for queue, table in zip(queues, wanted, strict=True):
        headers_exchange.bind(queue, "", table)
    gone = data.draw(st.sets(st.sampled_from(queues))) if queues else set()
    for queue in gone:
        unbind_each(headers_exchange, queue)
    expected = [
        queue
        for queue, table in zip(queues, wanted, strict=True)
        if queue not in gone and matches(table, headers)
    ]
    found = list(headers_exchange.match("", headers))
    assert sorted(queue.name for queue in found) == sorted(queue.name for queue in expected)


def test_what_is_unbound_leaves_no_trace() -> None:
    headers_exchange, queue = exchange("headers"), FakeQueue("q")
    for mode in MODES:
        headers_exchange.bind(queue, "", {"x-match": mode, "a": 1, "b": None})
    unbind_each(headers_exchange, queue)
    assert isinstance(headers_exchange, HeadersExchange)
    assert headers_exchange._by_fact == {}
