"""The direct exchange: a binding gets the messages with exactly its key (AMQP 0-9-1 3.1.3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..message.model import FieldValue
from .binding import Binding, GroupedBindings
from .exchange import Exchange, ExchangeDeclaration
from .route import Destination


class DirectExchange(Exchange):
    """An exchange with a dictionary of bindings by key."""

    __slots__ = ("_by_key",)

    def __init__(self, declared: ExchangeDeclaration) -> None:
        super().__init__(declared)
        self._by_key: GroupedBindings[str] = GroupedBindings()

    def match(
        self, routing_key: str, headers: Mapping[str, FieldValue] | None
    ) -> Iterable[Destination]:
        return self._by_key.destinations(routing_key)

    def attach(self, binding: Binding) -> None:
        self._by_key.add(binding.routing_key, binding)

    def detach(self, binding: Binding) -> None:
        self._by_key.discard(binding.routing_key, binding)
