"""A channel as the session of its consumers: deliveries, settling, flow, and its end."""

from __future__ import annotations

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
)


@pytest.fixture
def client() -> Client:
    client = Client(make_broker())
    client.declare("q")
    return client


def fill(client: Client, count: int = 5) -> None:
    row = (publish(1, b"%d" % number, routing_key="q") for number in range(count))
    assert client.feed(b"".join(row)) == []


def tags(replies: list[Reply]) -> list[tuple[int, bytes, bool]]:
    return [
        (reply["delivery_tag"], reply.body, reply["redelivered"])
        for reply in replies
        if reply.name == "Basic.Deliver"
    ]


def test_tags_count_from_1_per_channel(client: Client) -> None:
    fill(client, 2)
    client.call("Channel.Open", 2)
    assert tags(client.consume("q", "a", 2, no_ack=True)) == [(1, b"0", False), (2, b"1", False)]
    client.send("Basic.Cancel", 2, consumer_tag="a")
    fill(client, 2)
    assert tags(client.consume("q", "b")) == [(1, b"0", False), (2, b"1", False)]


def test_tags_are_shared_by_consumers_and_gets(client: Client) -> None:
    fill(client, 2)
    assert client.call("Basic.Get", queue="q")["delivery_tag"] == 1
    assert tags(client.consume("q"))[0][0] == 2


def test_without_acks_nothing_is_outstanding(client: Client) -> None:
    fill(client)
    client.consume("q", no_ack=True)
    assert client.connection.channels[1].unacked_count == 0
    assert client.broker.vhosts["/"].queues["q"].unacked_count == 0


def test_ack_settles(client: Client) -> None:
    fill(client)
    client.consume("q")
    client.send("Basic.Ack", delivery_tag=3, multiple=True)
    assert client.connection.channels[1].unacked_count == 2
    assert client.broker.vhosts["/"].queues["q"].unacked_count == 2
    client.send("Channel.Close")
    assert client.messages("q") == 2


@pytest.mark.parametrize("name", ["Basic.Nack", "Basic.Reject"])
def test_requeue_to_the_original_place(client: Client, name: str) -> None:
    fill(client)
    client.consume("q")
    client.send("Basic.Cancel", consumer_tag="c")
    client.send(name, delivery_tag=4, requeue=True)
    client.send(name, delivery_tag=2, requeue=True)
    assert tags(client.consume("q")) == [(6, b"1", True), (7, b"3", True)]


@pytest.mark.parametrize("name", ["Basic.Nack", "Basic.Reject"])
def test_without_requeue_it_is_gone(client: Client, name: str) -> None:
    fill(client)
    client.consume("q")
    client.send(name, delivery_tag=2)
    client.send("Channel.Close")
    assert client.messages("q") == 4


def test_nack_of_many(client: Client) -> None:
    fill(client)
    client.consume("q")
    client.send("Basic.Cancel", consumer_tag="c")
    client.send("Basic.Nack", delivery_tag=3, multiple=True, requeue=True)
    assert client.messages("q") == 3
    client.send("Basic.Nack", delivery_tag=0, multiple=True, requeue=True)
    assert client.messages("q") == 5


@pytest.mark.parametrize(
    ("name", "method_id"), [("Basic.Ack", 80), ("Basic.Nack", 120), ("Basic.Reject", 90)]
)
@pytest.mark.parametrize("tag", [2, 6, 2**63])
def test_unknown_tag(client: Client, name: str, method_id: int, tag: int) -> None:
    """Acknowledged before, never delivered, or nonsense."""
    fill(client)
    client.consume("q")
    client.send("Basic.Ack", delivery_tag=2)
    (close,) = client.send(name, delivery_tag=tag)
    assert close["reply_text"] == f"PRECONDITION_FAILED - unknown delivery tag {tag}"
    assert (close["reply_code"], close["class_id"], close["method_id"]) == (406, 60, method_id)
    assert client.messages("q") == 4


# -- credit


def test_a_settled_message_makes_room(client: Client) -> None:
    fill(client)
    client.send("Basic.Qos", prefetch_count=2)
    assert bodies(client.consume("q")) == [b"0", b"1"]
    assert bodies(client.send("Basic.Ack", delivery_tag=2)) == [b"2"]
    assert bodies(client.send("Basic.Reject", delivery_tag=1)) == [b"3"]
    assert bodies(client.send("Basic.Ack", delivery_tag=4, multiple=True)) == [b"4"]


def test_the_channels_limit_holds_over_all_its_consumers(client: Client) -> None:
    client.declare("other")
    client.send("Basic.Qos", prefetch_count=3, global_=True)
    client.consume("q", "a")
    client.consume("other", "b")
    fill_both = b"".join(
        publish(1, b"x", routing_key=queue) for queue in ("q", "other") for _ in range(3)
    )
    assert len(bodies(client.feed(fill_both))) == 3
    # Credit that comes back serves whichever consumer has something to get.
    assert len(bodies(client.send("Basic.Ack", delivery_tag=3, multiple=True))) == 3


def test_flow_stops_deliveries_and_starts_them_again(client: Client) -> None:
    client.consume("q", no_ack=True)
    assert client.call("Channel.Flow", active=False)["active"] is False
    fill(client, 2)
    ok, *delivered = client.send("Channel.Flow", active=True)
    assert (ok.name, ok["active"]) == ("Channel.FlowOk", True)
    assert bodies(delivered) == [b"0", b"1"]


def test_get_passes_though_flow_is_stopped(client: Client) -> None:
    client.call("Channel.Flow", active=False)
    fill(client, 1)
    assert client.call("Basic.Get", queue="q").body == b"0"


# -- recover


def test_recover_requeues_everything(client: Client) -> None:
    fill(client, 3)
    client.consume("q")
    ok, *again = client.send("Basic.Recover", requeue=True)
    assert ok.name == "Basic.RecoverOk"
    assert tags(again) == [(4, b"0", True), (5, b"1", True), (6, b"2", True)]


def test_recover_to_the_same_consumer(client: Client) -> None:
    client.consume("q", "a")
    client.consume("q", "b")
    client.feed(publish(1, b"0", routing_key="q") + publish(1, b"1", routing_key="q"))
    ok, *again = client.send("Basic.Recover", requeue=False)
    assert ok.name == "Basic.RecoverOk"
    # Each got one of the two; nothing changes hands.
    assert [(reply["consumer_tag"], reply.body) for reply in again] == [("a", b"0"), ("b", b"1")]
    assert client.connection.channels[1].unacked_count == 2


def test_recover_of_what_a_get_took_or_a_gone_consumer_requeues(client: Client) -> None:
    fill(client, 2)
    client.send("Basic.Get", queue="q")
    client.consume("q")
    client.send("Basic.Cancel", consumer_tag="c")
    assert names(client.send("Basic.Recover", requeue=False)) == ["Basic.RecoverOk"]
    assert client.messages("q") == 2
    assert client.connection.channels[1].unacked_count == 0


def test_recover_keeps_within_the_prefetch(client: Client) -> None:
    fill(client, 5)
    client.send("Basic.Qos", prefetch_count=2)
    client.consume("q")
    assert tags(client.send("Basic.Recover", requeue=True)) == [(3, b"0", True), (4, b"1", True)]


# -- the end


def test_close_gives_back_in_order(client: Client) -> None:
    fill(client)
    client.consume("q")
    client.send("Basic.Ack", delivery_tag=2)
    client.send("Channel.Close")
    other = Client(client.broker)
    assert [body for _, body, _ in tags(other.consume("q"))] == [b"0", b"2", b"3", b"4"]


def test_what_is_given_back_does_not_go_to_the_closing_channel(client: Client) -> None:
    """Two consumers on one channel: neither may get the other's messages while it closes."""
    fill(client)
    client.consume("q", "a")
    client.consume("q", "b")
    assert names(client.send("Channel.Close")) == ["Channel.CloseOk"]
    assert client.messages("q") == 5


def test_the_last_consumers_channel_takes_an_auto_delete_queue_along(client: Client) -> None:
    client.declare("gone", auto_delete=True)
    client.consume("gone", "a")
    client.consume("gone", "b")
    client.send("Channel.Close")
    assert "gone" not in client.broker.vhosts["/"].queues


def test_the_end_of_a_queue_is_told(client: Client) -> None:
    client.consume("q")
    cancel, ok = client.send("Queue.Delete", queue="q")
    assert (cancel.name, cancel["consumer_tag"], cancel["nowait"]) == ("Basic.Cancel", "c", True)
    assert ok.name == "Queue.DeleteOk"
    assert client.send("Basic.CancelOk", consumer_tag="c") == []


def test_the_end_of_a_queue_is_not_told_to_clients_that_do_not_know_it() -> None:
    client = Client(make_broker(), tells_cancels=False)
    client.declare("q")
    client.consume("q")
    assert names(client.send("Queue.Delete", queue="q")) == ["Queue.DeleteOk"]


def test_acks_for_a_deleted_queue_are_fine(client: Client) -> None:
    fill(client, 2)
    client.consume("q")
    client.send("Queue.Delete", queue="q")
    assert client.send("Basic.Ack", delivery_tag=1) == []
    assert client.send("Basic.Reject", delivery_tag=2, requeue=True) == []


# -- confirms


def test_confirms_count_from_the_select(client: Client) -> None:
    fill(client, 3)
    assert client.call("Confirm.Select").name == "Confirm.SelectOk"
    (ack,) = client.publish(b"x", routing_key="q")
    assert (ack.name, ack["delivery_tag"], ack["multiple"]) == ("Basic.Ack", 1, False)


def test_selecting_twice_goes_on_counting(client: Client) -> None:
    client.call("Confirm.Select")
    client.publish(b"x", routing_key="q")
    client.call("Confirm.Select")
    assert client.publish(b"x", routing_key="q")[0]["delivery_tag"] == 2


def test_the_select_holds_for_publishes_behind_it_in_the_same_read(client: Client) -> None:
    """The address of the row is remembered from before."""
    row = b"".join(publish(1, b"x", routing_key="q") for _ in range(30))
    client.feed(row)
    ok, ack = client.feed(row + method(1, "Confirm.Select") + row)
    assert ok.name == "Confirm.SelectOk"
    assert (ack["delivery_tag"], ack["multiple"]) == (30, True)


def test_unroutable_is_confirmed(client: Client) -> None:
    client.call("Confirm.Select")
    assert names(client.publish(b"x", routing_key="nobody")) == ["Basic.Ack"]


def test_channels_confirm_for_themselves(client: Client) -> None:
    client.call("Channel.Open", 2)
    client.call("Confirm.Select", 2)
    acks = client.feed(publish(1, b"x", routing_key="q") + publish(2, b"x", routing_key="q"))
    assert [(ack.channel, ack["delivery_tag"]) for ack in acks] == [(2, 1)]


def test_confirms_that_are_decided_go_out_before_an_error_closes(client: Client) -> None:
    client.call("Confirm.Select")
    row = b"".join(publish(1, b"x", routing_key="q") for _ in range(30))
    ack, close = client.feed(row + publish(1, b"x", exchange="none"))
    assert (ack.name, ack["delivery_tag"], ack["multiple"]) == ("Basic.Ack", 30, True)
    assert close.name == "Channel.Close"


def test_a_reply_queue_ends_with_its_channel(client: Client) -> None:
    client.consume("amq.rabbitmq.reply-to", no_ack=True)
    assert len(client.broker.vhosts["/"].replies) == 1
    client.send("Channel.Close")
    take_turns(client.broker)
    assert client.broker.vhosts["/"].replies == {}
