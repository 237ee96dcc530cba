"""What is inside a message arrives as it was sent: bodies of all sizes, properties, headers."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from decimal import Decimal

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from .conftest import Connect
from .support import Inbox, channel_closed, get

# A body frame takes 8 octets less than the frame size that both sides agreed on.
PAYLOAD_BYTES = 131_072 - 8
SIZES = sorted(
    {0, 1, 2, 255, 4088, 4089, 65_536, 1 << 20, 16 << 20}
    | {frames * PAYLOAD_BYTES + more for frames in (1, 2, 3) for more in (-8, -1, 0, 1)}
)


def noise(size: int) -> bytes:
    """Octets without a pattern, frame ends (0xCE) among them."""
    return random.Random(size).randbytes(size)


@pytest.mark.parametrize("size", SIZES)
def test_bodies_arrive_octet_for_octet(channel: BlockingChannel, queue: str, size: int) -> None:
    body = noise(size)
    channel.basic_publish("", queue, body)
    assert get(channel, queue).body == body
    inbox = Inbox(channel, queue)
    for text in (b"before", body, b"after"):
        channel.basic_publish("", queue, text)
    assert inbox.wait_bodies(3) == [b"before", body, b"after"]


def test_empty_bodies_do_not_wait_for_what_follows(channel: BlockingChannel, queue: str) -> None:
    """The frames of an empty message end with its header; one is sent, and awaited, at a time."""
    inbox = Inbox(channel, queue)
    bodies = [b"", b"", b"1", b"", b"", noise(70_000), b"", b"2", b""]
    for count, body in enumerate(bodies, 1):
        channel.basic_publish("", queue, body)
        assert inbox.wait_bodies(count) == bodies[:count]


def test_bodies_of_every_length_about_a_small_frame(connect: Connect) -> None:
    frame_max = 4096
    channel = connect(frame_max=frame_max).channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    inbox = Inbox(channel, queue)
    lengths = [frames * (frame_max - 8) + more for frames in (1, 2, 5) for more in range(-12, 13)]
    bodies = [noise(length) for length in lengths]
    for body in bodies:
        channel.basic_publish("", queue, body)
    assert inbox.wait_bodies(len(bodies)) == bodies


def test_frames_are_cut_anew_for_a_consumer_with_smaller_ones(connect: Connect) -> None:
    publisher = connect(frame_max=131_072).channel()
    consumer = connect(frame_max=4096).channel()
    queue = publisher.queue_declare("", auto_delete=True).method.queue
    inbox = Inbox(consumer, queue)
    bodies = [noise(length) for length in (10, 4088, 4089, 100_000, 300_000, 11)]
    for body in bodies:
        publisher.basic_publish("", queue, body)
    assert inbox.wait_bodies(len(bodies)) == bodies


def test_all_fourteen_properties_arrive(channel: BlockingChannel, queue: str) -> None:
    sent = pika.BasicProperties(
        content_type="application/atom+xml",
        content_encoding="gzip",
        headers={"a": 1},
        delivery_mode=2,
        priority=7,
        correlation_id="correlation",
        reply_to="answers",
        expiration="60000",
        message_id="message",
        timestamp=1_700_000_000,
        type="kind",
        user_id="guest",
        app_id="application",
        cluster_id="cluster",
    )
    channel.basic_publish("", queue, b"", sent)
    assert get(channel, queue).properties == sent
    channel.basic_publish("", queue, b"")
    assert get(channel, queue).properties == pika.BasicProperties()


def test_headers_of_every_type_arrive(channel: BlockingChannel, queue: str) -> None:
    headers = {
        "true": True,
        "false": False,
        "zero": 0,
        "negative": -1,
        "int": 2**31 - 1,
        "long": -(2**63),
        "decimal": Decimal("3.14"),
        "text": "grüße, 世界",
        "empty": "",
        "octets": b"\x00\xff\xce",
        "time": datetime(2026, 11, 21, 9, 30, 15, tzinfo=UTC),
        "nothing": None,
        "list": [1, "two", [3, None], {"four": False}],
        "table": {"inner": {"innermost": [1]}, "empty": {}},
        "k" * 128: "a long name",
    }
    channel.basic_publish("", queue, b"", pika.BasicProperties(headers=headers))
    assert get(channel, queue).properties.headers == headers


def test_a_foreign_user_id_is_refused(channel: BlockingChannel, queue: str) -> None:
    text = "user_id property set to 'tony' but authenticated user was 'guest'"
    with channel_closed(406, f"PRECONDITION_FAILED - {text}"):
        channel.basic_publish("", queue, b"", pika.BasicProperties(user_id="tony"))
        channel.queue_declare(queue, passive=True)
