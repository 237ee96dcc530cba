from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.core.route.support import FakeQueue, exchange


def test_only_the_exact_key_matches() -> None:
    direct, queue, other = exchange("direct"), FakeQueue("q"), FakeQueue("r")
    direct.bind(queue, "a.b", {})
    direct.bind(other, "a.*", {})
    direct.bind(queue, "", {})
    assert list(direct.match("a.b", None)) == [queue]
    assert list(direct.match("a.*", None)) == [other]
    assert list(direct.match("", None)) == [queue]
    assert list(direct.match("a", None)) == []
    assert (direct.uses_key, direct.uses_headers) == (True, False)


@given(st.lists(st.tuples(st.integers(0, 5), st.text("ab", max_size=2))), st.text("ab", max_size=2))
def test_matches_what_was_bound_under_the_key(bound: list[tuple[int, str]], key: str) -> None:
    direct, queues = exchange("direct"), [FakeQueue(str(number)) for number in range(6)]
    for number, bound_key in bound:
        direct.bind(queues[number], bound_key, {})
    expected = dict.fromkeys(queues[number] for number, bound_key in bound if bound_key == key)
    assert list(direct.match(key, None)) == list(expected)
