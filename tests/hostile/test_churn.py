"""Making and ending things over and over leaves nothing behind."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from tests.conformance import frames, raw
from tests.support.server import WarrenServer

from .support import batches, memory_bytes, method, open_files, publish, reset, wait_for_files

CLOSE_OK = method("Connection.CloseOk", 0)
CLOSE = b"\x00\x0a\x00\x32"
CYCLES = 5_000
ROUNDS = 10
LEAK_BYTES = 160
"""Per cycle; the smallest object that a cycle could leave, with its place in a dictionary."""
CONNECTION_LEAK_BYTES = 3_000
"""A third of what an open connection takes."""


def queues(number: int) -> bytes:
    name, key = f"churn{number}", f"key{number}"
    return b"".join(
        (
            method("Queue.Declare", queue=name, nowait=True),
            method("Queue.Bind", queue=name, exchange="amq.topic", routing_key=key, nowait=True),
            publish(b"x", exchange="amq.topic", routing_key=key),
            method("Queue.Delete", queue=name, nowait=True),
        )
    )


def queues_with_timers(number: int) -> bytes:
    arguments = {
        "x-expires": 86_400_000,
        "x-message-ttl": 86_400_000,
        "x-max-length": 5,
        "x-dead-letter-exchange": "",
    }
    name = f"timed{number}"
    return b"".join(
        (
            method("Queue.Declare", queue=name, arguments=arguments, nowait=True),
            publish(b"x", routing_key=name),
            method("Queue.Delete", queue=name, nowait=True),
        )
    )


def exchanges(number: int) -> bytes:
    name, alternate = f"churn{number}", {"alternate-exchange": f"never{number}"}
    return b"".join(
        (
            method(
                "Exchange.Declare",
                exchange=name,
                exchange_type="topic",
                arguments=alternate,
                nowait=True,
            ),
            method(
                "Exchange.Bind", source=name, destination="amq.fanout", routing_key="x", nowait=True
            ),
            publish(b"x", exchange=name, routing_key="y"),
            method("Exchange.Delete", exchange=name, nowait=True),
        )
    )


def consumers(number: int) -> bytes:
    tag, arguments = f"tag{number}", {"x-priority": number}
    return method(
        "Basic.Consume", queue="shared", consumer_tag=tag, arguments=arguments, nowait=True
    ) + method("Basic.Cancel", consumer_tag=tag, nowait=True)


def routing_keys(number: int) -> bytes:
    return publish(b"x", exchange="amq.direct", routing_key=f"only{number}")


def properties(number: int) -> bytes:
    values = {
        "message_id": f"id{number}",
        "correlation_id": "c" * (number % 200),
        "expiration": str(number),
        "headers": {f"name{number}": number},
    }
    return frames.publish_frames(1, b"x", values, routing_key="nobody")


def channels(number: int) -> bytes:
    return b"".join(
        (
            method("Channel.Open", 5),
            method("Basic.Consume", 5, queue="shared", nowait=True),
            method("Confirm.Select", 5, nowait=True),
            publish(b"x", 5, routing_key=f"nobody{number}"),
            method("Channel.Close", 5, reply_code=200),
        )
    )


CHURNS = [exchanges, queues, queues_with_timers, consumers, routing_keys, properties, channels]


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
    files = open_files(warren)

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
        wait_for_files(warren, files)
        return memory_bytes(warren)

    come_and_go(0, 750)
    assert _settles(
        lambda round_: come_and_go(750 * (1 + round_), 750), 750 * CONNECTION_LEAK_BYTES
    )
