"""The exchange types by name; creates exchanges, and compares redeclarations."""

from __future__ import annotations

from collections.abc import Set
from typing import TypeVar

from ..errors import precondition_failed
from ..message.equivalence import check_equivalent
from ..message.model import FieldValue, Table
from .arguments import ExchangeArguments
from .exchange import Exchange

ExchangeType = TypeVar("ExchangeType", bound=type[Exchange])

exchange_types: dict[str, type[Exchange]] = {}
"""Every type that can be declared, by its name on the wire."""


def register(exchange_type: ExchangeType) -> ExchangeType:
    """Class decorator: registers an exchange type under its `type_name`, once."""
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
    strict: bool = False,
) -> Exchange:
    """Creates an exchange; raises `ChannelError` 406 for an unknown type or invalid arguments.

    With `strict` unknown `x-` arguments are invalid.
    """
    exchange_type = check_type(type_name)
    made = exchange_type(
        name,
        durable=durable,
        auto_delete=auto_delete,
        internal=internal,
        arguments=arguments,
        vhost=vhost,
    )
    ExchangeArguments(name, vhost, arguments).see_unknown(_known(type(made)), strict=strict)
    return made


def check_type(type_name: str) -> type[Exchange]:
    """Returns the class of an exchange type; raises `ChannelError` 406 for an unknown one."""
    exchange_type = exchange_types.get(type_name)
    if exchange_type is None:
        raise precondition_failed(f"unknown exchange type '{type_name}'")
    return exchange_type


def _known(exchange_type: type[Exchange]) -> Set[str]:
    bases = exchange_type.__mro__
    return {name for base in bases for name in vars(base).get("own_arguments", ())}


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
    names = sorted((arguments.keys() | exchange.arguments.keys()) & _known(type(exchange)))
    compared += [(name, arguments.get(name), exchange.arguments.get(name)) for name in names]
    for argument, received, current in compared:
        check_equivalent("exchange", exchange.name, exchange.vhost, argument, received, current)
