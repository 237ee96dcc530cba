"""amqp.md section 1: errors close a channel or a connection, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from . import frames
from .raw import Channel, Client

Fields = dict[str, Any]

CHANNEL_ERRORS: list[tuple[str, Fields, int, str]] = [
    ("Queue.Declare", {"queue": "{n}", "passive": True}, 404, "no queue '{n}' in vhost '/'"),
    ("Queue.Bind", {"queue": "{n}", "exchange": "amq.direct"}, 404, "no queue '{n}' in vhost '/'"),
    ("Queue.Purge", {"queue": "{n}"}, 404, "no queue '{n}' in vhost '/'"),
    ("Basic.Consume", {"queue": "{n}"}, 404, "no queue '{n}' in vhost '/'"),
    ("Basic.Get", {"queue": "{n}"}, 404, "no queue '{n}' in vhost '/'"),
    (
        "Exchange.Declare", {"exchange": "{n}", "exchange_type": "direct", "passive": True},
        404, "no exchange '{n}' in vhost '/'",
    ),
    (
        "Exchange.Bind", {"source": "{n}", "destination": "amq.direct"},
        404, "no exchange '{n}' in vhost '/'",
    ),
    ("Basic.Ack", {"delivery_tag": 7}, 406, "unknown delivery tag 7"),
    ("Basic.Nack", {"delivery_tag": 7}, 406, "unknown delivery tag 7"),
    ("Basic.Reject", {"delivery_tag": 7}, 406, "unknown delivery tag 7"),
    (
        "Exchange.Declare", {"exchange": "amq.{n}", "exchange_type": "direct"},
        403, "exchange name 'amq.{n}' contains reserved prefix 'amq.*'",
    ),
    (
        "Queue.Declare", {"queue": "amq.{n}"},
        403, "queue name 'amq.{n}' contains reserved prefix 'amq.*'",
    ),
]  # fmt: skip
NAMES = {403: "ACCESS_REFUSED", 404: "NOT_FOUND", 406: "PRECONDITION_FAILED"}


def _filled(fields: Fields, name: str) -> Fields:
    return {
        key: value.format(n=name) if isinstance(value, str) else value
        for key, value in fields.items()
    }


@pytest.mark.parametrize(("method", "fields", "code", "text"), CHANNEL_ERRORS)
def test_channel_error_closes_one_channel_only(
    client: Client, other: Channel, name: str, method: str, fields: Fields, code: int, text: str
) -> None:
    neighbour, channel = client.channel(2), client.channel(1)
    channel.send(method, **_filled(fields, name))
    channel.refused(code, f"{NAMES[code]} - {text.format(n=name)}", culprit=method)
    for alive in (neighbour, other):
        assert alive.get(alive.declare().queue) is None


def test_channel_number_is_free_after_close_ok(channel: Channel, name: str) -> None:
    channel.send("Basic.Get", queue=name)
    channel.refused(404)
    channel.open()
    assert channel.declare(name).queue == name


@pytest.mark.parametrize("letter", ["a", "\N{LATIN SMALL LETTER E WITH ACUTE}"])
def test_reply_text_is_cut_to_a_short_string(channel: Channel, letter: str) -> None:
    name = letter * (255 // len(letter.encode()))
    channel.send("Queue.Declare", queue=name, passive=True)
    text = channel.refused(404)
    assert len(text.encode()) <= 255
    assert text.startswith(f"NOT_FOUND - no queue '{letter * 100}")


def test_all_but_close_is_discarded_after_an_error(
    client: Client, channel: Channel, other: Channel, name: str
) -> None:
    other.declare(name)
    channel.client.send(
        frames.frame(frames.METHOD, 1, frames.method("Basic.Get", queue=f"{name}.absent"))
        + frames.publish_frames(1, b"late" * 50_000, routing_key=name)
        + frames.frame(frames.METHOD, 1, frames.method("Queue.Declare", queue=f"{name}.late"))
        + frames.frame(frames.METHOD, 1, frames.method("Basic.Ack", delivery_tag=3))
    )
    channel.refused(404)
    channel.open()
    assert channel.ready(name) == 0
    channel.send("Queue.Declare", queue=f"{name}.late", passive=True)
    channel.refused(404)


def test_close_that_crosses_a_close_is_answered(channel: Channel, name: str) -> None:
    channel.send("Basic.Get", queue=name)
    channel.send("Channel.Close", reply_code=200)
    channel.expect("Channel.Close")
    channel.expect("Channel.CloseOk")
    channel.send("Channel.CloseOk")
    channel.open()


def test_unacked_messages_are_requeued_before_close_ok(
    channel: Channel, other: Channel, name: str
) -> None:
    channel.declare(name)
    channel.put(name, b"a")
    channel.consume(name)
    assert not channel.content().method.redelivered
    channel.send("Basic.Get", queue=f"{name}.absent")
    channel.expect("Channel.Close")
    message = other.taken(name)
    assert (message.body, message.method.redelivered) == (b"a", True)


def test_publishes_before_a_channel_error_count(
    channel: Channel, other: Channel, name: str
) -> None:
    other.declare(name)
    channel.client.send(
        frames.publish_frames(1, b"before", routing_key=name) * 3
        + frames.publish_frames(1, b"wrong", exchange=name)
        + frames.publish_frames(1, b"behind", routing_key=name) * 3
    )
    channel.refused(404)
    assert other.drain(name) == [b"before"] * 3


CONNECTION_ERRORS: list[tuple[str, bytes, int, str | tuple[int, int]]] = [
    ("method on an unopened channel", frames.frame(1, 9, frames.method("Basic.Get", queue="q")),
     504, "Basic.Get"),
    ("second channel.open", frames.frame(1, 1, frames.method("Channel.Open")), 504, "Channel.Open"),
    ("header frame out of order", frames.frame(2, 1, frames.content_header(1)), 505, (0, 0)),
    ("body frame out of order", frames.frame(3, 1, b"x"), 505, (0, 0)),
    ("content on channel 0", frames.frame(2, 0, frames.content_header(0)), 505, (0, 0)),
    ("prefetch in bytes", frames.frame(1, 1, frames.method("Basic.Qos", prefetch_size=5)),
     540, "Basic.Qos"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "code", "culprit"),
    [case[1:] for case in CONNECTION_ERRORS],
    ids=[case[0] for case in CONNECTION_ERRORS],
)
def test_connection_error_closes_one_connection_only(
    channel: Channel, other: Channel, data: bytes, code: int, culprit: str | tuple[int, int]
) -> None:
    channel.client.send(data)
    channel.client.closed(code, culprit=culprit)
    assert other.get(other.declare().queue) is None


@pytest.mark.parametrize("frame_max", [4096, 131_072])
def test_frame_max_has_a_slack_of_eight_octets(
    connect: Callable[..., Client], other: Channel, name: str, frame_max: int
) -> None:
    other.declare(name)
    channel = connect(frame_max=frame_max).channel()
    channel.send("Basic.Publish", routing_key=name)
    channel.client.send(
        frames.frame(frames.HEADER, 1, frames.content_header(frame_max))
        + frames.frame(frames.BODY, 1, b"x" * frame_max)
    )
    channel.ready(name)
    assert other.taken(name).body == b"x" * frame_max
    channel.client.send(frames.frame(frames.BODY, 1, b"x" * (frame_max + 1)))
    channel.client.closed(501)


def test_method_within_content_is_unexpected(channel: Channel, name: str) -> None:
    channel.send("Basic.Publish", routing_key=name)
    channel.send("Queue.Declare", queue=name)
    channel.client.closed(505)


def test_header_class_must_be_basic(channel: Channel, name: str) -> None:
    channel.send("Basic.Publish", routing_key=name)
    channel.client.send(frames.frame(frames.HEADER, 1, frames.content_header(0, class_id=50)))
    channel.client.closed(505)


def test_frames_after_a_connection_error_are_discarded(
    channel: Channel, other: Channel, name: str
) -> None:
    other.declare(name)
    channel.client.send(
        frames.frame(9, 1, b"x") + frames.publish_frames(1, b"late", routing_key=name)
    )
    channel.client.closed(501)
    assert other.ready(name) == 0


def test_connection_error_requeues_and_drops_exclusive_queues(
    connect: Callable[..., Client], other: Channel, name: str
) -> None:
    channel = connect().channel()
    channel.declare(f"{name}.mine", exclusive=True)
    other.declare(name)
    other.put(name, b"a")
    channel.taken(name, no_ack=False)
    channel.client.send(frames.frame(9, 1, b"x"))
    channel.client.closed(501)
    assert other.taken(name).method.redelivered
    other.send("Queue.Declare", queue=f"{name}.mine", passive=True)
    other.refused(404)


@pytest.mark.parametrize(
    "payload",
    [
        frames.method("Connection.StartOk", mechanism="PLAIN"),
        frames.method("Connection.TuneOk"),
        frames.method("Connection.Open", virtual_host="/"),
        frames.method("Queue.Declare", queue="q"),
        frames.method("Channel.Open"),
    ],
)
def test_method_in_the_wrong_state(channel: Channel, payload: bytes) -> None:
    channel.client.send(frames.frame(frames.METHOD, 0, payload))
    channel.client.closed(504)


@pytest.mark.parametrize("cut", [1, 7, 20, -1])
def test_frame_cut_by_a_connection_error(channel: Channel, name: str, cut: int) -> None:
    late = frames.publish_frames(1, b"late" * 10, routing_key=name)
    unopened = frames.frame(frames.METHOD, 9, frames.method("Basic.Qos"))
    channel.client.send(unopened + late[:cut])
    close = channel.client.expect("Connection.Close")
    assert close.reply_code == 504
    channel.client.send(late[cut:])
    channel.client.send_method("Connection.CloseOk")
    channel.client.ended()
