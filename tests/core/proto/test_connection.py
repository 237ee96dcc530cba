"""Frames of an open connection: where they begin and end, whose fault what is, and the end."""

from __future__ import annotations

import pytest

from tests.conformance import frames
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
from warrenmq.core.broker import Limits
from warrenmq.core.errors import ConnectionFault
from warrenmq.core.proto.connection import State

CLOSE_OK = method(0, "Connection.CloseOk")


@pytest.fixture(params=[True, False], ids=["fast", "cold"])
def client(request: pytest.FixtureRequest) -> Client:
    return Client(make_broker(), fast=request.param)


def closed(replies: list[Reply]) -> tuple[int, str]:
    close = replies[-1]
    assert close.name == "Connection.Close", replies
    return close["reply_code"], close["reply_text"]


# -- frames


def test_one_octet_at_a_time(client: Client) -> None:
    client.declare("q")
    stream = (
        publish(1, b"hello", {"delivery_mode": 2}, routing_key="q")
        + frames.heartbeat()
        + publish(1, b"", routing_key="q")
        + method(1, "Basic.Get", queue="q", no_ack=True)
        + method(1, "Basic.Get", queue="q", no_ack=True)
    )
    got: list[Reply] = []
    for octet in stream:
        got += client.feed(bytes((octet,)))
    assert bodies(got) == [b"hello", b""]


def test_empty_message_at_the_end_of_a_read(client: Client) -> None:
    """Nothing comes behind it that could tell that it is whole."""
    client.declare("q")
    client.consume("q", no_ack=True)
    for _ in range(3):
        assert bodies(client.publish(b"", routing_key="q")) == [b""]


@pytest.mark.parametrize(
    ("data", "code", "text"),
    [
        pytest.param(frames.frame(9, 1, b""), 501, "unknown frame type 9", id="type"),
        pytest.param(frames.frame(0, 1, b"")[:7], 501, "unknown frame type 0", id="type, no end"),
        pytest.param(frames.heartbeat()[:-1] + b"\x00", 501, "ends with octet 0", id="end octet"),
        pytest.param(b"\x01\x00\x01\x7f\xff\xff\xff", 501, "larger than frame_max", id="too large"),
        pytest.param(frames.heartbeat(1), 505, "heartbeat on channel 1", id="heartbeat"),
        pytest.param(frames.frame(8, 0, b"x"), 501, "heartbeat with a payload", id="fat heartbeat"),
        pytest.param(method(3, "Basic.Get"), 504, "channel 3 is not open", id="channel"),
        pytest.param(publish(3, b""), 504, "channel 3 is not open", id="publish on no channel"),
        pytest.param(method(3, "Channel.Close"), 504, "channel 3 is not open", id="close of none"),
        pytest.param(frames.frame(2, 0, frames.content_header(0)), 505,
                     "content frame on channel 0", id="content on 0"),
        pytest.param(frames.frame(1, 1, b"\x00\x3c\x00\x2a"), 540, "unknown method 60/42",
                     id="method"),
        pytest.param(frames.frame(1, 1, b"\x00\x3c"), 502, "4 at least", id="half a method"),
        pytest.param(method(1, "Basic.GetEmpty"), 503, "can't be sent", id="server's method"),
        pytest.param(method(0, "Connection.Open"), 504, "channel 0", id="open again"),
        pytest.param(method(0, "Basic.Qos"), 504, "channel 0", id="channel's method on 0"),
    ],
)  # fmt: skip
def test_faults_end_the_connection(client: Client, data: bytes, code: int, text: str) -> None:
    got_code, got_text = closed(client.feed(data))
    assert got_code == code
    assert text in got_text
    assert client.connection.state is State.CLOSING
    client.feed(CLOSE_OK)
    assert client.transport.closed


def test_close_names_the_culprit(client: Client) -> None:
    (close,) = client.send("Basic.Qos", prefetch_size=1)
    assert (close["class_id"], close["method_id"]) == (60, 10)
    assert close["reply_code"] == 540


def test_close_without_a_culprit(client: Client) -> None:
    (close,) = client.feed(frames.heartbeat(1))
    assert (close["class_id"], close["method_id"]) == (0, 0)


def test_a_frame_of_frame_max_passes_and_one_more_does_not() -> None:
    client = Client(make_broker(), frame_max=4096)
    client.declare("q")
    assert client.publish(bytes(4088), frame_max=4096, routing_key="q") == []
    assert client.messages("q") == 1
    assert closed(client.publish(bytes(8190), frame_max=8198, routing_key="q"))[0] == 501


def test_what_came_before_a_fault_stands(client: Client) -> None:
    client.declare("q")
    stream = b"".join(publish(1, b"x", routing_key="q") for _ in range(30))
    assert closed(client.feed(stream + frames.heartbeat(1)))[0] == 505
    assert client.messages("q") == 30


@pytest.mark.parametrize("at_once", [True, False])
def test_after_a_fault_only_close_ok_is_heard(client: Client, at_once: bool) -> None:
    client.declare("q")
    late = publish(1, b"x", routing_key="q") + frames.heartbeat() + CLOSE_OK
    if at_once:
        closed(client.feed(frames.heartbeat(1) + late))
    else:
        closed(client.feed(frames.heartbeat(1)))
        assert client.feed(late) == []
    assert client.messages("q") == 0
    assert client.transport.closed


def test_close_ok_is_found_where_frames_are_lost(client: Client) -> None:
    client.feed(frames.frame(9, 1, b"rubbish")[:-1])
    assert not client.transport.closed
    client.feed(b"more rubbish" + CLOSE_OK[:5])
    client.feed(CLOSE_OK[5:])
    assert client.transport.closed


def test_both_close_at_the_same_time(client: Client) -> None:
    client.feed(frames.heartbeat(1))
    assert names(client.feed(method(0, "Connection.Close"))) == ["Connection.CloseOk"]
    assert client.transport.closed


def test_an_unfinished_frame_is_noted_with_its_time(client: Client) -> None:
    client.feed(frames.heartbeat()[:3])
    assert client.connection.has_partial_frame
    assert client.connection.frame_progress.since_ms == client.broker.now_ms
    client.feed(frames.heartbeat()[3:])
    assert not client.connection.has_partial_frame


# -- channels


def test_channel_opened_twice(client: Client) -> None:
    code, text = closed(client.send("Channel.Open"))
    assert (code, text) == (504, "CHANNEL_ERROR - second 'channel.open' seen on channel 1")


def test_more_channels_than_negotiated() -> None:
    client = Client(make_broker(limits=Limits(channel_max=2)))
    client.call("Channel.Open", 2)
    client.send("Channel.Close", 2)
    code, text = closed(client.feed(method(2, "Channel.Open") + method(3, "Channel.Open")))
    assert code == 530
    assert "number of channels opened (2) has reached the negotiated channel_max (2)" in text


def test_channel_max_bounds_how_many_are_open_not_their_numbers() -> None:
    client = Client(make_broker(limits=Limits(channel_max=2)))
    assert client.call("Channel.Open", 65_535).channel == 65_535
    assert closed(client.send("Channel.Open", 2))[0] == 530


def test_a_channels_error_leaves_the_others_alone(client: Client) -> None:
    client.declare("q")
    client.call("Channel.Open", 2)
    close, got = client.feed(
        method(1, "Queue.Declare", queue="none", passive=True)
        + publish(1, b"lost", routing_key="q")
        + publish(2, b"kept", routing_key="q")
        + method(2, "Basic.Get", queue="q")
    )
    assert (close.name, close.channel, close["reply_code"]) == ("Channel.Close", 1, 404)
    assert (close["class_id"], close["method_id"]) == (50, 10)
    assert (got.channel, got.body) == (2, b"kept")


@pytest.mark.parametrize("words", ["CloseOk", "Close"])
def test_a_closed_channel_number_is_free_again(client: Client, words: str) -> None:
    client.publish(exchange="none")
    replies = client.feed(method(1, f"Channel.{words}") + method(1, "Channel.Open"))
    assert names(replies)[-1] == "Channel.OpenOk"


def test_a_closing_channel_discards_content_and_acks(client: Client) -> None:
    client.declare("q")
    client.publish(exchange="none")
    assert client.publish(b"x", routing_key="q") == []
    assert client.send("Basic.Ack", delivery_tag=9) == []
    assert client.send("Queue.Delete", queue="q") == []
    assert client.messages("q") == 0


def test_close_ok_for_an_open_channel_means_nothing(client: Client) -> None:
    assert client.send("Channel.CloseOk") == []
    assert client.call("Basic.Qos").name == "Basic.QosOk"


def test_other_methods_wait_for_the_content(client: Client) -> None:
    begun = method(1, "Basic.Publish", routing_key="q")
    for data in (method(1, "Basic.Qos"), method(1, "Basic.Ack"), publish(1, b"")):
        other = Client(client.broker)
        assert closed(other.feed(begun + data))[0] == 505


def test_close_of_a_channel_may_interrupt_content(client: Client) -> None:
    assert names(
        client.feed(method(1, "Basic.Publish", routing_key="q") + method(1, "Channel.Close"))
    ) == ["Channel.CloseOk"]


# -- acks in rows, which the fast path takes together


@pytest.fixture
def outstanding(client: Client) -> Client:
    """Ten deliveries, tags 1 to 10, on channel 1."""
    client.declare("q")
    client.consume("q")
    client.feed(b"".join(publish(1, b"x", routing_key="q") for _ in range(10)))
    return client


def acks(*tags: int) -> bytes:
    return b"".join(method(1, "Basic.Ack", delivery_tag=tag) for tag in tags)


def unacked(client: Client) -> int:
    return client.connection.channels[1].unacked_count


def test_a_row_of_acks(outstanding: Client) -> None:
    assert outstanding.feed(acks(1, 2, 3, 5, 6, 10, 4)) == []
    assert unacked(outstanding) == 3


def test_a_row_with_a_tag_twice_closes_the_channel_after_what_is_right(outstanding: Client) -> None:
    outstanding.feed(acks(4))
    (close,) = outstanding.feed(acks(1, 2, 3, 4, 5))
    assert close["reply_text"] == "PRECONDITION_FAILED - unknown delivery tag 4"
    assert (close["class_id"], close["method_id"]) == (60, 80)
    # 1 to 4 are acknowledged, the rest went back.
    assert outstanding.messages("q") == 6


def test_multiple_and_single_in_one_read(outstanding: Client) -> None:
    outstanding.feed(method(1, "Basic.Ack", delivery_tag=5, multiple=True) + acks(6, 7))
    assert unacked(outstanding) == 3


def test_multiple_with_0_acks_all_and_needs_none(outstanding: Client) -> None:
    for _ in range(2):
        assert outstanding.send("Basic.Ack", multiple=True) == []
        assert unacked(outstanding) == 0


def test_single_ack_of_0_is_unknown(outstanding: Client) -> None:
    (close,) = outstanding.feed(acks(0))
    assert close["reply_text"] == "PRECONDITION_FAILED - unknown delivery tag 0"


def test_ack_on_a_channel_that_is_not_open(outstanding: Client) -> None:
    assert closed(outstanding.send("Basic.Ack", 7, delivery_tag=1))[0] == 504


# -- writing


def test_one_write_a_turn(client: Client) -> None:
    client.declare("q")
    client.consume("q")
    client.call("Confirm.Select")
    before = client.transport.writes
    client.feed(b"".join(publish(1, b"x", routing_key="q") for _ in range(100)))
    assert client.transport.writes == before + 1


def test_a_reader_that_is_behind_gets_nothing_until_it_reads_on(client: Client) -> None:
    client.declare("q")
    client.consume("q", no_ack=True)
    publisher = Client(client.broker)
    client.connection.socket_writable = False
    publisher.publish(b"x", routing_key="q")
    assert client.messages("q") == 1
    client.connection.resume_writing()
    take_turns(client.broker)
    assert client.bodies() == [b"x"]


def test_a_turn_writes_a_bounded_amount(client: Client) -> None:
    """What one consumer is given in a turn must not pile up in memory."""
    client.declare("q")
    for _ in range(20):
        client.publish(bytes(100_000), routing_key="q")
    client.connection.receive(method(1, "Basic.Consume", queue="q", no_ack=True))
    client.broker.turn()
    assert len(client.transport.written) < 500_000
    take_turns(client.broker)
    assert len(client.bodies()) == 20


# -- the end


def test_close_by_the_client_gives_everything_back(outstanding: Client) -> None:
    other = Client(outstanding.broker)
    outstanding.declare("mine", exclusive=True)
    assert names(outstanding.send("Connection.Close")) == ["Connection.CloseOk"]
    assert outstanding.transport.closed
    assert outstanding.messages("q") == 10
    assert "mine" not in outstanding.broker.vhosts["/"].queues
    assert list(outstanding.broker.connections) == [other.connection]


def test_after_the_end_nothing_is_heard(outstanding: Client) -> None:
    outstanding.send("Connection.Close")
    assert outstanding.publish(b"x", routing_key="q") == []
    assert outstanding.messages("q") == 10


def test_a_lost_socket_gives_everything_back(outstanding: Client) -> None:
    outstanding.declare("mine", exclusive=True)
    outstanding.connection.lost()
    take_turns(outstanding.broker)
    assert outstanding.messages("q") == 10
    assert "mine" not in outstanding.broker.vhosts["/"].queues
    assert outstanding.broker.connections == {}
    assert outstanding.come() == []


def test_a_lost_socket_drops_what_was_not_written(client: Client) -> None:
    client.declare("q")
    client.connection.receive(method(1, "Basic.Consume", queue="q"))
    client.connection.lost()
    take_turns(client.broker)
    assert client.come() == []


def test_forced_close(client: Client) -> None:
    client.connection.fail(ConnectionFault(320, "shutdown"))
    take_turns(client.broker)
    assert closed(client.come()) == (320, "CONNECTION_FORCED - shutdown")
    client.feed(CLOSE_OK)
    assert client.transport.closed


def test_internal_error_hears_close_ok_only(client: Client) -> None:
    client.connection.fail(ConnectionFault(541, "bug"))
    take_turns(client.broker)
    assert closed(client.come())[0] == 541
    client.feed(publish(1, b"x"))
    assert not client.transport.closed
    client.feed(CLOSE_OK)
    assert client.transport.closed


# -- rights and secrets


@pytest.mark.parametrize("secret", ["guest", "new", ""])
def test_update_secret_takes_any(client: Client, secret: str) -> None:
    """It is for tokens; and nobody can try passwords by it, for none is looked at."""
    logins = len(client.transport.logins)
    for _ in range(2):
        answers = client.send("Connection.UpdateSecret", new_secret=secret, reason="r")
        assert names(answers) == ["Connection.UpdateSecretOk"]
    assert len(client.transport.logins) == logins


def test_an_end_without_words_gives_everything_back(client: Client) -> None:
    client.declare("q", exclusive=True)
    client.connection.abandon()
    take_turns(client.broker)
    assert client.transport.closed
    assert client.come() == []
    assert client.broker.vhosts["/"].queues == {}
    assert client.broker.connections == {}
    client.connection.abandon()
    client.connection.lost()


def test_lost_rights_hold_for_the_next_publish(client: Client) -> None:
    client.declare("q")
    row = b"".join(publish(1, b"x", routing_key="q") for _ in range(30))
    client.feed(row)
    client.broker.users.set_permissions("guest", "/", ".*", "", ".*")
    (close,) = client.feed(row)
    assert close["reply_text"] == (
        "ACCESS_REFUSED - write access to exchange 'amq.default' in vhost '/' refused for user "
        "'guest'"
    )
    assert client.messages("q") == 30
