"""x-modulus-hash: the hash of the routing key, modulo the number of bindings, chooses the binding.

RabbitMQ's sharding uses it. Bindings are ordered by the names of their destinations, so the result
is the same after a restart; adding a binding moves nearly all keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..message.model import FieldValue
from .binding import Binding
from .exchange import Exchange, ExchangeDeclaration
from .hashing import hash_of, identity_of
from .route import Destination


class ModulusHashExchange(Exchange):
    """An exchange in which a destination with two bindings gets two shares of the keys."""

    __slots__ = ("_parts",)

    one_key = True
    distributes = True

    def __init__(self, declared: ExchangeDeclaration) -> None:
        super().__init__(declared)
        self._parts: tuple[Destination, ...] | None = None

    def match(
        self, routing_key: str, headers: Mapping[str, FieldValue] | None
    ) -> Iterable[Destination]:
        parts = self._parts
        if parts is None:
            bound = (binding.destination for binding in self.bindings())
            living = [one for one in bound if not one.deleted]
            parts = self._parts = tuple(sorted(living, key=identity_of))
        return (parts[hash_of(routing_key.encode()) % len(parts)],) if parts else ()

    def changed(self) -> None:
        self._parts = None
        super().changed()

    def attach(self, binding: Binding) -> None:
        """Does nothing: `changed` clears the list of destinations."""

    def detach(self, binding: Binding) -> None:
        """Does nothing, as `attach`."""
