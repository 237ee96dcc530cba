"""The headers exchange: bindings match headers by value or presence (AMQP 0-9-1 3.1.3.4).

A message has facts: (name, value) and (name, PRESENT) for each header. A pattern is a set of facts
of which all or any must be there. Each pattern is indexed by facts without which it can't match
(all: the one with the fewest patterns so far; any: each), so a message is compared with the few
patterns that share a fact with it, not with all bindings.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Final, NamedTuple

from ..errors import precondition_failed
from ..message.equivalence import comparable, type_name, value_text
from ..message.model import FieldValue, Table
from .binding import Binding, GroupedBindings
from .exchange import Exchange, ExchangeDeclaration
from .route import Destination

PRESENT: Final = object()

_MODES: Final = ("all", "any", "all-with-x", "any-with-x")

Fact = tuple[str, Hashable]


class Pattern(NamedTuple):
    """The condition of a binding; a void value in its arguments stands for presence."""

    match_any: bool
    facts: frozenset[Fact]

    @classmethod
    def of(cls, arguments: Table) -> Pattern:
        mode = str(arguments.get("x-match", "all"))
        facts = {
            (name, PRESENT if value is None else comparable(value))
            for name, value in arguments.items()
            if name != "x-match" and (mode.endswith("-with-x") or not name.startswith("x-"))
        }
        return cls(mode.startswith("any"), frozenset(facts))


class HeadersExchange(Exchange):
    """An exchange that matches headers.

    `x-match` is all (the default), any, all-with-x or any-with-x; keys that start with `x-` count
    only in the latter two. Without conditions `all` matches everything, `any` nothing.
    """

    __slots__ = ("_by_fact", "_by_pattern")

    def __init__(self, declared: ExchangeDeclaration) -> None:
        super().__init__(declared)
        self.uses_key = False
        self.uses_headers = True
        self._by_pattern: GroupedBindings[Pattern] = GroupedBindings()
        self._by_fact: dict[Fact, dict[Pattern, None]] = {}

    def check(self, routing_key: str, arguments: Table) -> None:
        mode = arguments.get("x-match", "all")
        if not isinstance(mode, str):
            raise precondition_failed(
                f"Invalid x-match field type {type_name(mode)} (value {value_text(mode)}); "
                f"expected longstr"
            )
        if mode not in _MODES:
            raise precondition_failed(
                f"Invalid x-match field value {mode}; expected all, any, all-with-x, or any-with-x"
            )

    def match(
        self, routing_key: str, headers: Mapping[str, FieldValue] | None
    ) -> Iterable[Destination]:
        found = list(self._by_pattern.destinations(_EVERYTHING))
        for pattern in self._matching(_facts(headers or {})):
            found += self._by_pattern.destinations(pattern)
        return found

    def _matching(self, facts: set[Fact]) -> Iterable[Pattern]:
        candidates: dict[Pattern, None] = {}
        for fact in facts:
            candidates.update(self._by_fact.get(fact, {}))
        return [pattern for pattern in candidates if pattern.match_any or pattern.facts <= facts]

    def attach(self, binding: Binding) -> None:
        pattern = Pattern.of(binding.arguments)
        if pattern not in self._by_pattern:
            self._index(pattern)
        self._by_pattern.add(pattern, binding)

    def detach(self, binding: Binding) -> None:
        pattern = Pattern.of(binding.arguments)
        self._by_pattern.discard(pattern, binding)
        if pattern not in self._by_pattern:
            self._unindex(pattern)

    def _index(self, pattern: Pattern) -> None:
        indexed: Iterable[Fact] = pattern.facts
        if pattern.facts and not pattern.match_any:
            indexed = (min(pattern.facts, key=lambda fact: len(self._by_fact.get(fact, ()))),)
        for fact in indexed:
            self._by_fact.setdefault(fact, {})[pattern] = None

    def _unindex(self, pattern: Pattern) -> None:
        for fact in pattern.facts:
            patterns = self._by_fact.get(fact, {})
            patterns.pop(pattern, None)
            if not patterns:
                self._by_fact.pop(fact, None)


_EVERYTHING: Final = Pattern(False, frozenset())


def _facts(headers: Mapping[str, FieldValue]) -> set[Fact]:
    facts: set[Fact] = {(name, PRESENT) for name in headers}
    facts.update((name, comparable(value)) for name, value in headers.items())
    return facts
