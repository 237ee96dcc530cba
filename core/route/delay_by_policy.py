"""A policy's key `delayed-message` (LavinMQ): an exchange of any type delays, for as long as the
policy is in force.

The exchange stays what it is, with its name, bindings and routes, and becomes one of a class that
is both its own and the delaying one. Undone, it sends messages on at once; what waits is released
when it is due.
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from .delayed import DelayedExchange
from .exchange import Exchange


class DelayedByPolicy(DelayedExchange):
    """Its name of the type is the one that it was declared with."""

    __slots__ = ()

    undelayed: ClassVar[type[Exchange]]


def can_be_delayed(exchange: Exchange) -> bool:
    """False for one that keeps messages for another reason."""
    if isinstance(exchange, DelayedExchange):
        return True
    return exchange.inner_kind is None and exchange.persistence is None


def set_delayed(exchange: Exchange, wanted: bool) -> bool:
    """True if that changed it: then it needs its inner queue (`VirtualHost.give_inner`).

    One that was declared as a delayed exchange stays one.
    """
    is_delayed = isinstance(exchange, DelayedExchange)
    if wanted and not is_delayed:
        _become(exchange, _delaying(type(exchange)))
    elif not wanted and isinstance(exchange, DelayedByPolicy):
        _become(exchange, exchange.undelayed)
    else:
        return False
    exchange.changed()
    return True


def _become(exchange: Exchange, exchange_type: type[Exchange]) -> None:
    exchange.__class__ = exchange_type


@cache
def _delaying(exchange_type: type[Exchange]) -> type[Exchange]:
    members = {
        "__slots__": (),
        "type_name": exchange_type.type_name,
        "undelayed": exchange_type,
    }
    return type(f"Delaying{exchange_type.__name__}", (DelayedByPolicy, exchange_type), members)
