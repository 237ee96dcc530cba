"""x-random: each message goes to one destination, chosen at random; keys are ignored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

from ..message.model import FieldValue
from .binding import Binding
from .exchange import Exchange, ExchangeDeclaration
from .route import Destination

chance = Random()


class RandomExchange(Exchange):
    """An exchange whose bindings have equal chances: a destination with two gets twice as much."""

    __slots__ = ("_choices",)

    each_message = True
    distributes = True

    def __init__(self, declared: ExchangeDeclaration) -> None:
        super().__init__(declared)
        self.uses_key = False
        self._choices: tuple[Destination, ...] | None = None

    def match(
        self, routing_key: str, headers: Mapping[str, FieldValue] | None
    ) -> Iterable[Destination]:
        choices = self._choices
        if choices is None:
            bound = (one.destination for one in self.bindings())
            choices = self._choices = tuple(one for one in bound if not one.deleted)
        return (choices[int(chance.random() * len(choices))],) if choices else ()

    def changed(self) -> None:
        self._choices = None
        super().changed()

    def attach(self, binding: Binding) -> None:
        """Does nothing: `changed` clears the choices."""

    def detach(self, binding: Binding) -> None:
        """Does nothing, as `attach`."""
