from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.route.trie import MAX_STARRED_WORDS, TopicTrie, _Node, split_words, suits_trie

words = st.sampled_from(["a", "b", ""])
keys = st.lists(words, max_size=6).map(".".join)
patterns = st.tuples(
    st.lists(st.sampled_from(["a", "b", "", "*"]), max_size=6), st.sampled_from([[], ["#"]])
).map(lambda parts: ".".join([*parts[0], *parts[1]]))


def matches(pattern: list[str], key: list[str]) -> bool:
    """The definition itself, as short as it can be said."""
    if not pattern:
        return not key
    if pattern[0] == "#":
        return matches(pattern[1:], key) or (bool(key) and matches(pattern, key[1:]))
    return bool(key) and pattern[0] in ("*", key[0]) and matches(pattern[1:], key[1:])


LONG = ".".join("a" * (MAX_STARRED_WORDS - 1))


@pytest.mark.parametrize("pattern", ["", "#", "a.#", "*.*.#", f"{LONG}.*", f"{LONG}.a.a.#", "#a"])
def test_suits_what_is_walked_in_few_steps(pattern: str) -> None:
    assert suits_trie(pattern)


@pytest.mark.parametrize("pattern", ["#.a", "a.#.b", "#.#", f"{LONG}.*.a", f"{LONG}.*.#"])
def test_does_not_suit_what_many_nodes_lead_to(pattern: str) -> None:
    assert not suits_trie(pattern)


@given(st.sets(patterns, max_size=12), keys)
def test_matches_each_pattern_once_as_the_definition_says(held: set[str], key: str) -> None:
    trie = TopicTrie()
    for pattern in held:
        trie.add(pattern)
    expected = [one for one in held if matches(split_words(one), split_words(key))]
    assert sorted(trie.match(key)) == sorted(expected)


@given(st.lists(patterns, max_size=12), st.data(), keys)
def test_a_discarded_pattern_leaves_no_trace(
    held: list[str], data: st.DataObject, key: str
) -> None:
    gone = data.draw(st.lists(st.sampled_from([*held, "a.b", "a.b.#", "#"])))
    trie, fresh = TopicTrie(), TopicTrie()
    for pattern in held:
        trie.add(pattern)
    for pattern in gone:
        trie.discard(pattern)
    for pattern in set(held) - set(gone):
        fresh.add(pattern)
    assert sorted(trie.match(key)) == sorted(fresh.match(key))
    assert tree_of(trie._root) == tree_of(fresh._root)


def tree_of(node: _Node | None) -> object:
    """The whole tree as nested tuples, to compare what two tries hold on to."""
    if node is None:
        return None
    words = None if node.words is None else sorted(node.words)
    children = [tree_of(child) for _, child in sorted((node.words or {}).items())]
    return (node.ending, node.open_ended, words, children, tree_of(node.star))
