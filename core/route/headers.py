"""The headers exchange: bindings ask for headers by value or presence (AMQP 0-9-1 3.1.3.4).

A message states facts: (name, value) and (name, PRESENT) for each header. A pattern is a set of
facts that it wants all of, or any of. Each pattern is filed under facts without which it can't
match (all: the one of them with the fewest patterns so far; any: each), so a message looks only
at a few patterns that share a fact with it, not at all bindings.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Final, NamedTuple, Unpack

from ..errors import precondition_failed
from ..message.equivalence import comparable, shown, type_name
from ..message.model import FieldValue, Table
from .binding import Binding, Destination, GroupedBindings
from .exchange import Exchange, ExchangeProperties
from .registry import register

PRESENT: Final = object()

_MODES = ("all", "any", "all-with-x", "any-with-x")

Fact = tuple[str, Hashable]


class Pattern(NamedTuple):
    """What a binding wants; the void value in its arguments asks for presence alone."""

    wants_any: bool
    facts: frozenset[Fact]

    @classmethod
    def of(cls, arguments: Table) -> Pattern:
        mode = str(arguments.get("x-match", "all"))
        wanted = {
            (name, PRESENT if value is None else comparable(value))
            for name, value in arguments.items()
            if name != "x-match" and (mode.endswith("-with-x") or not name.startswith("x-"))
        }
        return cls(mode.startswith("any"), frozenset(wanted))


@register
class HeadersExchange(Exchange):
    """`x-match` is all (without it too), any, all-with-x or any-with-x; keys that start with
    `x-` count only in the latter two. No wishes at all: `all` takes everything, `any` nothing.
    """

    __slots__ = ("_by_pattern", "_filed")

    type_name = "headers"
    uses_key = False
    uses_headers = True

    def __init__(self, name: str, **properties: Unpack[ExchangeProperties]) -> None:
        super().__init__(name, **properties)
        self._by_pattern: GroupedBindings[Pattern] = GroupedBindings()
        self._filed: dict[Fact, dict[Pattern, None]] = {}

    def check(self, routing_key: str, arguments: Table) -> None:
        mode = arguments.get("x-match", "all")
        if not isinstance(mode, str):
            raise precondition_failed(
                f"Invalid x-match field type {type_name(mode)} (value {shown(mode)}); "
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
            candidates.update(self._filed.get(fact, {}))
        return [wish for wish in candidates if wish.wants_any or wish.facts <= facts]

    def attach(self, binding: Binding) -> None:
        pattern = Pattern.of(binding.arguments)
        if pattern not in self._by_pattern:
            self._file(pattern)
        self._by_pattern.add(pattern, binding)

    def detach(self, binding: Binding) -> None:
        pattern = Pattern.of(binding.arguments)
        self._by_pattern.discard(pattern, binding)
        if pattern not in self._by_pattern:
            self._take_out(pattern)

    def _file(self, pattern: Pattern) -> None:
        places: Iterable[Fact] = pattern.facts
        if pattern.facts and not pattern.wants_any:
            places = (min(pattern.facts, key=lambda fact: len(self._filed.get(fact, ()))),)
        for fact in places:
            self._filed.setdefault(fact, {})[pattern] = None

    def _take_out(self, pattern: Pattern) -> None:
        for fact in pattern.facts:
            patterns = self._filed.get(fact, {})
            patterns.pop(pattern, None)
            if not patterns:
                self._filed.pop(fact, None)


_EVERYTHING = Pattern(False, frozenset())


def _facts(headers: Mapping[str, FieldValue]) -> set[Fact]:
    facts: set[Fact] = {(name, PRESENT) for name in headers}
    facts.update((name, comparable(value)) for name, value in headers.items())
    return facts
