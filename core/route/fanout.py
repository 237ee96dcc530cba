"""The fanout exchange: every destination gets every message (AMQP 0-9-1 3.1.3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..message.model import FieldValue
from .binding import Binding
from .exchange import Exchange, ExchangeDeclaration
from .route import Destination


class FanoutExchange(Exchange):
    """An exchange that needs only the index of destinations that every exchange has."""

    __slots__ = ()

    def __init__(self, declared: ExchangeDeclaration) -> None:
        super().__init__(declared)
        self.uses_key = False

    def match(
        self, routing_key: str, headers: Mapping[str, FieldValue] | None
    ) -> Iterable[Destination]:
        return self.destinations

    def attach(self, binding: Binding) -> None:
        """Does nothing: `destinations` is all that is needed."""

    def detach(self, binding: Binding) -> None:
        """Does nothing: `destinations` is all that is needed."""
