"""Dispatches frames to the handlers of their methods: one table, by class and method."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pamqp import base, commands

from ..errors import ChannelError, ConnectionFault
from ..publish.checks import check_size
from ..publish.single import publish_one
from ..publish.target import check_publish, read_target
from ..wire.frames import HEADER, HEARTBEAT, METHOD, PUBLISH, method_frame
from ..wire.method_ids import (
    ACCESS_REQUEST,
    ACCESS_REQUEST_OK,
    BASIC_PUBLISH,
    CHANNEL_CLOSE,
    CHANNEL_CLOSE_OK,
    CHANNEL_FLOW_OK,
    CHANNEL_OPEN,
    CONNECTION_CLOSE,
    CONNECTION_CLOSE_OK,
    CONNECTION_UPDATE_SECRET_OK,
    NO_METHOD,
    octets,
)
from ..wire.methods import decode_method
from ..wire.properties import read_attributes
from . import (
    confirm_methods,
    consume_methods,
    exchange_methods,
    get_method,
    queue_methods,
    settle_methods,
    transaction_methods,
)
from .connection_state import ConnectionState
from .content import Content, expect_no_content

if TYPE_CHECKING:
    from .channel import Channel
    from .connection import Connection

_CHANNEL_OPEN: Final = octets(CHANNEL_OPEN)
_CHANNEL_CLOSE: Final = octets(CHANNEL_CLOSE)
_CHANNEL_CLOSE_OK: Final = octets(CHANNEL_CLOSE_OK)
_CONNECTION_CLOSE: Final = octets(CONNECTION_CLOSE)
_CONNECTION_CLOSE_OK: Final = octets(CONNECTION_CLOSE_OK)
_ACCESS_REQUEST: Final = octets(ACCESS_REQUEST)
"""Clients of AMQP 0-8 request a ticket first; pamqp does not know the class."""
_ANY_TICKET: Final = b"\x00\x01"


def receive_frame(connection: Connection, kind: int, number: int, payload: bytes) -> None:
    """Handles a frame of channel `number`. Raises `ConnectionFault`."""
    if kind == HEARTBEAT:
        _check_heartbeat(number, payload)
    elif connection.state is ConnectionState.CLOSING:
        if kind == METHOD and not number:
            _receive_while_closing(connection, payload)
    elif kind == METHOD:
        connection.current_method = int.from_bytes(payload[:4].ljust(4, b"\0"), "big")
        _receive_method(connection, number, payload)
        connection.current_method = NO_METHOD
    else:
        if not number or connection.handshake is not None:
            raise ConnectionFault(505, f"content frame on channel {number}")
        _receive_content(connection, kind, number, payload)
        connection.current_method = NO_METHOD


def _check_heartbeat(number: int, payload: bytes) -> None:
    if number:
        raise ConnectionFault(505, f"heartbeat on channel {number}")
    if payload:
        raise ConnectionFault(501, f"heartbeat with a payload of {len(payload)} bytes")


def _receive_while_closing(connection: Connection, payload: bytes) -> None:
    if payload[:4] == _CONNECTION_CLOSE:
        connection.output.write(method_frame(0, CONNECTION_CLOSE_OK))
        connection.finish()
    elif payload[:4] == _CONNECTION_CLOSE_OK:
        connection.finish()


def _receive_method(connection: Connection, number: int, payload: bytes) -> None:
    if number == 0:
        _receive_connection_method(connection, decode_method(payload))
        return
    if connection.handshake is not None:
        raise ConnectionFault(504, "the connection is not open yet")
    channels = connection.channels
    if payload[:4] == _CHANNEL_OPEN:
        decode_method(payload)
        channels.open(connection, number)
    elif payload[:4] == _CHANNEL_CLOSE:
        decode_method(payload)
        channels.close(number)
    elif payload[:4] == _CHANNEL_CLOSE_OK:
        channels.closed(number)
    else:
        _receive_channel_method(connection, number, payload)


def _receive_connection_method(connection: Connection, method: base.Frame) -> None:
    if connection.handshake is not None:
        connection.handshake.receive(method)
    elif isinstance(method, commands.Connection.Close):
        connection.close_by_client()
    elif isinstance(method, commands.Connection.UpdateSecret):
        # For OAuth tokens, which Warren does not have; passwords are checked at login only.
        connection.output.write(method_frame(0, CONNECTION_UPDATE_SECRET_OK))
    else:
        raise ConnectionFault(504, f"{method.name} on channel 0 of an open connection")


def _receive_channel_method(connection: Connection, number: int, payload: bytes) -> None:
    channel = connection.channels.usable(number)
    if channel is None:
        decode_method(payload)
        return
    expect_no_content(channel)
    try:
        _handle(channel, payload)
    except ChannelError as error:
        connection.channels.fail(number, error, connection.current_method)


def _handle(channel: Channel, payload: bytes) -> None:
    if payload[:4] == _ACCESS_REQUEST:
        channel.send(ACCESS_REQUEST_OK, _ANY_TICKET)
        return
    if payload[:4] == PUBLISH:
        check_publish(channel, payload)
        channel.connection.contents.begin(channel, payload)
        return
    method = decode_method(payload)
    handler = _handlers.get(type(method))
    if handler is None:
        raise ConnectionFault(503, f"{method.name} is not valid from a client on a channel")
    handler(channel, method)


def _receive_content(connection: Connection, kind: int, number: int, payload: bytes) -> None:
    channel = connection.channels.usable(number)
    if channel is None:
        return
    content = channel.content
    if content is None:
        raise ConnectionFault(505, "unexpected content frame: no basic.publish precedes it")
    connection.current_method = BASIC_PUBLISH
    try:
        complete = content.add(kind, payload)
        if kind == HEADER:
            check_size(content.body_bytes, channel.broker.limits.max_message_bytes)
        if complete:
            connection.contents.end(channel)
            _publish(channel, content)
        elif kind == HEADER:
            connection.contents.declare(content)
        else:
            connection.contents.grown(channel, connection.broker.now_ms)
    except ChannelError as error:
        connection.channels.fail(number, error, BASIC_PUBLISH)


def _publish(channel: Channel, content: Content) -> None:
    properties = content.properties
    target = read_target(channel, content.method, watched=False)
    attributes = read_attributes(properties, 0, len(properties))
    publish_one(target, attributes, properties, content.body())


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
    commands.Basic.Qos: consume_methods.qos,
    commands.Basic.Consume: consume_methods.consume,
    commands.Basic.Cancel: consume_methods.cancel,
    commands.Basic.CancelOk: consume_methods.cancel_ok,
    commands.Basic.Get: get_method.get,
    commands.Basic.Ack: settle_methods.basic_ack,
    commands.Basic.Nack: settle_methods.basic_nack,
    commands.Basic.Reject: settle_methods.basic_reject,
    commands.Basic.Recover: settle_methods.basic_recover,
    commands.Basic.RecoverAsync: settle_methods.basic_recover_async,
    commands.Confirm.Select: confirm_methods.select,
    commands.Tx.Select: transaction_methods.select,
    commands.Tx.Commit: transaction_methods.commit,
    commands.Tx.Rollback: transaction_methods.rollback,
}
