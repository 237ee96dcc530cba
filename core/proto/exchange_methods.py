"""Handlers of class exchange (AMQP 0-9-1 1.6): declare, delete, bind, unbind."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pamqp import commands

from ..auth.authorization import to_bind, to_declare, to_delete
from ..message.model import Table
from ..route.registry import check_type
from ..vhost import DEFAULT_EXCHANGE
from ..wire.method_ids import (
    EXCHANGE_BIND_OK,
    EXCHANGE_DECLARE_OK,
    EXCHANGE_DELETE_OK,
    EXCHANGE_UNBIND_OK,
)

if TYPE_CHECKING:
    from .channel import Channel


def declare(channel: Channel, method: commands.Exchange.Declare) -> None:
    vhost, user, name = channel.vhost, channel.connection.user, method.exchange
    if method.passive:
        vhost.refuse_default(name)
        vhost.busy_names.require_free("exchange", name)
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
    _answer(channel, name, EXCHANGE_DECLARE_OK, nowait=method.nowait)


def delete(channel: Channel, method: commands.Exchange.Delete) -> None:
    channel.vhost.refuse_default(method.exchange)
    to_delete(channel.connection.user, channel.vhost.name, "exchange", method.exchange)
    channel.vhost.delete_exchange(method.exchange, if_unused=method.if_unused)
    _answer(channel, method.exchange, EXCHANGE_DELETE_OK, nowait=method.nowait)


def bind(channel: Channel, method: commands.Exchange.Bind) -> None:
    vhost = channel.vhost
    _check_ends(channel, method)
    source = vhost.exchange(method.source)
    destination = vhost.exchange(method.destination)
    vhost.bindings.add(source, destination, method.routing_key, method.arguments or {})
    if not method.nowait:
        channel.send(EXCHANGE_BIND_OK)


def unbind(channel: Channel, method: commands.Exchange.Unbind) -> None:
    """Removes a binding; a missing one, or a missing exchange, is no error."""
    vhost = channel.vhost
    _check_ends(channel, method)
    source = vhost.exchanges.get(method.source)
    destination = vhost.exchanges.get(method.destination)
    if source is not None and destination is not None:
        vhost.bindings.remove(source, destination, method.routing_key, method.arguments or {})
    _answer(channel, method.source, EXCHANGE_UNBIND_OK, nowait=method.nowait)


def _answer(channel: Channel, name: str, reply: int, *, nowait: bool) -> None:
    """Replies when no sliced work is left on the exchange; the client's next method waits."""
    answer = _no_reply if nowait else partial(_send, channel, reply)
    channel.connection.pending.wait_until(
        channel.vhost.busy_names.wait_for("exchange", name), answer
    )


def _send(channel: Channel, reply: int) -> None:
    if channel.open:
        channel.send(reply)


def _no_reply() -> None:
    """Sends no reply: the client has set no-wait."""


def _check_ends(
    channel: Channel, method: commands.Exchange.Bind | commands.Exchange.Unbind
) -> None:
    vhost, user = channel.vhost, channel.connection.user
    for name in (method.source, method.destination):
        if name == DEFAULT_EXCHANGE:
            vhost.refuse_default(name)
    to_bind(user, vhost, method.source, "exchange", method.destination, method.routing_key)
