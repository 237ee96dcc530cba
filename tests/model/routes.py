"""Exchanges of the model and where they send a message (amqp.md section 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .messages import Message

Kind = Literal["queue", "exchange"]
Target = tuple[Kind, str]

PREDECLARED = {
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.topic": "topic",
    "amq.headers": "headers",
    "amq.match": "headers",
}


@dataclass
class Exchange:
    name: str
    type_name: str
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)

    @property
    def alternate(self) -> str | None:
        """Of argument or policy, in this order."""
        other = "alternate-exchange"
        found: str | None = self.arguments.get(other, self.policy.get(other))
        return found


@dataclass(frozen=True)
class Binding:
    source: str
    target: Target
    key: str
    arguments: tuple[tuple[str, Any], ...]
    """Sorted by name; see `frozen`."""


def frozen(arguments: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Arguments as they are compared: two that are the same are equal."""
    return tuple(sorted((name, _comparable(value)) for name, value in arguments.items()))


def _comparable(value: Any) -> Any:
    return (type(value).__name__, value) if isinstance(value, bool) or value is None else value


def topic_matches(pattern: list[str], words: list[str]) -> bool:
    """`*` is one word, `#` any number of them."""
    if not pattern:
        return not words
    first, rest = pattern[0], pattern[1:]
    if first == "#":
        return any(topic_matches(rest, words[at:]) for at in range(len(words) + 1))
    return bool(words) and first in ("*", words[0]) and topic_matches(rest, words[1:])


def headers_match(arguments: Mapping[str, Any], headers: Mapping[str, Any]) -> bool:
    """x-match is all, any, all-with-x or any-with-x; without -with-x names in `x-` don't count."""
    how = arguments.get("x-match", "all")
    criteria = {
        name: value
        for name, value in arguments.items()
        if name != "x-match" and (how.endswith("-with-x") or not name.startswith("x-"))
    }
    found = [
        name in headers and (value is None or same_value(value, headers[name]))
        for name, value in criteria.items()
    ]
    return all(found) if how.startswith("all") else any(found)


def same_value(one: Any, other: Any) -> bool:
    """Numbers by value; true is no number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def matches(exchange: Exchange, binding: Binding, key: str, headers: Mapping[str, Any]) -> bool:
    match exchange.arguments.get("x-delayed-type", exchange.type_name):
        case "fanout" | "x-recent-history":
            return True
        case "direct":
            return binding.key == key
        case "topic":
            return topic_matches(_words(binding.key), _words(key))
        case "headers":
            return headers_match(thawed(binding.arguments), headers)
    raise AssertionError(f"the model knows no exchange type {exchange.type_name}")


def _words(key: str) -> list[str]:
    return key.split(".") if key else []


def thawed(arguments: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value[1] if isinstance(value, tuple) else value for name, value in arguments}


class Topology:
    """Exchanges and bindings."""

    def __init__(self) -> None:
        self.exchanges: dict[str, Exchange] = {}
        self.bindings: list[Binding] = []
        for name, kind in PREDECLARED.items():
            self.exchanges[name] = Exchange(name, kind, durable=True)

    def route(
        self,
        name: str,
        keys: tuple[str, ...],
        headers: Mapping[str, Any],
        counts: Callable[[str], bool] = lambda queue: True,
    ) -> list[str]:
        """Names of queues; only those that count are a route."""
        if not name:
            return sorted(filter(counts, set(keys)))
        waiting, seen, queues = [name], {name}, set[str]()
        while waiting:
            exchange = self.exchanges.get(waiting.pop(0))
            if exchange is None:
                continue
            for kind, target in self.targets(exchange, keys, headers, counts):
                if kind == "queue":
                    queues.add(target)
                elif target not in seen:
                    seen.add(target)
                    waiting.append(target)
        return sorted(queues)

    def targets(
        self,
        exchange: Exchange,
        keys: tuple[str, ...],
        headers: Mapping[str, Any],
        counts: Callable[[str], bool],
    ) -> list[Target]:
        """Of one exchange: what its bindings give, else its alternate exchange."""
        found = [
            binding.target
            for binding in self.bindings
            if binding.source == exchange.name
            and (binding.target[0] == "exchange" or counts(binding.target[1]))
            and any(matches(exchange, binding, key, headers) for key in keys)
        ]
        if not found and exchange.alternate is not None:
            return [("exchange", exchange.alternate)]
        return found

    def fits(self, exchange: Exchange, binding: Binding, message: Message) -> bool:
        return any(matches(exchange, binding, key, message.headers) for key in message.keys)

    def unbind(self, gone: list[Binding]) -> None:
        """Takes bindings away, and with the last of its own an auto-delete exchange."""
        self.bindings = [binding for binding in self.bindings if binding not in gone]
        for name in {binding.source for binding in gone}:
            exchange = self.exchanges.get(name)
            if exchange and exchange.auto_delete and not self.is_used(name):
                self.delete(name)

    def is_used(self, name: str) -> bool:
        return any(binding.source == name for binding in self.bindings)

    def delete(self, name: str) -> None:
        self.exchanges.pop(name, None)
        self.bindings = [binding for binding in self.bindings if binding.source != name]
        self.unbind([bound for bound in self.bindings if bound.target == ("exchange", name)])
