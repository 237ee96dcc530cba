from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.core.held import held
from tests.core.route.support import FakeQueue, exchange, unbind_each
from warrenmq.core.message.equivalence import comparable
from warrenmq.core.message.model import FieldValue, Table

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


def test_no_headers_match_as_empty_ones() -> None:
    headers_exchange, queue, other = exchange("headers"), FakeQueue("q"), FakeQueue("r")
    headers_exchange.bind(queue, "", {})
    headers_exchange.bind(other, "", {"a": None})
    assert list(headers_exchange.match("", None)) == [queue]
    assert (headers_exchange.uses_key, headers_exchange.uses_headers) == (False, True)


values: st.SearchStrategy[FieldValue] = st.sampled_from([None, True, 1, 1.0, 2, "a", b"a", "b"])
names = st.sampled_from(["a", "b", "c", "x-a"])
tables: st.SearchStrategy[Table] = st.dictionaries(names, values, max_size=4)
modes: st.SearchStrategy[Table] = st.sampled_from([{}, *({"x-match": mode} for mode in MODES)])
arguments = st.builds(lambda mode, table: mode | table, modes, tables)


@given(st.lists(arguments, max_size=8), tables, st.data())
def test_match_agrees_with_the_definition(
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


def test_unbinding_empties_the_index() -> None:
    headers_exchange, queue = exchange("headers"), FakeQueue("q")
    before = len(held(headers_exchange))
    for mode in MODES:
        for number in range(20):
            headers_exchange.bind(queue, "", {"x-match": mode, f"a{number}": number, "b": None})
    unbind_each(headers_exchange, queue)
    assert len(held(headers_exchange)) <= before
