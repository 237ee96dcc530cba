"""Exchanges of the model that choose, wait or remember (amqp.md section 4).

In a test each has its own name, and is nobody's destination or alternate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .messages import Message
from .routes import Binding, Exchange, Topology, thawed

MODULUS = "x-modulus-hash"
CHOOSING = ("x-random", "x-consistent-hash", MODULUS)
DELAYED = "x-delayed-message"
HISTORY = "x-recent-history"
HISTORY_LENGTH = 20
PERSIST = "x-persist-messages"


def inner(exchange: Exchange) -> Exchange:
    """What a delayed exchange is like when the time has come."""
    return Exchange(exchange.name, exchange.arguments["x-delayed-type"])


def weights(topology: Topology, name: str) -> dict[str, int]:
    """Of each queue that is bound, in the order of the bindings; the first binding counts."""
    found: dict[str, int] = {}
    for binding in topology.bindings:
        if binding.source == name:
            found.setdefault(binding.target[1], int(binding.key) if binding.key.isdigit() else 1)
    return found


def hash_key(topology: Topology, exchange: Exchange, message: Message) -> tuple[object, ...] | None:
    """Messages with the same one go to the same queue; None when there is no rule.

    In Python True and 1 are the same key, in AMQP they are not. Where the number of bindings is the
    modulus, each of a queue's bindings is a part.
    """
    if exchange.type_name == "x-random":
        return None
    if exchange.type_name == MODULUS:
        bindings = [each for each in topology.bindings if each.source == exchange.name]
        bound: list[object] = [*sorted(each.target[1] for each in bindings)]
    else:
        bound = [*sorted(weights(topology, exchange.name).items())]
    header = exchange.arguments.get("hash-header")
    value = message.keys[0] if header is None else message.headers.get(header)
    return exchange.name, exchange.type_name, tuple(bound), type(value), value


def delay_ms(exchange: Exchange, message: Message) -> int:
    """How long a message waits at this exchange; 0 for not at all."""
    if exchange.type_name != DELAYED:
        return 0
    delay = message.headers.get("x-delay", 0)
    return int(delay) if delay > 0 else 0


def waited(message: Message) -> Message:
    """It waits at no exchange again."""
    return message.with_headers({**message.headers, "x-delay": -message.headers["x-delay"]})


@dataclass
class Numbers:
    """Offsets as the broker gave them: rising, whatever they are."""

    known: dict[int, int] = field(default_factory=dict)

    def fits(self, index: int, value: int) -> bool:
        if index in self.known:
            return self.known[index] == value
        fits = all((at < index) == (other < value) for at, other in self.known.items())
        self.known[index] = value
        return fits


@dataclass(frozen=True)
class Offset:
    """Of a message in a persistent exchange."""

    numbers: Numbers
    index: int

    def fits(self, value: Any) -> bool:
        return isinstance(value, int) and self.numbers.fits(self.index, value)


@dataclass
class Memory:
    """What an exchange keeps: messages with their index."""

    kept: list[tuple[int, Message]] = field(default_factory=list)
    numbers: Numbers = field(default_factory=Numbers)
    count: int = 0

    def take_in(self, exchange: Exchange, message: Message) -> Message:
        """Gives the message as it goes on."""
        self.count += 1
        if exchange.type_name == HISTORY:
            if "x-recent-history-no-store" not in message.headers:
                self.kept.append((self.count, message))
            length = exchange.arguments.get("x-recent-history-length", HISTORY_LENGTH)
        else:
            offset = Offset(self.numbers, self.count)
            message = message.with_headers({**message.headers, "x-offset": offset})
            self.kept.append((self.count, message))
            length = exchange.arguments[PERSIST]
        del self.kept[:-length]
        return message

    def replay(self, exchange: Exchange, binding: Binding, topology: Topology) -> list[Message]:
        """What a new binding gets of what was there before."""
        arguments = thawed(binding.arguments)
        found = [
            (index, message)
            for index, message in self.kept
            if exchange.type_name == HISTORY or topology.fits(exchange, binding, message)
        ]
        if exchange.type_name != HISTORY:
            found = self._asked_for(found, arguments)
        return [message for _, message in found]

    def _asked_for(
        self, found: list[tuple[int, Message]], arguments: Mapping[str, Any]
    ) -> list[tuple[int, Message]]:
        """x-head n: the oldest n, or all but the last -n; x-tail n: the newest n, or all but the
        first -n; x-from: that offset and what follows, whether the binding has it or not, all if
        it is not kept."""
        match arguments:
            case {"x-head": head}:
                return found[:head]
            case {"x-tail": tail}:
                return found[-tail:] if tail else []
            case {"x-from": first}:
                at = [index for index, _ in self.kept if self.numbers.known.get(index) == first]
                return [pair for pair in found if pair[0] >= at[0]] if at else found
        return []
