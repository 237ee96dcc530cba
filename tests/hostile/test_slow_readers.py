"""Clients that do not read: memory stays bounded, and the others get what is theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.conformance import frames, raw
from tests.support.server import WarrenServer

from .support import MIB, assert_serves, deaf, forget_peak, method, peak_bytes, publish, push

BOUND_BYTES = 64 * MIB
"""Far above what one client may cost, far below what it takes without a bound."""
PUSHED_BYTES = 4 * MIB


def ask_get(channel: raw.Channel, queue: str) -> bytes:
    channel.put(queue, b"x" * 16_384)
    nack = method("Basic.Nack", delivery_tag=0, multiple=True, requeue=True)
    return method("Basic.Get", queue=queue) + nack


def ask_recover(channel: raw.Channel, queue: str) -> bytes:
    channel.put(queue, *[b"x" * 100_000] * 20)
    for _ in range(20):
        channel.taken(queue, no_ack=False)
    return method("Basic.RecoverAsync", requeue=False)


def ask_return(channel: raw.Channel, queue: str) -> bytes:
    return publish(b"x" * 1000, mandatory=True, routing_key="nowhere")


def ask_declare(channel: raw.Channel, queue: str) -> bytes:
    return method("Queue.Declare", queue=queue, passive=True)


@pytest.fixture
def own() -> Iterator[WarrenServer]:
    """A server of its own, which may be busy for long afterwards."""
    with WarrenServer() as server:
        yield server
        server.kill()


@pytest.mark.parametrize("ask", [ask_get, ask_recover, ask_return, ask_declare])
def test_answers_to_a_client_that_does_not_read_are_bounded(
    own: WarrenServer, ask: Callable[[raw.Channel, str], bytes]
) -> None:
    with raw.connect(own.amqp_port) as client:
        channel = client.channel()
        request = ask(channel, str(channel.declare(exclusive=True).queue))
        before = forget_peak(own)
        push(client.socket, request * 1000, PUSHED_BYTES)
        assert peak_bytes(own) - before < BOUND_BYTES
        assert_serves(own)


def test_consumers_that_never_read_do_not_slow_others(warren: WarrenServer) -> None:
    deaf_ones = [deaf(warren.amqp_port) for _ in range(10)]
    with raw.connect(warren.amqp_port) as client:
        channel = client.channel()
        mine = str(channel.declare(exclusive=True).queue)
        channel.call("Queue.Bind", queue=mine, exchange="amq.fanout")
        for each in deaf_ones:
            theirs = each.channel()
            queue = str(theirs.declare(exclusive=True).queue)
            theirs.call("Queue.Bind", queue=queue, exchange="amq.fanout")
            theirs.consume(queue, no_ack=True)
        before = forget_peak(warren)
        channel.consume(mine, no_ack=True)
        for number in range(50):
            bodies = [b"%d" % number * 1000] * 100
            client.send(b"".join(publish(body, exchange="amq.fanout") for body in bodies))
            assert channel.bodies(100) == bodies
        # Their queues share 10 MB of messages; beyond that each has its write buffer.
        assert peak_bytes(warren) - before < BOUND_BYTES
    for each in deaf_ones:
        each.socket.close()
    assert_serves(warren)


def test_memory_of_one_byte_frames(warren: WarrenServer) -> None:
    size = MIB // 2
    with raw.connect(warren.amqp_port) as client:
        channel = client.channel()
        queue = str(channel.declare(exclusive=True).queue)
        before = forget_peak(warren)
        client.send(method("Basic.Publish", routing_key=queue))
        client.send(frames.frame(frames.HEADER, 1, frames.content_header(size)))
        client.send(frames.frame(frames.BODY, 1, b"x") * size)
        assert channel.taken(queue).body == b"x" * size
        assert peak_bytes(warren) - before < BOUND_BYTES // 2
