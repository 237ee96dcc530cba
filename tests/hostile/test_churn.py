"""Making and ending things over and over leaves nothing behind."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance import frames, raw
from tests.support.server import WarrenServer

from .support import batches, memory_bytes, method, open_sockets, publish, reset, wait_for_sockets

CLOSE_OK = method("Connection.CloseOk", 0)
CLOSE = b"\x00\x0a\x00\x32"
CYCLES = 5_000
ROUNDS = 30
LEAK_BYTES = 160
"""Per cycle; the smallest object that a cycle could leave, with its place in a dictionary."""
CONNECTION_LEAK_BYTES = 3_000
"""A third of what an open connection takes."""


def no_wait(name: str, number: int = 1, **fields: object) -> bytes:
    return method(name, number, nowait=True, **fields)


def queues(number: int) -> bytes:
    name = f"churn{number}"
    binding: dict[str, Any] = {"exchange": "amq.topic", "routing_key": f"key{number}"}
    bound = no_wait("Queue.Bind", queue=name, **binding)
    deleted = no_wait("Queue.Delete", queue=name)
    return no_wait("Queue.Declare", queue=name) + bound + publish(b"x", **binding) + deleted


def queues_with_timers(number: int) -> bytes:
    day_ms, name = 86_400_000, f"timed{number}"
    arguments = {
        "x-expires": day_ms, "x-message-ttl": day_ms, "x-max-length": 5,
        "x-dead-letter-exchange": "",
    }  # fmt: skip
    declared = no_wait("Queue.Declare", queue=name, arguments=arguments)
    return declared + publish(b"x", routing_key=name) + no_wait("Queue.Delete", queue=name)


def exchanges(number: int) -> bytes:
    name, arguments = f"churn{number}", {"alternate-exchange": f"never{number}"}
    return b"".join(
        (
            no_wait("Exchange.Declare", exchange=name, exchange_type="topic", arguments=arguments),
            no_wait("Exchange.Bind", source=name, destination="amq.fanout", routing_key="x"),
            publish(b"x", exchange=name, routing_key="y"),
            no_wait("Exchange.Delete", exchange=name),
        )
    )


def consumers(number: int) -> bytes:
    tag, arguments = f"tag{number}", {"x-priority": number}
    consumed = no_wait("Basic.Consume", queue="shared", consumer_tag=tag, arguments=arguments)
    return consumed + no_wait("Basic.Cancel", consumer_tag=tag)


def routing_keys(number: int) -> bytes:
    return publish(b"x", exchange="amq.direct", routing_key=f"only{number}")


def properties(number: int) -> bytes:
    values = {
        "message_id": f"id{number}", "correlation_id": "c" * (number % 200),
        "expiration": str(number), "headers": {f"name{number}": number},
    }  # fmt: skip
    return frames.publish_frames(1, b"x", values, routing_key="nobody")


def channels(number: int) -> bytes:
    return b"".join(
        (
            method("Channel.Open", 5),
            no_wait("Basic.Consume", 5, queue="shared"),
            no_wait("Confirm.Select", 5),
            publish(b"x", 5, routing_key=f"nobody{number}"),
            method("Channel.Close", 5, reply_code=200),
        )
    )


LONG = [exchanges, queues_with_timers, routing_keys, properties]
CHURNS = [queues, consumers, channels, *(pytest.param(x, marks=pytest.mark.thorough) for x in LONG)]


def _settles(memory_after: Callable[[int], int], limit_bytes: int) -> bool:
    """Whether a round comes that adds less than the limit.

    What forms cycles is collected in heaps, and the allocator takes memory in steps, so the first
    rounds may all grow; a leak grows with every one.
    """
    before = memory_after(0)
    for number in range(1, ROUNDS):
        after = memory_after(number)
        if after - before < limit_bytes:
            return True
        before = after
    return False


@pytest.mark.parametrize("make", CHURNS, ids=lambda make: make.__name__)
def test_cycles_leave_nothing_behind(warren: WarrenServer, make: Callable[[int], bytes]) -> None:
    with raw.connect(warren.amqp_port) as client:
        channel = client.channel()
        channel.declare("shared")

        def run(first: int, count: int) -> int:
            for batch in batches(make, first, count):
                client.send(batch)
                assert channel.ready("shared") == 0
            return memory_bytes(warren)

        assert _settles(lambda round_: run(round_ * CYCLES, CYCLES), CYCLES * LEAK_BYTES)


def connection(number: int) -> bytes:
    """All that a client says from the header to its end."""
    login = method(
        "Connection.StartOk", 0, mechanism="PLAIN", response="\0guest\0guest", locale="en_US"
    )
    return b"".join(
        (
            frames.PROTOCOL_HEADER,
            login,
            method("Connection.TuneOk", 0),
            method("Connection.Open", 0, virtual_host="/"),
            method("Channel.Open"),
            method("Queue.Declare", exclusive=True),
            method("Basic.Consume"),
            publish(b"x", routing_key=f"nobody{number}"),
            method("Connection.Close", 0) if number % 3 == 0 else b"no frame at all",
        )
    )


def test_connections_leave_nothing_behind(warren: WarrenServer) -> None:
    raw.connect(warren.amqp_port).socket.close()  # from here on the password is remembered
    sockets = open_sockets(warren)

    def come_and_go(first: int, count: int) -> int:
        for number in range(first, first + count):
            with socket.create_connection((raw.HOST, warren.amqp_port), raw.TIMEOUT_S) as client:
                client.sendall(connection(number))
                if number % 3 == 2:
                    reset(client)
                    continue
                answer = b""
                while CLOSE not in answer and CLOSE_OK not in answer:
                    chunk = client.recv(65_536)
                    assert chunk, "no word at the end"
                    answer += chunk
        wait_for_sockets(warren, sockets)
        return memory_bytes(warren)

    come_and_go(0, 750)
    assert _settles(
        lambda round_: come_and_go(750 * (1 + round_), 750), 750 * CONNECTION_LEAK_BYTES
    )
