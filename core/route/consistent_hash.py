"""x-consistent-hash: each key goes to one destination, and stays there as others come and go.

The binding key is the destination's weight. What is hashed is the routing key, or with
`hash-header` (LavinMQ: `x-hash-on`) a header, or with `hash-property` message_id, correlation_id
or timestamp; a message without it is routed as if it were empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ..errors import precondition_failed
from ..message.equivalence import resource
from ..message.model import FieldValue, MessageHeaders, Table
from ..wire import properties as wire
from .arguments import ExchangeArguments
from .binding import Binding
from .exchange import Exchange, ExchangeDeclaration
from .hashing import hash_of, hashed_form
from .route import Destination
from .weighted_hash import WeightedHash

WEIGHT_MAX: Final = 10_000

_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_HEADER, _PROPERTY, _ON, _ALGORITHM = "hash-header", "hash-property", "x-hash-on", "x-algorithm"
_PROPERTIES: Final = {
    "message_id": wire.MESSAGE_ID,
    "correlation_id": wire.CORRELATION_ID,
    "timestamp": wire.TIMESTAMP,
}
_ALGORITHMS: Final = ("ring", "jump")
"""LavinMQ's two. Both are accepted and mean the same here: shares by weight, few keys move."""


class ConsistentHashExchange(Exchange):
    """An exchange in which a destination counts once, with the weight of its oldest binding."""

    __slots__ = ("_hash", "_header", "_property")

    known_arguments = Exchange.known_arguments | {_HEADER, _PROPERTY, _ON, _ALGORITHM}
    one_key = True
    distributes = True

    def __init__(self, declared: ExchangeDeclaration) -> None:
        super().__init__(declared)
        self._hash: WeightedHash | None = None
        arguments = ExchangeArguments(self.name, self.vhost, self.arguments)
        self._header, self._property = _hash_source(arguments)
        self.uses_key = self._header is None and self._property is None
        self.uses_headers = not self.uses_key
        algorithm = arguments.text(_ALGORITHM)
        if algorithm is not None and algorithm not in _ALGORITHMS:
            raise arguments.invalid(_ALGORITHM, f"'{algorithm}' is neither ring nor jump")

    def check(self, routing_key: str, arguments: Table) -> None:
        text = f"'{routing_key}' for {resource('exchange', self.name, self.vhost)}"
        if _INTEGER.fullmatch(routing_key) is None:
            raise precondition_failed(f"The binding key must be an integer: {text}")
        if int(routing_key) < 1:
            raise precondition_failed(f"The binding key must be greater than 0: {text}")
        if int(routing_key) > WEIGHT_MAX:
            raise precondition_failed(f"The binding key must be at most {WEIGHT_MAX}: {text}")

    def match(
        self, routing_key: str, headers: Mapping[str, FieldValue] | None
    ) -> Iterable[Destination]:
        weighted = self._hash
        if weighted is None:
            weighted = self._hash = WeightedHash(self._weights())
        if not weighted:
            return ()
        return (weighted.pick(hash_of(self._value(routing_key, headers))),)

    def changed(self) -> None:
        self._hash = None
        super().changed()

    def attach(self, binding: Binding) -> None:
        """Does nothing: `changed` clears the weighted hash."""

    def detach(self, binding: Binding) -> None:
        """Does nothing, as `attach`."""

    def _weights(self) -> Iterable[tuple[Destination, int]]:
        for destination in self.destinations:
            if not destination.deleted:
                oldest = next(iter(self._by_destination.group(destination)))
                yield destination, int(oldest.routing_key)

    def _value(self, routing_key: str, headers: Mapping[str, FieldValue] | None) -> bytes:
        if self._header is not None:
            return hashed_form((headers or {}).get(self._header))
        if self._property is None:
            return routing_key.encode()
        if not isinstance(headers, MessageHeaders):
            return b""
        value = wire.split(headers.properties).get(self._property, b"")
        return value if self._property == wire.TIMESTAMP else value[1:]


def _hash_source(arguments: ExchangeArguments) -> tuple[str | None, int | None]:
    """Returns the header or the property's flag that is hashed in place of the routing key."""
    names = [name for name in (_HEADER, _PROPERTY, _ON) if arguments.text(name) is not None]
    if len(names) > 1:
        raise precondition_failed(
            f"{names[0]} and {names[1]} are mutually exclusive: {arguments.where}"
        )
    found = arguments.text(_PROPERTY)
    if found is not None and found not in _PROPERTIES:
        raise precondition_failed(
            f"Unsupported property: {found}; {_PROPERTY} of {arguments.where} can be "
            f"{', '.join(_PROPERTIES)}"
        )
    header = arguments.text(_HEADER)
    return (
        arguments.text(_ON) if header is None else header,
        None if found is None else _PROPERTIES[found],
    )
