"""The exchange types by name; creates exchanges, and compares redeclarations."""

from __future__ import annotations

from typing import Final

from ..errors import precondition_failed
from ..message.equivalence import check_equivalent
from ..message.model import FieldValue, Table
from .arguments import ExchangeArguments
from .at_random import RandomExchange
from .consistent_hash import ConsistentHashExchange
from .delayed import DELAYED, DELAYED_TYPE
from .direct import DirectExchange
from .exchange import Exchange, ExchangeDeclaration
from .fanout import FanoutExchange
from .headers import HeadersExchange
from .modulus_hash import ModulusHashExchange
from .recent_history import RecentHistoryExchange
from .topic import TopicExchange

exchange_types: Final[dict[str, type[Exchange]]] = {
    "direct": DirectExchange,
    "fanout": FanoutExchange,
    "headers": HeadersExchange,
    "topic": TopicExchange,
    "x-consistent-hash": ConsistentHashExchange,
    "x-local-random": RandomExchange,
    "x-modulus-hash": ModulusHashExchange,
    "x-random": RandomExchange,
    "x-recent-history": RecentHistoryExchange,
}
"""Every type that can be declared, by its name on the wire, besides `x-delayed-message`. All queues
are on the publisher's node, so `x-local-random` chooses as `x-random` does."""


def make(
    type_name: str,
    name: str,
    *,
    durable: bool,
    auto_delete: bool,
    internal: bool,
    arguments: Table,
    vhost: str = "/",
    strict: bool = False,
) -> Exchange:
    """Creates an exchange; raises `ChannelError` 406 for an unknown type or invalid arguments.

    With `strict` unknown `x-` arguments are invalid.
    """
    check_type(type_name)
    given = ExchangeArguments(name, vhost, arguments)
    delays = type_name == DELAYED
    exchange_type = _delayed_type(given) if delays else exchange_types[type_name]
    made = exchange_type(
        ExchangeDeclaration(type_name, name, vhost, durable, auto_delete, internal, arguments)
    )
    if delays and made.persistence is not None:
        raise given.invalid("x-persist-messages", f"{type_name} can't store messages")
    made.delays = delays
    given.check_unknown(_known_arguments(made), strict=strict)
    return made


def is_exchange_type(type_name: str) -> bool:
    return type_name == DELAYED or type_name in exchange_types


def check_type(type_name: str) -> None:
    """Raises `ChannelError` 406 for an unknown exchange type."""
    if not is_exchange_type(type_name):
        raise precondition_failed(f"unknown exchange type '{type_name}'")


def _delayed_type(arguments: ExchangeArguments) -> type[Exchange]:
    """Returns the type by which a delayed exchange routes."""
    known = {name: kind for name, kind in exchange_types.items() if not kind.keeps_history}
    return known[arguments.choice(DELAYED_TYPE, sorted(known))]


def _known_arguments(exchange: Exchange) -> frozenset[str]:
    known = exchange.known_arguments
    return known | {DELAYED_TYPE} if exchange.type_name == DELAYED else known


def equivalent(
    exchange: Exchange,
    type_name: str,
    durable: bool,
    auto_delete: bool,
    internal: bool,
    arguments: Table,
) -> None:
    """Raises `ChannelError` 406 for the first difference between a redeclaration and the exchange.

    Only arguments known to the type are compared, numbers by value: unknown ones change nothing
    (AMQP 0-9-1 1.6.2.1.3).
    """
    compared: list[tuple[str, FieldValue, FieldValue]] = [
        ("type", type_name, exchange.type_name),
        ("durable", durable, exchange.durable),
        ("auto_delete", auto_delete, exchange.auto_delete),
        ("internal", internal, exchange.internal),
    ]
    names = sorted((arguments.keys() | exchange.arguments.keys()) & _known_arguments(exchange))
    compared += [(name, arguments.get(name), exchange.arguments.get(name)) for name in names]
    for argument, received, current in compared:
        check_equivalent("exchange", exchange.name, exchange.vhost, argument, received, current)
