from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.core.route.support import FakeQueue
from warrenmq.core.model import Table
from warrenmq.core.route.binding import Binding, GroupedBindings

QUEUES = [FakeQueue(f"q{number}") for number in range(3)]
TABLES: list[Table] = [{}, {"a": 1}, {"a": True}, {"a": [1, {"b": "c"}]}]

bindings = st.builds(
    Binding, st.sampled_from(QUEUES), st.sampled_from(["", "k"]), st.sampled_from(TABLES)
)


def test_bindings_are_equal_by_ends_key_and_argument_values() -> None:
    queue = FakeQueue("q")
    binding = Binding(queue, "k", {"n": 5, "s": "a"})
    assert binding == Binding(queue, "k", {"s": b"a", "n": 5.0})
    assert hash(binding) == hash(Binding(queue, "k", {"s": b"a", "n": 5.0}))
    assert binding != Binding(FakeQueue("q"), "k", {"n": 5, "s": "a"})
    assert binding != Binding(queue, "l", {"n": 5, "s": "a"})
    assert binding != Binding(queue, "k", {"n": 5})
    assert Binding(queue, "k", {"n": 1}) != Binding(queue, "k", {"n": True})


def test_repeats_are_refused_and_the_first_is_the_one_that_stays() -> None:
    queue, grouped = FakeQueue("q"), GroupedBindings[str]()
    first = Binding(queue, "k", {"n": 5})
    assert grouped.add("k", first)
    assert not grouped.add("k", Binding(queue, "k", {"n": 5.0}))
    assert grouped.discard("k", Binding(queue, "k", {"n": 5.0})) is first
    assert grouped.discard("k", first) is None
    assert "k" not in grouped


@given(st.lists(st.tuples(st.sampled_from(["add", "discard", "pop"]), st.integers(0, 1), bindings)))
def test_groups_act_like_plain_ordered_lists(steps: list[tuple[str, int, Binding]]) -> None:
    grouped, plain = GroupedBindings[int](), dict[int, list[Binding]]()
    for action, key, binding in steps:
        held = plain.setdefault(key, [])
        if action == "pop":
            assert list(grouped.pop(key)) == plain.pop(key)
        elif action == "add":
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
