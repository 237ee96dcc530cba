"""Matches topic patterns in a trie of words.

The trie is walked word by word, with all nodes that the words so far lead to. Only `*` adds nodes,
and `#` is only at the end, so patterns accepted by `suits_trie` are matched in few steps however
many there are; the other patterns are for the automaton.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MAX_STARRED_WORDS: Final = 10
"""Each `*` may double the nodes reached: at most 2 ** 10 of them after 10 words."""


class _Node:
    """A word of a pattern; `ending` is the pattern that ends here, `open_ended` that with a `#`."""

    __slots__ = ("ending", "open_ended", "star", "words")

    def __init__(self) -> None:
        self.words: dict[str, _Node] | None = None
        self.star: _Node | None = None
        self.ending: str | None = None
        self.open_ended: str | None = None

    def child(self, word: str) -> _Node | None:
        if word == "*":
            return self.star
        return None if self.words is None else self.words.get(word)

    def make_child(self, word: str) -> _Node:
        child = _Node()
        if word == "*":
            self.star = child
        elif self.words is None:
            self.words = {word: child}
        else:
            self.words[word] = child
        return child

    def drop_child(self, word: str) -> None:
        if word == "*":
            self.star = None
        elif self.words is not None:
            del self.words[word]
            if not self.words:
                self.words = None

    def set_pattern(self, pattern: str | None, *, open_ended: bool) -> None:
        if open_ended:
            self.open_ended = pattern
        else:
            self.ending = pattern

    @property
    def needless(self) -> bool:
        patterns = self.ending is not None or self.open_ended is not None
        return not (patterns or self.words or self.star)


def split_words(key: str) -> list[str]:
    """Returns the words between dots, empty ones too; the empty key has none."""
    return key.split(".") if key else []


def suits_trie(pattern: str) -> bool:
    """Returns whether `#` is only at the end, and `*` only in a short pattern."""
    words = split_words(pattern)
    if "#" in words[:-1]:
        return False
    return len(words) <= MAX_STARRED_WORDS or "*" not in words


class TopicTrie:
    """A set of patterns that `suits_trie`; `*` is one word, `#` zero or more."""

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root = _Node()

    def add(self, pattern: str) -> None:
        words, open_ended = _split_hash(pattern)
        node = self._root
        for word in words:
            node = node.child(word) or node.make_child(word)
        node.set_pattern(pattern, open_ended=open_ended)

    def discard(self, pattern: str) -> None:
        """Removes a pattern, and the nodes that only it needed."""
        words, open_ended = _split_hash(pattern)
        path: list[tuple[_Node, str]] = []
        node = self._root
        for word in words:
            child = node.child(word)
            if child is None:
                return
            path.append((node, word))
            node = child
        node.set_pattern(None, open_ended=open_ended)
        while path and node.needless:
            node, word = path.pop()
            node.drop_child(word)

    def match(self, key: str) -> list[str]:
        """Returns the patterns that match, each once, in any order."""
        reached = [self._root]
        found = _open_ended(reached)
        for word in split_words(key):
            reached = _step(reached, word)
            if not reached:
                return found
            found += _open_ended(reached)
        return found + [node.ending for node in reached if node.ending is not None]


def _split_hash(pattern: str) -> tuple[list[str], bool]:
    words = split_words(pattern)
    open_ended = words[-1:] == ["#"]
    return (words[:-1] if open_ended else words), open_ended


def _step(nodes: Iterable[_Node], word: str) -> list[_Node]:
    following: list[_Node] = []
    for node in nodes:
        if node.words is not None:
            child = node.words.get(word)
            if child is not None:
                following.append(child)
        if node.star is not None:
            following.append(node.star)
    return following


def _open_ended(nodes: Iterable[_Node]) -> list[str]:
    return [node.open_ended for node in nodes if node.open_ended is not None]
