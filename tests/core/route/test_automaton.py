from __future__ import annotations

from sys import getsizeof

from tests.core.held import held
from warrenmq.core.route.automaton import GROUP_BITS, PatternAutomaton


def filled(patterns: list[str]) -> PatternAutomaton:
    automaton = PatternAutomaton()
    for pattern in patterns:
        automaton.add(pattern)
    return automaton


def numbered(count: int) -> list[str]:
    """Patterns that fill several blocks, each for one key only and for those that start so."""
    return [f"a.#.{number}.b.#" for number in range(count)]


def size_bytes(automaton: PatternAutomaton) -> int:
    return sum(map(getsizeof, held(automaton)))


def test_patterns_of_all_blocks_are_found() -> None:
    patterns = numbered(GROUP_BITS)
    automaton = filled(patterns)
    assert automaton.match("a.b") == []
    for number in range(0, GROUP_BITS, 97):
        assert automaton.match(f"a.x.{number}.b.y.z") == [patterns[number]]
    automaton.add("#.b.#.a")
    automaton.add("a.#.b")
    assert sorted(automaton.match("a.7.b")) == ["a.#.7.b.#", "a.#.b"]


def test_discarding_patterns_frees_memory() -> None:
    patterns = numbered(GROUP_BITS)
    automaton = filled(patterns)
    full_bytes = size_bytes(automaton)
    kept = patterns[::16]
    for pattern in set(patterns) - set(kept):
        automaton.discard(pattern)
    assert size_bytes(automaton) < full_bytes / 4
    for number in range(0, GROUP_BITS, 16 * 7):
        assert automaton.match(f"a.{number}.b") == [patterns[number]]
        assert automaton.match(f"a.{number + 1}.b") == []
    for pattern in kept:
        automaton.discard(pattern)
    assert automaton.match("a.0.b") == []


def test_adding_and_discarding_in_turn_takes_bounded_memory() -> None:
    automaton = filled(["a.#.b.#"])
    before_bytes = size_bytes(automaton)
    for pattern in numbered(GROUP_BITS):
        automaton.add(pattern)
        automaton.discard(pattern)
    assert size_bytes(automaton) < 4 * before_bytes
    assert automaton.match("a.b") == ["a.#.b.#"]
