"""The fanout exchange: everything bound gets every message (AMQP 0-9-1 3.1.3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..message.model import FieldValue
from .binding import Binding, Destination
from .exchange import Exchange
from .registry import register


@register
class FanoutExchange(Exchange):
    """An exchange that needs only the index of destinations that every exchange has."""

    __slots__ = ()

    type_name = "fanout"
    uses_key = False
    uses_headers = False

    def match(
        self, routing_key: str, headers: Mapping[str, FieldValue] | None
    ) -> Iterable[Destination]:
        return self.destinations

    def attach(self, binding: Binding) -> None:
        """Does nothing: `destinations` is all that is needed."""

    def detach(self, binding: Binding) -> None:
        """Does nothing: `destinations` is all that is needed."""
