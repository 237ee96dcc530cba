"""Connections that break at any byte, and bytes that come one by one."""

from __future__ import annotations

import socket

import pytest

from tests.conformance import frames, raw
from tests.support.server import WarrenServer

from .support import assert_serves, method, open_sockets, publish, reset, wait_for_sockets

STREAM = b"".join(
    (
        frames.PROTOCOL_HEADER,
        method("Connection.StartOk", 0, mechanism="PLAIN", response="\0guest\0guest"),
        method("Connection.TuneOk", 0),
        method("Connection.Open", 0, virtual_host="/"),
        method("Channel.Open"),
        method("Queue.Declare", queue="mine", exclusive=True),
        method("Basic.Consume", queue="mine", consumer_tag="c"),
        method("Confirm.Select"),
        publish(b"first", routing_key="mine"),
        publish(b"second", routing_key="shared"),
        method("Queue.Delete", queue="mine"),
        method("Connection.Close", 0),
    )
)

GARBAGE = b"no frame at all"
CLOSED_CHANNEL = method("Queue.Declare", 7)


def dial(port: int) -> socket.socket:
    connection = socket.create_connection((raw.HOST, port), raw.TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def test_a_connection_may_end_at_any_byte(warren: WarrenServer) -> None:
    with raw.connect(warren.amqp_port) as client:
        channel = client.channel()
        channel.declare("shared")
        sockets = open_sockets(warren)
        for cut in range(len(STREAM)):
            connection = dial(warren.amqp_port)
            connection.sendall(STREAM[:cut])
            if cut % 3 == 0:
                connection.shutdown(socket.SHUT_WR)
            if cut % 3 == 1:
                reset(connection)
            connection.close()
        wait_for_sockets(warren, sockets)
        channel.declare("mine", exclusive=True)
        assert set(channel.drain("shared")) <= {b"second"}
    assert_serves(warren)


def test_input_before_a_half_close_counts(warren: WarrenServer) -> None:
    with raw.connect(warren.amqp_port) as client, raw.connect(warren.amqp_port) as other:
        channel = other.channel()
        queue = str(channel.declare().queue)
        client.channel()
        client.send(publish(b"last words", routing_key=queue))
        client.half_close()
        client.hung_up()
        assert channel.drain(queue) == [b"last words"]


@pytest.mark.parametrize("end", [GARBAGE, CLOSED_CHANNEL], ids=["garbage", "closed channel"])
def test_an_error_behind_thousands_of_methods_ends_the_connection(
    warren: WarrenServer, end: bytes
) -> None:
    sockets = open_sockets(warren)
    with raw.connect(warren.amqp_port) as client:
        queue = str(client.channel().declare(exclusive=True).queue)
        client.send(method("Queue.Declare", queue=queue, passive=True) * 3_000 + end)
        client.closed(501 if end is GARBAGE else 504)
    wait_for_sockets(warren, sockets)
    assert_serves(warren)
