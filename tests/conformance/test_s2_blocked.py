"""amqp.md section 2: connection.blocked, what it is told for and whom it stops.

Each server here is short of something from its start, whatever the machine has.
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
    """The reason that clients are told, and the port of a server that has it."""
    with WarrenServer(args=SHORTAGES[request.param]) as server:
        yield request.param, server.amqp_port


@pytest.fixture(scope="module")
def short_port() -> Iterator[int]:
    with WarrenServer(args=DISK) as server:
        yield server.amqp_port


def test_blocked_tells_why(shortage: tuple[str, int]) -> None:
    reason, port = shortage
    with raw.connect(port) as client:
        channel = client.channel()
        channel.publish(b"a", routing_key="nowhere")
        assert client.expect("Connection.Blocked").reason == reason


def test_who_publishes_is_not_read_any_more(short_port: int) -> None:
    """Nor is it taken for dead meanwhile: what it sends can't be heard."""
    with raw.connect(short_port, heartbeat=1) as client:
        channel = client.channel()
        channel.publish(b"a", routing_key="nowhere", mandatory=True)
        client.expect("Connection.Blocked")
        channel.send("Basic.Qos")
        beats = [client.read_frame() for _ in range(BEATS)]
        assert beats == [(frames.HEARTBEAT, 0, b"")] * BEATS


def test_who_does_not_publish_goes_on(short_port: int, name: str) -> None:
    with raw.connect(short_port) as publisher, raw.connect(short_port) as reader:
        publisher.channel().publish(b"a", routing_key="nowhere")
        publisher.expect("Connection.Blocked")
        channel = reader.channel()
        channel.declare(name)
        channel.consume(name)
        assert channel.ready(name) == 0


def test_who_does_not_know_blocked_is_not_told(short_port: int) -> None:
    """It is not read all the same: heartbeats are all that comes."""
    with raw.connect(short_port, heartbeat=1, capabilities={}) as client:
        client.channel().publish(b"a", routing_key="nowhere", mandatory=True)
        beats = [client.read_frame() for _ in range(BEATS)]
        assert beats == [(frames.HEARTBEAT, 0, b"")] * BEATS
