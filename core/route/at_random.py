"""x-random: each message goes to one destination, chosen at random; keys are ignored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Unpack

from ..message.model import FieldValue
from .binding import Binding, Destination
from .exchange import Exchange, ExchangeProperties
from .registry import register

chance = Random()


@register
class RandomExchange(Exchange):
    """An exchange whose bindings have equal chances: a destination with two gets twice as much."""

    __slots__ = ("_choices",)

    type_name = "x-random"
    uses_key = False
    each_message = True

    def __init__(self, name: str, **properties: Unpack[ExchangeProperties]) -> None:
        super().__init__(name, **properties)
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


@register
class LocalRandomExchange(RandomExchange):
    """Chooses among the queues on the publisher's node, which are all: there is one node."""

    __slots__ = ()

    type_name = "x-local-random"
