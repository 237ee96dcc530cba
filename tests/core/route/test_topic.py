from __future__ import annotations

import random
import sys
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.held import held
from tests.core.route.support import FakeQueue, exchange, unbind_each
from warrenmq.core.route.exchange import Exchange
from warrenmq.core.route.topic import normal_form
from warrenmq.core.route.trie import split_words

keys = st.lists(st.sampled_from(["a", "b", ""]), max_size=6).map(".".join)
pattern_words = st.lists(st.sampled_from(["a", "b", "", "*", "#"]), max_size=6)
long_pattern_words = st.lists(st.sampled_from(["a", "b", "", "*"]), min_size=10, max_size=12)
patterns = st.one_of(pattern_words, pattern_words, long_pattern_words).map(".".join)
long_keys = st.lists(st.sampled_from(["a", "b", ""]), min_size=10, max_size=12).map(".".join)


def matches(pattern: list[str], key: list[str]) -> bool:
    """The definition itself, as short as it can be said."""
    if not pattern:
        return not key
    if pattern[0] == "#":
        return matches(pattern[1:], key) or (bool(key) and matches(pattern, key[1:]))
    return bool(key) and pattern[0] in ("*", key[0]) and matches(pattern[1:], key[1:])


def found(topic: Exchange, key: str) -> list[str]:
    return sorted(queue.name for queue in topic.match(key, None))


def bound(held: list[str] | set[str]) -> Exchange:
    """One queue for each pattern, named like it."""
    topic = exchange("topic")
    for pattern in held:
        topic.bind(FakeQueue(pattern), pattern, {})
    return topic


@given(st.sets(patterns, max_size=12), st.one_of(keys, long_keys))
def test_match_agrees_with_the_definition(held: set[str], key: str) -> None:
    expected = [one for one in held if matches(split_words(one), split_words(key))]
    assert found(bound(held), key) == sorted(expected)


@given(st.lists(patterns, unique=True, max_size=12), st.data(), keys)
def test_unbinding_removes_only_its_pattern(
    texts: list[str], data: st.DataObject, key: str
) -> None:
    topic = exchange("topic")
    queues = {pattern: FakeQueue(pattern) for pattern in texts}
    for pattern, queue in queues.items():
        topic.bind(queue, pattern, {})
    for pattern in data.draw(st.lists(st.sampled_from([*texts, "a.b", "#"]))):
        if (gone := queues.pop(pattern, None)) is not None:
            topic.unbind(gone, pattern, {})
    assert found(topic, key) == found(bound(set(queues)), key)
    for pattern, queue in queues.items():
        topic.unbind(queue, pattern, {})
    assert len(held(topic)) <= len(held(bound({"a"})))


@given(pattern_words, keys)
def test_the_normal_form_matches_the_same_keys(words: list[str], key: str) -> None:
    pattern = ".".join(words)
    normal = split_words(normal_form(pattern))
    assert matches(normal, split_words(key)) == matches(split_words(pattern), split_words(key))
    assert not {("#", "#"), ("#", "*")} & set(pairwise(normal))


@pytest.mark.parametrize(
    ("pattern", "normal"),
    [
        ("#.#", "#"),
        ("#.*.#.*", "*.*.#"),
        ("a.#.*.b.#.#", "a.*.#.b.#"),
        ("#.", "#."),
        ("", ""),
        ("#a.*", "#a.*"),
    ],
)
def test_normal_form(pattern: str, normal: str) -> None:
    assert normal_form(pattern) == normal


def test_patterns_of_one_normal_form_are_bindings_of_their_own() -> None:
    topic, queue = exchange("topic"), FakeQueue("q")
    assert topic.bind(queue, "a.#.*", {})
    assert topic.bind(queue, "a.*.#", {})
    assert {binding.routing_key for binding in topic.bindings()} == {"a.#.*", "a.*.#"}
    assert topic.unbind(queue, "a.#.*", {})
    assert set(topic.match("a.b", None)) == {queue}
    assert topic.unbind(queue, "a.*.#", {})
    assert list(topic.match("a.b", None)) == []


@pytest.mark.parametrize("pattern", ["a.#", "a.#.b.#"])
def test_pattern_matches_until_its_last_binding_is_removed(pattern: str) -> None:
    topic, queue, other = exchange("topic"), FakeQueue("q"), FakeQueue("r")
    topic.bind(queue, pattern, {})
    topic.bind(other, pattern, {})
    topic.unbind(queue, pattern, {})
    assert list(topic.match("a.b", None)) == [other]
    unbind_each(topic, other)
    assert list(topic.match("a.b", None)) == []


@pytest.mark.parametrize(
    ("form", "words"),
    [("{0}", "#*a"), ("#.{0}", "#*a"), ("{0}.#", "#*a"), ("{0}.#.{0}", "#*a"), ("{0}.#", "*a")],
)
def test_a_thousand_long_patterns_take_a_bounded_number_of_steps(form: str, words: str) -> None:
    """Walked as a tree they have a hundred thousand nodes, each reached again by most words."""
    chance = random.Random(9)
    length = 120 // form.count("{0}")
    topic = bound({form.format(".".join(chance.choices(words, k=length))) for _ in range(1000)})
    names: list[str] = []

    def match() -> None:
        names.extend(found(topic, ".".join("a" * 127)))

    assert steps_of(match) < 20_000
    assert len(names) == topic.binding_count


def steps_of(call: Callable[[], None]) -> int:
    """How many calls a call makes, those into C included."""
    steps = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return steps
