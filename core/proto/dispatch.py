"""Dispatches decoded methods to their handlers: one table, by class and method."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pamqp import base, commands

from ..errors import ConnectionFault, precondition_failed
from ..publish.single import publish_one
from ..publish.target import check_publish, read_target
from ..wire.frames import HEADER, PUBLISH, method_frame
from ..wire.method_ids import (
    ACCESS_REQUEST,
    ACCESS_REQUEST_OK,
    CHANNEL_FLOW_OK,
    CONNECTION_UPDATE_SECRET_OK,
    octets,
)
from ..wire.methods import decode_method
from ..wire.properties import read_attributes
from . import basic_methods, exchange_methods, queue_methods, transaction_methods

if TYPE_CHECKING:
    from .channel import Channel
    from .connection import Connection

_ACCESS_REQUEST = octets(ACCESS_REQUEST)
"""Clients of AMQP 0-8 request a ticket first; pamqp does not know the class."""
_ANY_TICKET = b"\x00\x01"


def receive_method(channel: Channel, payload: bytes) -> None:
    """Handles a method on an open channel.

    Raises `ChannelError`, for a publish before its content comes, and `ConnectionFault` 502, 503
    or 540.
    """
    if payload[:4] == _ACCESS_REQUEST:
        channel.send(ACCESS_REQUEST_OK, _ANY_TICKET)
        return
    if payload[:4] == PUBLISH:
        check_publish(channel, payload)
        channel.begin_content(payload)
        return
    method = decode_method(payload)
    handler = _handlers.get(type(method))
    if handler is None:
        raise ConnectionFault(503, f"{method.name} can't be sent by a client on a channel")
    handler(channel, method)


def receive_connection_method(connection: Connection, method: base.Frame) -> None:
    """Handles a method on channel 0."""
    if connection.handshake is not None:
        connection.handshake.receive(method)
    elif isinstance(method, commands.Connection.Close):
        connection.close_by_client()
    elif isinstance(method, commands.Connection.UpdateSecret):
        # For OAuth tokens, which Warren does not have; passwords are checked at login only.
        connection.write(method_frame(0, CONNECTION_UPDATE_SECRET_OK))
    else:
        raise ConnectionFault(504, f"{method.name} on channel 0 of an open connection")


def receive_content(channel: Channel, kind: int, payload: bytes) -> None:
    """Handles a header or body frame.

    Raises `ChannelError` 406 for a message over `max_message_bytes`, 311 beside too many
    unfinished ones.
    """
    content = channel.content
    assert content is not None
    complete = content.add(kind, payload)
    if kind == HEADER:
        limit = channel.broker.limits.max_message_bytes
        if content.body_bytes > limit:
            raise precondition_failed(
                f"message size {content.body_bytes} is larger than configured max size {limit}"
            )
        if not complete:
            channel.connection.content_declared(content)
    elif not complete:
        channel.connection.contents.grown(channel, channel.broker.now_ms)
    if complete:
        channel.end_content()
        assert content.properties is not None
        target = read_target(channel, content.method, watched=False)
        attributes = read_attributes(content.properties, 0, len(content.properties))
        publish_one(target, attributes, content.properties, content.body())


def _flow(channel: Channel, method: commands.Channel.Flow) -> None:
    """Pauses or resumes deliveries at the client's request (AMQP 0-9-1 1.5.2.3)."""
    active = bool(method.active)
    channel.flow_stopped = not active
    channel.send(CHANNEL_FLOW_OK, bytes((active,)))
    if active:
        channel.reopen_consumers()


_handlers: dict[type[base.Frame], Callable[..., None]] = {
    commands.Channel.Flow: _flow,
    commands.Exchange.Declare: exchange_methods.declare,
    commands.Exchange.Delete: exchange_methods.delete,
    commands.Exchange.Bind: exchange_methods.bind,
    commands.Exchange.Unbind: exchange_methods.unbind,
    commands.Queue.Declare: queue_methods.declare,
    commands.Queue.Bind: queue_methods.bind,
    commands.Queue.Unbind: queue_methods.unbind,
    commands.Queue.Purge: queue_methods.purge,
    commands.Queue.Delete: queue_methods.delete,
    commands.Basic.Qos: basic_methods.qos,
    commands.Basic.Consume: basic_methods.consume,
    commands.Basic.Cancel: basic_methods.cancel,
    commands.Basic.CancelOk: basic_methods.cancel_ok,
    commands.Basic.Get: basic_methods.get,
    commands.Basic.Ack: basic_methods.ack,
    commands.Basic.Nack: basic_methods.nack,
    commands.Basic.Reject: basic_methods.reject,
    commands.Basic.Recover: basic_methods.recover,
    commands.Basic.RecoverAsync: basic_methods.recover_async,
    commands.Confirm.Select: basic_methods.confirm_select,
    commands.Tx.Select: transaction_methods.select,
    commands.Tx.Commit: transaction_methods.commit,
    commands.Tx.Rollback: transaction_methods.rollback,
}
