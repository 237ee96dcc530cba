"""What a single client was promised, each promise broken by a kill if it can be."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.conformance import raw
from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .support import Sender, Taker, amqp, depth, drain, exists, numbers

PERSISTENT = {"delivery_mode": 2}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WarrenServer]:
    with WarrenServer(dev=True, data=tmp_path / "data") as server:
        yield server


def has_more(server: WarrenServer, queue: str, count: int) -> bool:
    return depth(server, queue) > count


def crash(server: WarrenServer) -> None:
    server.kill()
    server.start()


def test_confirmed_messages_come_back_in_order(server: WarrenServer) -> None:
    with Sender(server, "q") as sender:
        assert len(sender.publish(5_000).confirmed) == 5_000
    crash(server)
    taken = drain(server, "q")
    assert numbers(taken) == list(range(5_000))
    assert not any(one.redelivered for one in taken)


def test_each_single_confirm_counts(server: WarrenServer) -> None:
    for life in range(3):
        with Sender(server, "q", first=life) as sender:
            sender.publish(1)
        crash(server)
    assert numbers(drain(server, "q")) == [0, 1, 2]


def test_an_accepted_post_comes_back(server: WarrenServer) -> None:
    auth = ("guest", "guest")
    httpx.put(f"{server.http_url}/endpoint/q/posted", auth=auth).raise_for_status()
    answer = httpx.post(f"{server.http_url}/endpoint/q/posted", content=b"one", auth=auth)
    assert answer.status_code == 202
    crash(server)
    with raw.connect(server.amqp_port) as client:
        assert client.channel().drain("posted") == [b"one"]


def test_delivered_and_unacked_ones_come_back_flagged(server: WarrenServer) -> None:
    with Sender(server, "q") as sender:
        sender.publish(100)
        taker = Taker(amqp(server), "q", prefetch=40)
        assert len(taker.take(40)) == 40
        sender.publish(1)
        taker.client.socket.close()
    crash(server)
    taken = drain(server, "q")
    assert numbers(taken) == list(range(101))
    assert all(one.redelivered for one in taken[:40])


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


def test_an_ack_before_a_confirm_is_kept(server: WarrenServer) -> None:
    with Sender(server, "q") as sender:
        sender.publish(1_000)
        taker = Taker(amqp(server), "q", prefetch=300)
        taken = taker.take(300)
        taker.ack()
        taker.leave()
        sender.publish(1)
    crash(server)
    assert numbers(drain(server, "q")) == list(range(len(taken), 1_001))


def test_a_purge_is_kept(server: WarrenServer) -> None:
    """Of messages that came one by one, so that it takes a while to settle them."""
    with Sender(server, "q") as sender, raw.connect(server.amqp_port) as client:
        for _ in range(4_000):
            sender.publish(1)
        assert client.channel().call("Queue.Purge", queue="q").message_count == 4_000
        sender.publish(1)
    crash(server)
    assert numbers(drain(server, "q")) == [4_000]


def test_odd_acks_are_kept(server: WarrenServer) -> None:
    with Sender(server, "q") as sender:
        sender.publish(1_000)
        with raw.connect(server.amqp_port) as client:
            channel = client.channel()
            for _ in range(500):
                tag = channel.taken("q", no_ack=False).method.delivery_tag
                if tag % 3 == 0:
                    channel.send("Basic.Ack", delivery_tag=tag)
            channel.close()
        sender.publish(1)
    crash(server)
    kept = [number for number in range(1_001) if number >= 500 or (number + 1) % 3]
    assert numbers(drain(server, "q")) == kept


def test_acks_are_kept_over_an_orderly_stop(server: WarrenServer) -> None:
    with Sender(server, "q") as sender:
        sender.publish(100)
    assert len(drain(server, "q")) == 100
    assert server.stop() == 0
    server.start()
    assert depth(server, "q") == 0


def test_a_commit_is_kept_and_the_rest_is_not(server: WarrenServer) -> None:
    with raw.connect(server.amqp_port) as client:
        channel = client.channel()
        channel.declare("q", durable=True)
        channel.call("Tx.Select")
        channel.publish(b"rolled back", PERSISTENT, routing_key="q")
        channel.call("Tx.Rollback")
        channel.publish(b"kept", PERSISTENT, routing_key="q")
        channel.call("Tx.Commit")
        channel.publish(b"open", PERSISTENT, routing_key="q")
        # Persistent messages of others do not carry it along.
        with Sender(server, "other") as sender:
            sender.publish(1)
    crash(server)
    with raw.connect(server.amqp_port) as client:
        assert client.channel().drain("q") == [b"kept"]


def test_acks_of_a_commit_are_kept(server: WarrenServer) -> None:
    with Sender(server, "q") as sender:
        sender.publish(10)
    with raw.connect(server.amqp_port) as client:
        channel = client.channel()
        channel.call("Tx.Select")
        for _ in range(10):
            last = channel.taken("q", no_ack=False).method.delivery_tag
        channel.send("Basic.Ack", delivery_tag=last - 5, multiple=True)
        channel.call("Tx.Commit")
        channel.send("Basic.Ack", delivery_tag=last, multiple=True)
        with Sender(server, "other") as sender:
            sender.publish(1)
    crash(server)
    assert numbers(drain(server, "q")) == [5, 6, 7, 8, 9]


def test_definitions_before_a_confirm_are_kept(server: WarrenServer) -> None:
    with Sender(server, "covers") as sender, raw.connect(server.amqp_port) as client:
        channel = client.channel()
        for name in ("stays", "goes", "emptied"):
            channel.declare(name, durable=True)
            sender_of = {"routing_key": name}
            channel.publish(b"before", PERSISTENT, **sender_of)
        channel.declare("passing")
        channel.call("Exchange.Declare", exchange="x", exchange_type="topic", durable=True)
        channel.call("Queue.Bind", queue="stays", exchange="x", routing_key="a.#")
        channel.call("Queue.Delete", queue="goes")
        channel.call("Queue.Purge", queue="emptied")
        sender.publish(1)
    crash(server)
    assert [exists(server, name) for name in ("stays", "goes", "passing")] == [True, False, False]
    with raw.connect(server.amqp_port) as client:
        channel = client.channel()
        channel.publish(b"after", PERSISTENT, exchange="x", routing_key="a.b")
        assert channel.ready("emptied") == 0
        assert channel.drain("stays") == [b"before", b"after"]


def test_transient_messages_end_with_the_process(server: WarrenServer) -> None:
    with Sender(server, "q", persistent=False) as sender:
        sender.publish(10)
    with Sender(server, "q") as sender:
        sender.publish(1)
    crash(server)
    assert numbers(drain(server, "q")) == [0]


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
