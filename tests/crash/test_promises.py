"""What a single client was promised, each promise broken by a kill if it can be."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.conformance import raw
from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .support import Sender, Taker, amqp, depth, drain, exists, numbers

pytestmark = pytest.mark.promise

PERSISTENT = {"delivery_mode": 2}


def has_more(server: WarrenServer, queue: str, count: int) -> bool:
    return depth(server, queue) > count


def crash(server: WarrenServer) -> None:
    server.kill()
    server.start()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarrenServer]:
    """Killed once, behind everything that a client was promised."""
    data = tmp_path_factory.mktemp("promises")
    with WarrenServer(dev=True, data=data) as server:
        publish_and_settle(server)
        commit(server)
        define(server)
        with Sender(server, "last") as sender:
            sender.publish(1)
        crash(server)
        yield server


def publish_and_settle(server: WarrenServer) -> None:
    with Sender(server, "confirmed") as sender:
        assert len(sender.publish(5_000).confirmed) == 5_000
    with Sender(server, "acked") as sender:
        sender.publish(1_000)
        taker = Taker(amqp(server), "acked", prefetch=300)
        assert len(taker.take(300)) == 300
        taker.ack()
        taker.leave()
    with Sender(server, "purged") as sender, raw.connect(server.amqp_port) as client:
        # One by one, so that it takes a while to settle them.
        for _ in range(2_000):
            sender.publish(1)
        assert client.channel().call("Queue.Purge", queue="purged").message_count == 2_000
        sender.publish(1)


def commit(server: WarrenServer) -> None:
    with Sender(server, "acks") as sender:
        sender.publish(10)
    with raw.connect(server.amqp_port) as client:
        channel = client.channel()
        channel.declare("tx", durable=True)
        channel.call("Tx.Select")
        channel.publish(b"rolled back", PERSISTENT, routing_key="tx")
        channel.call("Tx.Rollback")
        for _ in range(10):
            last = channel.taken("acks", no_ack=False).method.delivery_tag
        channel.publish(b"kept", PERSISTENT, routing_key="tx")
        channel.send("Basic.Ack", delivery_tag=last - 5, multiple=True)
        channel.call("Tx.Commit")
        channel.publish(b"open", PERSISTENT, routing_key="tx")
        channel.send("Basic.Ack", delivery_tag=last, multiple=True)
        # Persistent messages of others do not carry it along.
        with Sender(server, "other") as sender:
            sender.publish(1)


def define(server: WarrenServer) -> None:
    with raw.connect(server.amqp_port) as client:
        channel = client.channel()
        for name in ("stays", "goes"):
            channel.declare(name, durable=True)
            channel.publish(b"before", PERSISTENT, routing_key=name)
        channel.declare("passing")
        channel.call("Exchange.Declare", exchange="x", exchange_type="topic", durable=True)
        channel.call("Queue.Bind", queue="stays", exchange="x", routing_key="a.#")
        channel.call("Queue.Delete", queue="goes")


def test_confirmed_messages_come_back_in_order(server: WarrenServer) -> None:
    taken = drain(server, "confirmed")
    assert numbers(taken) == list(range(5_000))
    assert not any(one.redelivered for one in taken)


@pytest.mark.parametrize(
    ("queue", "left"),
    [("acked", range(300, 1_000)), ("purged", range(2_000, 2_001)), ("acks", range(5, 10))],
)
def test_what_was_settled_before_a_confirm_is_gone(
    server: WarrenServer, queue: str, left: range
) -> None:
    assert numbers(drain(server, queue)) == list(left)


def test_a_commit_is_kept_and_the_rest_is_not(server: WarrenServer) -> None:
    with raw.connect(server.amqp_port) as client:
        assert client.channel().drain("tx") == [b"kept"]


def test_definitions_before_a_confirm_are_kept(server: WarrenServer) -> None:
    assert [exists(server, name) for name in ("stays", "goes", "passing")] == [True, False, False]
    with raw.connect(server.amqp_port) as client:
        channel = client.channel()
        channel.publish(b"after", PERSISTENT, exchange="x", routing_key="a.b")
        assert channel.drain("stays") == [b"before", b"after"]


def test_acks_are_kept_over_an_orderly_stop(server: WarrenServer) -> None:
    with Sender(server, "drained") as sender:
        sender.publish(100)
    assert len(drain(server, "drained")) == 100
    assert server.stop() == 0
    server.start()
    assert depth(server, "drained") == 0


def test_the_flag_survives_the_segment_that_was_open(tmp_path: Path) -> None:
    """What was delivered stands in files that were complete before the crash."""
    data, size = tmp_path / "own", 10_000
    with WarrenServer(dev=True, data=data, args=["--segment-bytes", str(1 << 20)]) as server:
        with Sender(server, "q", size=size) as sender:
            taker = Taker(amqp(server), "q")
            sender.publish(500, at_once=50)
            assert len(taker.take(500)) == 500
            checkpoints = set((data / "log").glob("*.state"))
            with Sender(server, "other", size=size) as other:
                while len(set((data / "log").glob("*.state")) - checkpoints) < 2:
                    other.publish(50)
            taker.client.socket.close()
        crash(server)
        taken = drain(server, "q")
        assert numbers(taken) == list(range(500))
        assert all(one.redelivered for one in taken)


def test_a_dead_letter_is_in_one_place(server: WarrenServer) -> None:
    with raw.connect(server.amqp_port) as client:
        channel = client.channel()
        channel.declare("dead", durable=True)
        to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        channel.declare("q", durable=True, arguments=to_dead)
    for life in range(3):
        with Sender(server, "covers") as sender, raw.connect(server.amqp_port) as client:
            channel = client.channel()
            channel.publish(b"%d" % life, PERSISTENT, routing_key="q")
            tag = channel.taken("q", no_ack=False).method.delivery_tag
            channel.send("Basic.Reject", delivery_tag=tag, requeue=False)
            wait_until(partial(has_more, server, "dead", life), 10.0, "the dead letter")
            sender.publish(1)
        crash(server)
    with raw.connect(server.amqp_port) as client:
        channel = client.channel()
        assert channel.ready("q") == 0
        assert channel.drain("dead") == [b"0", b"1", b"2"]
