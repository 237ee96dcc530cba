"""Turns, fairness, and waiting for a store that answers late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.amqp import (
    Client,
    Reply,
    bodies,
    make_broker,
    method,
    names,
    publish,
    take_turns,
)  # fmt: skip
from tests.support.manual_store import ManualStore
from warrenmq.core.broker import DISPATCH_MESSAGES, TURN_MESSAGES
from warrenmq.core.clock import ManualClock
from warrenmq.core.errors import ConnectionFault
from warrenmq.core.message.batch import MessageRange
from warrenmq.core.store.port import QueueIdentity

PERSISTENT = {"delivery_mode": 2}


def row(count: int, properties: Mapping[str, object] | None = None, key: str = "q") -> bytes:
    return b"".join(
        publish(1, b"%016d" % number, properties, routing_key=key) for number in range(count)
    )


def confirms(replies: list[Reply]) -> list[tuple[str, int, bool]]:
    return [
        (reply.name, reply["delivery_tag"], reply["multiple"])
        for reply in replies
        if reply.name in ("Basic.Ack", "Basic.Nack")
    ]


# -- turns


def test_a_turn_has_a_budget() -> None:
    client = Client(make_broker())
    client.declare("q")
    for _ in range(3):
        client.feed(row(DISPATCH_MESSAGES))
    client.connection.receive(method(1, "Basic.Consume", queue="q", no_ack=True))
    assert client.broker.turn(), "there is more to do"
    delivered = client.broker.counters.delivered
    assert 0 < delivered <= TURN_MESSAGES
    assert delivered < 3 * DISPATCH_MESSAGES
    take_turns(client.broker)
    assert client.broker.counters.delivered == 3 * DISPATCH_MESSAGES


def test_a_long_queue_does_not_hold_up_a_short_one() -> None:
    client = Client(make_broker())
    other = Client(client.broker)
    client.declare("q")
    for _ in range(5):
        client.feed(row(4 * DISPATCH_MESSAGES))
    other.declare("short")
    other.consume("short", no_ack=True)
    client.connection.receive(
        method(1, "Basic.Consume", queue="q", no_ack=True) + publish(1, b"x", routing_key="short")
    )
    client.broker.turn()
    assert other.bodies() == [b"x"]
    assert client.messages("q") > 0


def test_a_delivery_comes_in_the_turn_of_its_publish() -> None:
    client = Client(make_broker())
    client.declare("q")
    client.consume("q", no_ack=True)
    client.connection.receive(publish(1, b"x", routing_key="q"))
    client.broker.turn()
    assert client.bodies() == [b"x"]


def test_settling_a_queue_hands_out_what_it_has_and_leaves_others_alone() -> None:
    client = Client(make_broker())
    for queue in ("asked", "other"):
        client.declare(queue)
        client.consume(queue, queue, no_ack=True)
    client.connection.receive(publish(1, b"x", routing_key="asked"))
    client.connection.receive(publish(1, b"x", routing_key="other"))
    client.broker.settle(client.broker.vhosts["/"].queues["asked"])
    assert client.messages("asked") == 0
    assert client.messages("other") == 1
    client.broker.turn()
    assert client.messages("other") == 0


def test_ticking_entries_what_is_due() -> None:
    clock = ManualClock()
    broker = make_broker(clock=clock)
    done: list[int] = []
    broker.timers.at(clock.now_ms() + 5, lambda: done.append(broker.now_ms))
    broker.tick()
    assert done == []
    clock.advance(5)
    broker.tick()
    assert done == [clock.now_ms()]


def test_counters() -> None:
    client = Client(make_broker())
    client.declare("q")
    client.feed(row(30) + row(3, key="nobody"))
    client.publish(b"", {"headers": {"CC": []}}, routing_key="q")
    client.call("Basic.Get", queue="q")
    client.consume("q")
    counters = client.broker.counters
    assert (counters.published, counters.delivered) == (34, 31)


def test_vhosts() -> None:
    broker = make_broker()
    assert broker.vhost("/") is broker.vhosts["/"]
    with pytest.raises(ConnectionFault, match="vhost v not found") as caught:
        broker.vhost("v")
    assert caught.value.code == 530
    made = broker.add_vhost("v")
    assert broker.vhost("v") is made


def test_vhosts_are_apart() -> None:
    broker = make_broker()
    broker.add_vhost("v")
    broker.users.set_permissions("guest", "v", ".*", ".*", ".*")
    here, there = Client(broker), Client(broker, vhost="v")
    here.declare("q")
    here.publish(b"x", routing_key="q")
    (close,) = there.send("Basic.Get", queue="q")
    assert close["reply_text"] == "NOT_FOUND - no queue 'q' in vhost 'v'"


# -- confirms wait for the store


@pytest.fixture
def store() -> ManualStore:
    store = ManualStore()
    store.paging = False
    return store


@pytest.fixture(params=[True, False], ids=["fast", "cold"])
def publisher(request: pytest.FixtureRequest, store: ManualStore) -> Client:
    client = Client(make_broker(store), fast=request.param)
    client.declare("q", durable=True)
    client.declare("transient")
    client.call("Confirm.Select")
    return client


def commit(client: Client, store: ManualStore) -> list[Reply]:
    store.commit()
    take_turns(client.broker)
    return client.come()


def test_persistent_to_durable_waits_for_the_commit(publisher: Client, store: ManualStore) -> None:
    assert publisher.feed(row(30, PERSISTENT)) == []
    assert confirms(commit(publisher, store)) == [("Basic.Ack", 30, True)]
    assert commit(publisher, store) == []


@pytest.mark.parametrize(
    ("properties", "key"),
    [(None, "q"), (PERSISTENT, "transient"), ({"delivery_mode": 1}, "q"), (PERSISTENT, "nobody")],
)
def test_everything_else_is_confirmed_at_once(
    publisher: Client, properties: dict[str, Any] | None, key: str
) -> None:
    replies = publisher.feed(row(30, properties, key))
    assert confirms(replies) == [("Basic.Ack", 30, True)]


def test_confirms_come_in_publish_order(publisher: Client, store: ManualStore) -> None:
    """A transient publish behind a persistent one waits for its commit."""
    assert confirms(publisher.feed(row(2) + row(3, PERSISTENT) + row(4))) == [
        ("Basic.Ack", 2, True)
    ]
    assert publisher.feed(row(1)) == []
    assert confirms(commit(publisher, store)) == [("Basic.Ack", 10, True)]


def test_a_refusal_keeps_its_place(publisher: Client, store: ManualStore) -> None:
    publisher.declare("short", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    stream = row(1, PERSISTENT) + row(1, key="short") + row(1)
    assert publisher.feed(stream) == []
    assert confirms(commit(publisher, store)) == [
        ("Basic.Ack", 1, False), ("Basic.Nack", 2, False), ("Basic.Ack", 3, False),
    ]  # fmt: skip


def test_channels_wait_for_themselves(publisher: Client, store: ManualStore) -> None:
    publisher.call("Channel.Open", 2)
    publisher.call("Confirm.Select", 2)
    replies = publisher.feed(row(1, PERSISTENT) + publish(2, b"x", routing_key="q"))
    assert [(reply.channel, reply["delivery_tag"]) for reply in replies] == [(2, 1)]
    assert [reply.channel for reply in commit(publisher, store)] == [1]


def test_one_commit_serves_all_publishers(publisher: Client, store: ManualStore) -> None:
    other = Client(publisher.broker)
    other.call("Confirm.Select")
    publisher.feed(row(3, PERSISTENT))
    other.feed(row(2, PERSISTENT))
    assert confirms(commit(publisher, store)) == [("Basic.Ack", 3, True)]
    assert confirms(other.come()) == [("Basic.Ack", 2, True)]


def test_publishes_after_the_last_commit_wait_for_the_next(
    publisher: Client, store: ManualStore
) -> None:
    publisher.feed(row(3, PERSISTENT))
    commit(publisher, store)
    assert publisher.feed(row(2, PERSISTENT)) == []
    assert confirms(commit(publisher, store)) == [("Basic.Ack", 5, True)]


def test_who_waits_for_a_commit_is_told_of_that_one(store: ManualStore) -> None:
    """In the order of the commits, each once, whatever goes wrong with another."""
    broker = make_broker(store)
    told: list[str] = []
    late = store.barrier() + 2
    broker.when_kept(late, lambda: told.append("late"))
    broker.when_kept(late - 1, lambda: told.append(str(1 // 0)))
    broker.when_kept(late - 1, lambda: told.append("early"))
    store.barrier()
    store.commit()
    assert told == ["early"]
    broker.when_kept(late - 1, lambda: told.append("at once"))
    store.barrier()
    store.commit()
    store.commit()
    assert told == ["early", "at once", "late"]


def test_deliveries_do_not_wait(publisher: Client) -> None:
    consumer = Client(publisher.broker)
    consumer.consume("q")
    publisher.feed(row(3, PERSISTENT))
    assert len(consumer.bodies()) == 3


def test_a_lost_connection_is_not_confirmed(publisher: Client, store: ManualStore) -> None:
    publisher.feed(row(3, PERSISTENT))
    publisher.connection.lost()
    assert commit(publisher, store) == []
    assert publisher.messages("q") == 3


def test_a_closed_channel_is_not_confirmed(publisher: Client, store: ManualStore) -> None:
    publisher.feed(row(3, PERSISTENT))
    publisher.call("Channel.Close")
    assert commit(publisher, store) == []


def test_a_reopened_channel_counts_from_1(publisher: Client, store: ManualStore) -> None:
    publisher.feed(row(3, PERSISTENT))
    publisher.feed(method(1, "Channel.Close") + method(1, "Channel.Open"))
    publisher.call("Confirm.Select")
    publisher.feed(row(1, PERSISTENT))
    assert confirms(commit(publisher, store)) == [("Basic.Ack", 1, False)]


def test_some_work_is_announced_when_a_commit_comes(publisher: Client, store: ManualStore) -> None:
    """No bytes come in then, so whoever drives the turns has to be told."""
    called: list[bool] = []
    publisher.feed(row(1, PERSISTENT))
    publisher.broker.on_work = lambda: called.append(True)
    store.commit()
    assert called


# -- messages that are not resident


def arrive(client: Client, store: ManualStore) -> list[Reply]:
    """All reads come in, and those that follow from them."""
    while store.arrive():
        take_turns(client.broker)
    return client.come()


@pytest.fixture
def paged(store: ManualStore) -> Client:
    """A connection without confirms; 40 persistent messages are in `q`, none in memory."""
    store.paging = True
    client = Client(make_broker(store))
    client.declare("q", durable=True)
    client.feed(row(30, PERSISTENT))
    client.feed(row(10, PERSISTENT))
    return client


EXPECTED = [b"%016d" % number for number in (*range(30), *range(10))]


def test_a_consumer_gets_them_when_they_arrive(paged: Client, store: ManualStore) -> None:
    assert paged.consume("q") == []
    assert bodies(arrive(paged, store)) == EXPECTED
    assert paged.connection.channels[1].unacked_count == 40


def test_a_prefetch_holds_for_them(paged: Client, store: ManualStore) -> None:
    paged.send("Basic.Qos", prefetch_count=31)
    paged.consume("q")
    assert bodies(arrive(paged, store)) == EXPECTED[:31]
    # The rest of the second batch is in memory by now.
    assert bodies(paged.send("Basic.Ack", delivery_tag=31, multiple=True)) == EXPECTED[31:]


def test_get_answers_when_it_arrives(paged: Client, store: ManualStore) -> None:
    assert paged.send("Basic.Get", queue="q") == []
    (got,) = arrive(paged, store)
    assert (got.name, got.body, got["message_count"]) == ("Basic.GetOk", EXPECTED[0], 39)
    assert paged.call("Basic.Get", queue="q").body == EXPECTED[1]


def test_gets_in_a_row_answer_in_order(paged: Client, store: ManualStore) -> None:
    found = paged.feed(b"".join(method(1, "Basic.Get", queue="q") for _ in range(32)))
    for _ in range(32):
        found += arrive(paged, store) + paged.feed(b"")
    assert bodies(found) == EXPECTED[:32]


def test_a_consumer_that_leaves_meanwhile(paged: Client, store: ManualStore) -> None:
    paged.consume("q")
    paged.call("Basic.Cancel", consumer_tag="c")
    assert arrive(paged, store) == []
    assert paged.messages("q") == 40
    assert bodies(paged.consume("q") + arrive(paged, store)) == EXPECTED


def test_a_requeued_message_goes_before_the_ones_on_disk(paged: Client, store: ManualStore) -> None:
    paged.send("Basic.Get", queue="q")
    arrive(paged, store)
    paged.send("Basic.Reject", delivery_tag=1, requeue=True)
    other = Client(paged.broker)
    replies = other.consume("q")
    take_turns(paged.broker)
    while store.arrive():
        take_turns(paged.broker)
    replies += other.come()
    assert bodies(replies) == EXPECTED
    assert [reply["redelivered"] for reply in replies] == [True] + [False] * 39


def test_dead_letters_are_read_first(store: ManualStore) -> None:
    store.paging = True
    client = Client(make_broker(store))
    client.declare("dead")
    client.declare(
        "q", durable=True,
        arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead",
                   "x-max-length": 2},
    )  # fmt: skip
    client.feed(row(30, PERSISTENT))
    assert client.messages("dead") == 0
    while store.arrive():
        take_turns(client.broker)
    assert client.messages("dead") == 28
    assert bodies(client.consume("dead")) == EXPECTED[:28]


def test_while_a_read_is_under_way_there_is_nothing_to_do(
    paged: Client, store: ManualStore
) -> None:
    """A broker that said so would turn without end."""
    paged.connection.receive(method(1, "Basic.Consume", queue="q"))
    paged.broker.turn()
    assert not paged.broker.turn()


def test_another_queues_messages_pass(paged: Client) -> None:
    paged.declare("other")
    paged.consume("q", "a")
    paged.consume("other", "b")
    assert bodies(paged.publish(b"x", routing_key="other")) == [b"x"]


def test_acknowledged_is_settled_in_the_store() -> None:
    settled: list[tuple[int, int, int]] = []

    class Watching(ManualStore):
        def settle(self, queue: QueueIdentity, messages: MessageRange) -> None:
            settled.append((queue.id, messages.low, messages.high))

    store = Watching()
    store.paging = False
    client = Client(make_broker(store))
    client.declare("q", durable=True)
    client.declare("transient")
    client.feed(row(30, PERSISTENT) + row(30, PERSISTENT, "transient"))
    client.consume("q")
    client.consume("transient", "t")
    client.send("Basic.Ack", delivery_tag=10, multiple=True)
    client.send("Basic.Reject", delivery_tag=11)
    number = client.broker.vhosts["/"].queues["q"].id
    assert settled == [(number, 0, 10), (number, 10, 11)]


def test_what_consumers_can_take_leaves_room_in_a_queue_that_refuses() -> None:
    client = Client(make_broker())
    client.declare("q", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    client.call("Confirm.Select")
    client.send("Basic.Qos", prefetch_count=3)
    client.consume("q")
    replies = client.feed(row(5))
    assert names(replies) == ["Basic.Deliver"] * 3 + ["Basic.Ack", "Basic.Nack"]
    assert confirms(replies) == [("Basic.Ack", 4, True), ("Basic.Nack", 5, False)]


def test_offer_tells_who_refuses_and_keeps_what_was_taken() -> None:
    store = ManualStore()
    store.paging = False
    client = Client(make_broker(store))
    client.declare(
        "full", durable=True, arguments={"x-max-length": 0, "x-overflow": "reject-publish"}
    )
    client.declare("q", durable=True)
    client.call("Queue.Bind", queue="full", exchange="amq.fanout")
    client.call("Queue.Bind", queue="q", exchange="amq.fanout")
    client.call("Confirm.Select")
    assert names(client.publish(b"x", PERSISTENT, exchange="amq.fanout")) == ["Basic.Nack"]
    assert client.messages("q") == 1
