from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.route.support import FakeQueue
from tests.support.amqp import make_broker
from warrenmq.core.message.model import Table
from warrenmq.core.route.binding import Binding, GroupedBindings

MANY = 500
QUEUES = [FakeQueue(f"q{number}") for number in range(3)]
TABLES: list[Table] = [{}, {"a": 1}, {"a": True}, {"a": [1, {"b": "c"}]}]

bindings = st.builds(
    Binding, st.sampled_from(QUEUES), st.sampled_from(["", "k"]), st.sampled_from(TABLES)
)


def test_a_binding_is_found_without_a_look_at_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a queue that has very many."""
    compared: list[object] = []
    equal = Binding.__eq__

    def compare(self: Binding, other: object) -> bool:
        compared.append(other)
        return equal(self, other)

    monkeypatch.setattr(Binding, "__eq__", compare)
    vhost = make_broker().vhosts["/"]
    queue, source = vhost.declare_queue("q"), vhost.exchanges["amq.topic"]
    for number in range(2 * MANY):
        vhost.bindings.add(source, queue, str(number % MANY), {})
    for number in range(MANY):
        vhost.bindings.remove(source, queue, str(number), {})
    assert len(compared) < 10 * MANY
    assert source.binding_count == 0


@given(st.lists(st.tuples(st.sampled_from(["add", "discard"]), st.integers(0, 1), bindings)))
def test_groups_act_like_plain_ordered_lists(steps: list[tuple[str, int, Binding]]) -> None:
    grouped, plain = GroupedBindings[int](), dict[int, list[Binding]]()
    for action, key, binding in steps:
        held = plain.setdefault(key, [])
        if action == "add":
            assert grouped.has(key, binding) == (binding in held)
            assert grouped.add(key, binding) == (binding not in held)
            held += [] if binding in held else [binding]
        else:
            assert (grouped.discard(key, binding) is not None) == (binding in held)
            plain[key] = [other for other in held if other != binding]
        plain = {number: group for number, group in plain.items() if group}
        assert set(grouped.keys()) == set(plain)
        assert {number: list(grouped.group(number)) for number in plain} == plain
        assert sorted(map(id, grouped)) == sorted(
            id(binding) for number in plain for binding in grouped.group(number)
        )
        for number, group in plain.items():
            assert list(grouped.destinations(number)) == [one.destination for one in group]
