"""Class basic but for publish and deliver (AMQP 0-9-1 1.8)."""

from __future__ import annotations

import pytest

from tests.conformance.frames import FRAME_MIN
from tests.support.amqp import (
    Client,
    Reply,
    bodies,
    make_broker,
    method,
    names,
    publish,
    take_turns,
)
from tests.support.manual_store import ManualStore
from warrenmq.core.clock import ManualClock


@pytest.fixture
def client() -> Client:
    client = Client(make_broker())
    client.declare("q")
    return client


def fill(client: Client, count: int) -> None:
    row = (publish(1, b"%d" % number, routing_key="q") for number in range(count))
    client.feed(b"".join(row))


def refused(replies: list[Reply]) -> tuple[int, str]:
    (close,) = replies
    assert close.name == "Channel.Close"
    return close["reply_code"], close["reply_text"]


# -- qos


def test_qos_holds_for_later_consumers_only(client: Client) -> None:
    client.consume("q", "before")
    client.call("Basic.Qos", prefetch_count=1)
    client.consume("q", "after")
    fill(client, 10)
    channel = client.connection.channels[1]
    assert channel.consumers["before"].unacked_count == 9
    assert channel.consumers["after"].unacked_count == 1


def test_qos_0_lifts_the_limit(client: Client) -> None:
    client.call("Basic.Qos", prefetch_count=1, global_=True)
    fill(client, 3)
    assert len(client.consume("q")) == 1
    ok, *more = client.send("Basic.Qos", global_=True)
    assert ok.name == "Basic.QosOk"
    assert len(more) == 2


def test_both_limits_hold(client: Client) -> None:
    client.call("Basic.Qos", prefetch_count=3)
    client.call("Basic.Qos", prefetch_count=4, global_=True)
    fill(client, 10)
    assert len(client.consume("q", "a")) == 3
    assert len(client.consume("q", "b")) == 1


def test_a_limit_of_the_channel_is_not_for_quorum_queues(client: Client) -> None:
    """As long as there is one; those of consumers are, and get asks for none."""
    client.declare("safe", durable=True, arguments={"x-queue-type": "quorum"})
    client.call("Basic.Qos", prefetch_count=5)
    client.consume("safe", "own")
    client.call("Basic.Qos", prefetch_count=5, global_=True)
    assert client.call("Basic.Get", queue="safe").name == "Basic.GetEmpty"
    client.call("Basic.Qos", global_=True)
    client.consume("safe", "no limit")
    client.call("Basic.Qos", prefetch_count=5, global_=True)
    client.consume("q", "classic")
    close = client.call("Basic.Consume", queue="safe", no_ack=True)
    assert (close.name, close["reply_code"]) == ("Connection.Close", 540)
    assert close["reply_text"] == (
        "NOT_IMPLEMENTED - queue 'safe' in vhost '/' does not support global qos"
    )


def test_without_acks_qos_does_not_count(client: Client) -> None:
    client.call("Basic.Qos", prefetch_count=1)
    client.call("Basic.Qos", prefetch_count=1, global_=True)
    fill(client, 5)
    assert len(client.consume("q", no_ack=True)) == 5


def test_prefetch_size_is_not_there(client: Client) -> None:
    (close,) = client.send("Basic.Qos", prefetch_size=100)
    assert (close.name, close["reply_code"]) == ("Connection.Close", 540)


# -- consume


def test_consume_ok_comes_before_the_first_delivery(client: Client) -> None:
    fill(client, 1)
    replies = client.send("Basic.Consume", queue="q", consumer_tag="c")
    assert names(replies) == ["Basic.ConsumeOk", "Basic.Deliver"]


def test_server_makes_the_tag(client: Client) -> None:
    first = client.call("Basic.Consume", queue="q")["consumer_tag"]
    second = client.call("Basic.Consume", queue="q")["consumer_tag"]
    assert first.startswith("amq.ctag-")
    assert first != second


def test_nowait(client: Client) -> None:
    fill(client, 1)
    assert names(client.send("Basic.Consume", queue="q", nowait=True)) == ["Basic.Deliver"]


def test_a_tag_is_used_once_per_channel(client: Client) -> None:
    client.consume("q")
    client.call("Channel.Open", 2)
    client.consume("q", channel=2)
    (close,) = client.send("Basic.Consume", queue="q", consumer_tag="c")
    assert close["reply_text"] == "NOT_ALLOWED - attempt to reuse consumer tag 'c'"
    assert close.name == "Connection.Close"


def test_no_queue(client: Client) -> None:
    assert refused(client.send("Basic.Consume", queue="none")) == (
        404, "NOT_FOUND - no queue 'none' in vhost '/'",
    )  # fmt: skip


def test_empty_name_is_the_last_queue_declared(client: Client) -> None:
    fill(client, 1)
    assert client.consume("")[0].body == b"0"
    other = Client(client.broker)
    assert refused(other.send("Basic.Consume")) == (
        404, "NOT_FOUND - no previously declared queue",
    )  # fmt: skip


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True), (True, True)])
def test_exclusive_consumer(client: Client, first: bool, second: bool) -> None:
    client.consume("q", exclusive=first)
    other = Client(client.broker)
    assert refused(other.send("Basic.Consume", queue="q", exclusive=second)) == (
        403, "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use",
    )  # fmt: skip
    client.send("Basic.Cancel", consumer_tag="c")
    Client(client.broker).consume("q", exclusive=second)


def test_the_higher_priority_is_served_first(client: Client) -> None:
    client.call("Basic.Qos", prefetch_count=2)
    client.consume("q", "low", arguments={"x-priority": -1})
    client.consume("q", "high", arguments={"x-priority": 7})
    fill_row = b"".join(publish(1, b"x", routing_key="q") for _ in range(3))
    assert [reply["consumer_tag"] for reply in client.feed(fill_row)] == ["high", "high", "low"]


@pytest.mark.parametrize("value", ["1", True, None, 1.5])
def test_priority_of_another_type(client: Client, value: object) -> None:
    code, text = refused(client.send("Basic.Consume", queue="q", arguments={"x-priority": value}))
    assert code == 406
    assert "x-priority" in text


def test_ten_consumers_share_a_hundred_messages_evenly(client: Client) -> None:
    for number in range(10):
        client.consume("q", f"c{number}")
    fill(client, 100)
    counts = [
        consumer.unacked_count for consumer in client.connection.channels[1].consumers.values()
    ]
    assert counts == [10] * 10


def test_read_access_is_needed(client: Client) -> None:
    client.broker.users.set_permissions("guest", "/", ".*", ".*", "")
    for name in ("Basic.Consume", "Basic.Get"):
        other = Client(client.broker)
        assert refused(other.send(name, queue="q")) == (
            403, "ACCESS_REFUSED - read access to queue 'q' in vhost '/' refused for user 'guest'",
        )  # fmt: skip


# -- direct reply-to


def test_replies_reach_the_requester() -> None:
    client = Client(make_broker())
    responder = Client(client.broker)
    responder.declare("requests")
    client.consume("amq.rabbitmq.reply-to", "replies", no_ack=True)
    client.publish(b"?", {"reply_to": "amq.rabbitmq.reply-to"}, routing_key="requests")
    request = responder.call("Basic.Get", queue="requests", no_ack=True)
    assert request.properties is not None
    name = request.properties.reply_to
    assert isinstance(name, str)
    assert name.startswith("amq.rabbitmq.reply-to.")
    assert responder.call("Queue.Declare", queue=name, passive=True)["queue"] == name
    responder.publish(b"!", routing_key=name)
    (reply,) = client.come()
    assert (reply.body, reply["consumer_tag"], reply["exchange"]) == (b"!", "replies", "")


def test_a_reply_consumer_does_not_acknowledge(client: Client) -> None:
    assert refused(client.send("Basic.Consume", queue="amq.rabbitmq.reply-to")) == (
        406, "PRECONDITION_FAILED - reply consumer cannot acknowledge",
    )  # fmt: skip


def test_one_reply_consumer_per_channel(client: Client) -> None:
    client.consume("amq.rabbitmq.reply-to", "a", no_ack=True)
    again = client.send(
        "Basic.Consume", queue="amq.rabbitmq.reply-to", consumer_tag="b", no_ack=True
    )
    assert refused(again) == (406, "PRECONDITION_FAILED - reply consumer already set")


def test_after_a_cancel_there_may_be_another_reply_consumer(client: Client) -> None:
    client.consume("amq.rabbitmq.reply-to", "a", no_ack=True)
    assert names(client.send("Basic.Cancel", consumer_tag="a")) == ["Basic.CancelOk"]
    client.consume("amq.rabbitmq.reply-to", "b", no_ack=True)
    assert len(client.broker.vhosts["/"].replies) == 1


# -- cancel


def test_cancel_keeps_what_is_unacked(client: Client) -> None:
    fill(client, 2)
    client.consume("q")
    assert client.call("Basic.Cancel", consumer_tag="c")["consumer_tag"] == "c"
    fill(client, 1)
    assert client.messages("q") == 1
    assert client.send("Basic.Ack", delivery_tag=2, multiple=True) == []


def test_what_was_published_before_the_cancel_is_delivered_before_its_ok(client: Client) -> None:
    client.consume("q")
    replies = client.feed(
        publish(1, b"x", routing_key="q") + method(1, "Basic.Cancel", consumer_tag="c")
    )
    assert names(replies) == ["Basic.Deliver", "Basic.CancelOk"]


@pytest.mark.parametrize("nowait", [True, False])
def test_cancel_of_nobody(client: Client, nowait: bool) -> None:
    replies = client.send("Basic.Cancel", consumer_tag="nobody", nowait=nowait)
    assert names(replies) == ([] if nowait else ["Basic.CancelOk"])


def test_the_last_cancel_ends_an_auto_delete_queue(client: Client) -> None:
    client.declare("gone", auto_delete=True)
    client.consume("gone")
    client.send("Basic.Cancel", consumer_tag="c")
    assert "gone" not in client.broker.vhosts["/"].queues


# -- get


def test_get_counts_what_is_left(client: Client) -> None:
    fill(client, 3)
    got = client.call("Basic.Get", queue="q")
    assert (got.body, got["message_count"], got["redelivered"]) == (b"0", 2, False)
    assert (got["exchange"], got["routing_key"]) == ("", "q")
    client.send("Basic.Reject", delivery_tag=1, requeue=True)
    assert client.call("Basic.Get", queue="q")["redelivered"] is True


def test_get_of_nothing(client: Client) -> None:
    assert client.call("Basic.Get", queue="q").name == "Basic.GetEmpty"


def test_get_of_a_queue_that_waits_for_what_has_expired() -> None:
    """A read is under way for nothing: the queue is empty, and says so."""
    store, clock = ManualStore(), ManualClock()
    broker = make_broker(store, clock)
    store.on_commit(broker._committed)
    first, second = Client(broker), Client(broker)
    first.declare("q", durable=True, arguments={"x-message-ttl": 50})
    first.publish(b"x", {"delivery_mode": 2}, routing_key="q")
    store.commit()
    store.evict_all()
    assert not first.send("Basic.Get", queue="q"), "it has to be read first"
    clock.advance(60)
    take_turns(broker)
    assert names(second.send("Basic.Get", queue="q")) == ["Basic.GetEmpty"]
    store.arrive()
    take_turns(broker)
    assert names(first.come()) == ["Basic.GetEmpty"]


def test_get_without_ack(client: Client) -> None:
    fill(client, 1)
    client.call("Basic.Get", queue="q", no_ack=True)
    assert refused(client.send("Basic.Ack", delivery_tag=1))[0] == 406
    assert client.messages("q") == 0


def test_get_does_not_end_an_auto_delete_queue(client: Client) -> None:
    client.declare("stays", auto_delete=True)
    client.call("Basic.Get", queue="stays")
    assert client.messages("stays") == 0


def test_get_sees_what_the_same_read_published(client: Client) -> None:
    replies = client.feed(
        b"".join(publish(1, b"x", routing_key="q") for _ in range(30))
        + method(1, "Basic.Get", queue="q")
    )
    assert replies[0]["message_count"] == 29


def test_get_of_a_large_message_comes_in_frames_that_fit() -> None:
    big = Client(make_broker())
    big.declare("q")
    big.publish(bytes(range(256)) * 400, {"app_id": "a"}, routing_key="q")
    small = Client(big.broker, frame_max=FRAME_MIN)
    small.connection.receive(method(1, "Basic.Get", queue="q"))
    small.broker.turn()
    sizes = []
    data = bytes(small.transport.written)
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 3 : at + 7], "big") + 8
        sizes.append(size)
        at += size
    assert max(sizes) == FRAME_MIN
    (got,) = small.come()
    assert got.body == bytes(range(256)) * 400


# -- recover, confirm


def test_recover_async_has_no_answer(client: Client) -> None:
    fill(client, 1)
    client.consume("q")
    replies = client.send("Basic.RecoverAsync", requeue=True)
    assert (bodies(replies), names(replies)) == ([b"0"], ["Basic.Deliver"])


def test_confirm_select_nowait(client: Client) -> None:
    assert client.send("Confirm.Select", nowait=True) == []
    assert names(client.publish(b"x", routing_key="q")) == ["Basic.Ack"]
