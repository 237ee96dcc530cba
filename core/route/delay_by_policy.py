"""The policy key `delayed-message` (LavinMQ): an exchange of any type delays messages while the
policy is in force.

The exchange keeps its name, bindings and routes, and its class becomes one that inherits from both
its own and the delaying one. When the policy is cleared it routes messages at once; those in the
delay queue are released when they are due.
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from .delayed import DelayedExchange
from .exchange import Exchange


class DelayedByPolicy(DelayedExchange):
    """An exchange delayed by a policy; `type_name` is the type it was declared with."""

    __slots__ = ()

    undelayed: ClassVar[type[Exchange]]


def can_be_delayed(exchange: Exchange) -> bool:
    """Returns False for an exchange that stores messages for another reason."""
    if isinstance(exchange, DelayedExchange):
        return True
    return exchange.inner_kind is None and exchange.persistence is None


def set_delayed(exchange: Exchange, enabled: bool) -> bool:
    """Starts or stops delaying by policy; True if that changed the exchange, which then needs its
    inner queue (`VirtualHost.give_inner`).

    An exchange declared as a delayed one stays one.
    """
    is_delayed = isinstance(exchange, DelayedExchange)
    if enabled and not is_delayed:
        _become(exchange, _delaying(type(exchange)))
    elif not enabled and isinstance(exchange, DelayedByPolicy):
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
