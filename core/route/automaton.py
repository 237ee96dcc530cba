"""Matches topic patterns in a bit-parallel automaton: each word of the key advances all at once.

The patterns of a group are end to end in the bits of its integers: one bit for each word and one
for the end. A set bit in the state means that the words so far match the pattern up to there, so
the time is words times bits, whatever the `#` and `*` are: a thousand patterns of 120 words take a
few milliseconds, where a trie of them has millions of nodes to visit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from .trie import split_words

GROUP_BITS: Final = 4096
"""A word that is in a single pattern takes an integer of this length, so groups are small."""


class _PatternGroup:
    """Patterns side by side; a group only grows, and is replaced when half of it is erased."""

    __slots__ = ("_ends", "_masks", "_starts", "by_end", "size", "used_bits")

    def __init__(self) -> None:
        self._starts = 0
        self._ends = 0
        self._masks: dict[str, int] = {}
        self.by_end: dict[int, str] = {}
        self.used_bits = 0
        self.size = 0

    def write(self, pattern: str) -> int:
        """Appends a pattern; returns the bit of its end, by which it is erased."""
        words = split_words(pattern)
        bit = 1 << self.size
        self._starts |= bit
        for word in words:
            self._masks[word] = self._masks.get(word, 0) | bit
            bit <<= 1
        self._ends |= bit
        end = self.size + len(words)
        self.by_end[end] = pattern
        self.used_bits += len(words) + 1
        self.size = end + 1
        return end

    def erase(self, end: int) -> None:
        self._ends ^= 1 << end
        self.used_bits -= len(split_words(self.by_end.pop(end))) + 1

    def match(self, words: Sequence[str]) -> Iterator[str]:
        masks = self._masks
        stars, hashes = masks.get("*", 0), masks.get("#", 0)
        # Two `#` are never adjacent, so one shift passes all that match no word.
        state = self._starts | (self._starts & hashes) << 1
        for word in words:
            # A `*` or `#` in the key finds the mask of that wildcard, which it matches anyway.
            state = (state & (stars | masks.get(word, 0))) << 1 | (state & hashes)
            state |= (state & hashes) << 1
            if not state:
                return
        state &= self._ends
        while state:
            end = state.bit_length() - 1
            state ^= 1 << end
            yield self.by_end[end]


class PatternAutomaton:
    """A set of patterns without `#.#`; `*` is one word, `#` zero or more."""

    __slots__ = ("_groups", "_positions")

    def __init__(self) -> None:
        self._groups: dict[_PatternGroup, None] = {}
        self._positions: dict[str, tuple[_PatternGroup, int]] = {}

    def add(self, pattern: str) -> None:
        if pattern in self._positions:
            return
        newest = next(reversed(self._groups), None)
        if newest is None or newest.size >= GROUP_BITS:
            newest = _PatternGroup()
            self._groups[newest] = None
        self._positions[pattern] = (newest, newest.write(pattern))

    def discard(self, pattern: str) -> None:
        """Removes a pattern; the rest of a group that is half empty moves to the newest one."""
        if pattern not in self._positions:
            return
        group, end = self._positions.pop(pattern)
        group.erase(end)
        if 2 * group.used_bits < group.size:
            del self._groups[group]
            for remaining in group.by_end.values():
                del self._positions[remaining]
                self.add(remaining)

    def match(self, key: str) -> list[str]:
        """Returns the patterns that match, each once, in any order."""
        words = split_words(key) if self._groups else ()
        return [pattern for group in self._groups for pattern in group.match(words)]
