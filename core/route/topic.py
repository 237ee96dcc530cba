"""The topic exchange: matches routing keys against patterns of words (AMQP 0-9-1 3.1.3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..message.model import FieldValue
from .automaton import PatternAutomaton
from .binding import Binding, GroupedBindings
from .exchange import Exchange, ExchangeDeclaration
from .route import Destination
from .trie import TopicTrie, split_words, suits_trie


class TopicExchange(Exchange):
    """An exchange that finds patterns by trie and automaton, and their bindings by dictionary."""

    __slots__ = ("_automaton", "_by_pattern", "_trie")

    def __init__(self, declared: ExchangeDeclaration) -> None:
        super().__init__(declared)
        self._by_pattern: GroupedBindings[str] = GroupedBindings()
        self._trie = TopicTrie()
        self._automaton = PatternAutomaton()

    def match(
        self, routing_key: str, headers: Mapping[str, FieldValue] | None
    ) -> Iterable[Destination]:
        found: list[Destination] = []
        for pattern in self._trie.match(routing_key) + self._automaton.match(routing_key):
            found += self._by_pattern.destinations(pattern)
        return found

    def attach(self, binding: Binding) -> None:
        pattern = normal_form(binding.routing_key)
        if pattern not in self._by_pattern:
            self._index_for(pattern).add(pattern)
        self._by_pattern.add(pattern, binding)

    def detach(self, binding: Binding) -> None:
        pattern = normal_form(binding.routing_key)
        self._by_pattern.discard(pattern, binding)
        if pattern not in self._by_pattern:
            self._index_for(pattern).discard(pattern)

    def _index_for(self, pattern: str) -> TopicTrie | PatternAutomaton:
        return self._trie if suits_trie(pattern) else self._automaton


def normal_form(pattern: str) -> str:
    """Returns an equivalent pattern: each group of wildcards is `*` first, then one `#` at most."""
    words: list[str] = []
    after_hash = False
    for word in split_words(pattern):
        if after_hash and word not in ("*", "#"):
            words.append("#")
            after_hash = False
        if word == "#":
            after_hash = True
        else:
            words.append(word)
    return ".".join([*words, "#"] if after_hash else words)
