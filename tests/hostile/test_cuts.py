"""Connections that break at any byte, and bytes that come one by one."""

from __future__ import annotations

import socket

import pytest

from tests.conformance import frames, raw
from tests.support.server import WarrenServer

from .support import assert_serves, method, open_files, publish, reset, wait_for_files

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


def answer_to(port: int, *pieces: bytes) -> bytes:
    """What comes back until the server hangs up."""
    with dial(port) as connection:
        for piece in pieces:
            connection.sendall(piece)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def test_a_stream_that_breaks_at_any_byte_leaves_nothing(warren: WarrenServer) -> None:
    with raw.connect(warren.amqp_port) as client:
        channel = client.channel()
        channel.declare("shared")
        files = open_files(warren)
        for cut in range(len(STREAM)):
            connection = dial(warren.amqp_port)
            connection.sendall(STREAM[:cut])
            if cut % 3 == 0:
                connection.shutdown(socket.SHUT_WR)
            if cut % 3 == 1:
                reset(connection)
            connection.close()
        wait_for_files(warren, files)
        channel.declare("mine", exclusive=True)
        assert set(channel.drain("shared")) <= {b"second"}
    assert_serves(warren)


@pytest.mark.parametrize("size", [1, 7, len(STREAM)])
def test_bytes_that_come_in_any_pieces_are_understood(warren: WarrenServer, size: int) -> None:
    pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    with raw.connect(warren.amqp_port) as client:
        channel = client.channel()
        channel.declare("shared")
        answer = answer_to(warren.amqp_port, *pieces)
        assert answer.count(b"first") == 1
        assert answer.endswith(method("Connection.CloseOk", 0))
        assert channel.drain("shared") == [b"second"]


def test_what_came_before_a_half_close_stands(warren: WarrenServer) -> None:
    with raw.connect(warren.amqp_port) as client, raw.connect(warren.amqp_port) as other:
        channel = other.channel()
        queue = str(channel.declare().queue)
        client.channel()
        client.send(publish(b"last words", routing_key=queue))
        client.half_close()
        client.hung_up()
        assert channel.drain(queue) == [b"last words"]


@pytest.mark.parametrize("end", [GARBAGE, CLOSED_CHANNEL], ids=["garbage", "closed channel"])
def test_an_error_behind_a_long_row_of_methods_ends_the_connection(
    warren: WarrenServer, end: bytes
) -> None:
    """The row takes longer than one turn, so the error comes out of what was left over."""
    files = open_files(warren)
    with raw.connect(warren.amqp_port) as client:
        queue = str(client.channel().declare(exclusive=True).queue)
        client.send(method("Queue.Declare", queue=queue, passive=True) * 3_000 + end)
        client.closed(501 if end is GARBAGE else 504)
    wait_for_files(warren, files)
    assert_serves(warren)
