from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.core.route.test_trie import keys, matches
from warrenmq.core.route.automaton import GROUP_BITS, PatternAutomaton
from warrenmq.core.route.topic import normal_form
from warrenmq.core.route.trie import split_words

words = st.sampled_from(["a", "b", "", "*", "#"])
patterns = st.lists(words, max_size=6).map(lambda chosen: normal_form(".".join(chosen)))


def filled(held: list[str] | set[str]) -> PatternAutomaton:
    automaton = PatternAutomaton()
    for pattern in held:
        automaton.add(pattern)
    return automaton


def numbered(count: int) -> list[str]:
    """Patterns that fill several blocks, each for one key only and for those that start so."""
    return [f"a.#.{number}.b.#" for number in range(count)]


@given(st.sets(patterns, max_size=12), st.one_of(keys, st.lists(words, max_size=6).map(".".join)))
def test_matches_each_pattern_once_as_the_definition_says(held: set[str], key: str) -> None:
    expected = [one for one in held if matches(split_words(one), split_words(key))]
    assert sorted(filled(held).match(key)) == sorted(expected)


@given(st.lists(patterns, max_size=12), st.data(), keys)
def test_a_discarded_pattern_is_gone_and_the_rest_stays(
    held: list[str], data: st.DataObject, key: str
) -> None:
    gone = data.draw(st.lists(st.sampled_from([*held, "a.b", "#"])))
    again = data.draw(st.lists(st.sampled_from([*held, "a.b", "#"])))
    automaton = filled(held)
    for pattern in gone:
        automaton.discard(pattern)
    for pattern in again:
        automaton.add(pattern)
    expected = filled((set(held) - set(gone)) | set(again))
    assert sorted(automaton.match(key)) == sorted(expected.match(key))


def test_many_hashes_and_long_keys() -> None:
    """Backtracking over 60 `#` and 127 words would take longer than the universe has."""
    pattern = "#.a." * 60 + "b"
    automaton = filled([pattern])
    assert automaton.match(".".join("a" * 127)) == []
    assert automaton.match(".".join("a" * 126) + ".b") == [pattern]


def test_patterns_of_all_blocks_are_found() -> None:
    held = numbered(GROUP_BITS)
    automaton = filled(held)
    assert len(automaton._groups) > 3
    assert automaton.match("a.b") == []
    for number in range(0, GROUP_BITS, 97):
        assert automaton.match(f"a.x.{number}.b.y.z") == [held[number]]
    automaton.add("#.b.#.a")
    automaton.add("a.#.b")
    assert sorted(automaton.match("a.7.b")) == ["a.#.7.b.#", "a.#.b"]


def test_blocks_are_given_up_as_their_patterns_go() -> None:
    held = numbered(GROUP_BITS)
    automaton = filled(held)
    full = len(automaton._groups)
    kept = held[::16]
    for pattern in set(held) - set(kept):
        automaton.discard(pattern)
    assert len(automaton._groups) <= full // 8 + 1
    for number in range(0, GROUP_BITS, 16 * 7):
        assert automaton.match(f"a.{number}.b") == [held[number]]
        assert automaton.match(f"a.{number + 1}.b") == []
    for pattern in kept:
        automaton.discard(pattern)
    assert (automaton._groups, automaton._positions) == ({}, {})


def test_adding_and_discarding_in_turn_keeps_one_small_block() -> None:
    automaton = filled(["a.#.b.#"])
    for pattern in numbered(GROUP_BITS):
        automaton.add(pattern)
        automaton.discard(pattern)
    (block,) = automaton._groups
    assert block.size < 100
    assert automaton.match("a.b") == ["a.#.b.#"]
