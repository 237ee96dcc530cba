"""The exchange types by name, and declaring one: make it, or compare it with what exists."""

from __future__ import annotations

from typing import TypeVar

from ..equivalence import check_equivalent
from ..errors import precondition_failed
from ..model import Table
from .exchange import ALTERNATE_EXCHANGE, Exchange

ExchangeType = TypeVar("ExchangeType", bound=type[Exchange])

exchange_types: dict[str, type[Exchange]] = {}
"""Every type that can be declared, by its name on the wire."""


def register(exchange_type: ExchangeType) -> ExchangeType:
    """Class decorator: the type can be declared by its `type_name`; a name is taken once."""
    if exchange_type.type_name in exchange_types:
        raise ValueError(f"exchange type '{exchange_type.type_name}' is registered already")
    exchange_types[exchange_type.type_name] = exchange_type
    return exchange_type


def make(
    type_name: str,
    name: str,
    *,
    durable: bool,
    auto_delete: bool,
    internal: bool,
    arguments: Table,
    vhost: str = "/",
) -> Exchange:
    """A new exchange; raises `ChannelError` 406 for an unknown type or bad arguments."""
    exchange_type = exchange_types.get(type_name)
    if exchange_type is None:
        raise precondition_failed(f"unknown exchange type '{type_name}'")
    return exchange_type(
        name,
        durable=durable,
        auto_delete=auto_delete,
        internal=internal,
        arguments=arguments,
        vhost=vhost,
    )


def equivalent(
    exchange: Exchange,
    type_name: str,
    durable: bool,
    auto_delete: bool,
    internal: bool,
    arguments: Table,
) -> None:
    """Raises `ChannelError` 406 on the first difference from what is declared again.

    Of the arguments only the alternate exchange counts (AMQP 0-9-1 1.6.2.1.3 leaves it open).
    """
    compared = (
        ("type", type_name, exchange.type_name),
        ("durable", durable, exchange.durable),
        ("auto_delete", auto_delete, exchange.auto_delete),
        ("internal", internal, exchange.internal),
        (ALTERNATE_EXCHANGE, arguments.get(ALTERNATE_EXCHANGE),
         exchange.arguments.get(ALTERNATE_EXCHANGE)),
    )  # fmt: skip
    for argument, received, current in compared:
        check_equivalent("exchange", exchange.name, exchange.vhost, argument, received, current)
