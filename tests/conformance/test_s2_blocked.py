"""amqp.md section 2: connection.blocked.

Each server is short of memory or disk from its start.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.server import WarrenServer

from . import frames, raw

DISK = ["--disk-free-limit", "1000000TiB"]
MEMORY = ["--memory-limit", "1B"]
SHORTAGES = {
    "low on disk": DISK,
    "low on memory": [*MEMORY, "--disk-free-limit", "0"],
    "low on memory & disk": [*MEMORY, *DISK],
}
BEATS = 5
"""At a heartbeat of 1 s one comes each half second, so these last longer than the 2 s after
which a silent client would be taken for dead."""


@pytest.fixture(scope="module", params=SHORTAGES)
def shortage(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    """The reason in connection.blocked, and the port of a server that has it."""
    with WarrenServer(args=SHORTAGES[request.param]) as server:
        yield request.param, server.amqp_port


@pytest.fixture(scope="module")
def short_port() -> Iterator[int]:
    with WarrenServer(args=DISK) as server:
        yield server.amqp_port


def test_blocked_has_the_reason(shortage: tuple[str, int]) -> None:
    reason, port = shortage
    with raw.connect(port) as client:
        channel = client.channel()
        channel.publish(b"a", routing_key="nowhere")
        assert client.expect("Connection.Blocked").reason == reason


def test_a_publisher_is_not_read_and_does_not_time_out(short_port: int) -> None:
    with raw.connect(short_port, heartbeat=1) as client:
        channel = client.channel()
        channel.publish(b"a", routing_key="nowhere", mandatory=True)
        client.expect("Connection.Blocked")
        channel.send("Basic.Qos")
        beats = [client.read_frame() for _ in range(BEATS)]
        assert beats == [(frames.HEARTBEAT, 0, b"")] * BEATS


def test_other_connections_are_not_blocked(short_port: int, name: str) -> None:
    with raw.connect(short_port) as publisher, raw.connect(short_port) as reader:
        publisher.channel().publish(b"a", routing_key="nowhere")
        publisher.expect("Connection.Blocked")
        channel = reader.channel()
        channel.declare(name)
        channel.consume(name)
        assert channel.ready(name) == 0


def test_blocked_is_not_sent_without_the_capability(short_port: int) -> None:
    with raw.connect(short_port, heartbeat=1, capabilities={}) as client:
        client.channel().publish(b"a", routing_key="nowhere", mandatory=True)
        beats = [client.read_frame() for _ in range(BEATS)]
        assert beats == [(frames.HEARTBEAT, 0, b"")] * BEATS
