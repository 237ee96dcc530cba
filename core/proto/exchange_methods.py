"""Class exchange (AMQP 0-9-1 1.6): declare, delete, bind, unbind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamqp import commands

from ..model import Table
from ..rights import to_bind, to_declare, to_delete
from ..route.registry import check_type
from ..vhost import DEFAULT_EXCHANGE

if TYPE_CHECKING:
    from .channel import Channel


def declare(channel: Channel, method: commands.Exchange.Declare) -> None:
    vhost, user, name = channel.vhost, channel.connection.user, method.exchange
    if method.passive:
        vhost.refuse_default(name)
        user.require_any(vhost.name, "exchange", name)
        vhost.exchange(name)
    else:
        arguments: Table = method.arguments or {}
        check_type(method.exchange_type)
        vhost.refuse_default(name)
        is_new = name not in vhost.exchanges
        to_declare(user, vhost.name, "exchange", name, arguments, is_new=is_new)
        vhost.declare_exchange(
            name,
            method.exchange_type,
            durable=method.durable,
            auto_delete=method.auto_delete,
            internal=method.internal,
            arguments=arguments,
        )
    if not method.nowait:
        channel.send(40, 11)


def delete(channel: Channel, method: commands.Exchange.Delete) -> None:
    channel.vhost.refuse_default(method.exchange)
    to_delete(channel.connection.user, channel.vhost.name, "exchange", method.exchange)
    channel.vhost.delete_exchange(method.exchange, if_unused=method.if_unused)
    if not method.nowait:
        channel.send(40, 21)


def bind(channel: Channel, method: commands.Exchange.Bind) -> None:
    vhost = channel.vhost
    _check_ends(channel, method)
    source = vhost.exchange(method.source)
    destination = vhost.exchange(method.destination)
    vhost.bind(source, destination, method.routing_key, method.arguments or {})
    if not method.nowait:
        channel.send(40, 31)


def unbind(channel: Channel, method: commands.Exchange.Unbind) -> None:
    """What is not there is not bound, so a missing exchange is no error."""
    vhost = channel.vhost
    _check_ends(channel, method)
    source = vhost.exchanges.get(method.source)
    destination = vhost.exchanges.get(method.destination)
    if source is not None and destination is not None:
        vhost.unbind(source, destination, method.routing_key, method.arguments or {})
    if not method.nowait:
        channel.send(40, 51)


def _check_ends(
    channel: Channel, method: commands.Exchange.Bind | commands.Exchange.Unbind
) -> None:
    vhost, user = channel.vhost, channel.connection.user
    for name in (method.source, method.destination):
        if name == DEFAULT_EXCHANGE:
            vhost.refuse_default(name)
    to_bind(user, vhost, method.source, "exchange", method.destination, method.routing_key)
