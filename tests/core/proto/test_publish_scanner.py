"""The batch path of publishing: what becomes which batch, and that order and counts hold."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance import frames
from tests.core.queue.support import classic, ranges
from tests.support.amqp import Client, bodies, make_broker, method, names, publish
from warrenmq.core.broker import Limits
from warrenmq.core.message.batch import Batch, ScatteredBatch, SingleMessage, StridedBatch
from warrenmq.core.proto.publish_scanner import TARGETS_MAX

NO_HEADER_END = (
    method(1, "Basic.Publish", routing_key="q")
    + frames.frame(frames.HEADER, 1, frames.content_header(4, {"app_id": "a"}))[:-1]
    + b"\x00"
    + frames.frame(frames.BODY, 1, b"body")
)


@pytest.fixture
def client() -> Client:
    client = Client(make_broker())
    for queue in ("q", "other"):
        client.declare(queue)
    # The first message of an address is the one that it is read for.
    client.publish(b"", routing_key="q")
    client.publish(b"", routing_key="other")
    for queue in ("q", "other"):
        client.call("Queue.Purge", queue=queue)
    return client


def row(count: int, exchange: str = "", routing_key: str = "q") -> bytes:
    """Messages of 16 bytes that count up."""
    return b"".join(
        publish(1, b"%016d" % number, exchange=exchange, routing_key=routing_key)
        for number in range(count)
    )


def batches(client: Client, queue: str = "q") -> list[Batch]:
    found = classic(client.broker.vhosts["/"].queues[queue])
    return [messages.entry.batch for messages in ranges(found.backlog)]


def texts(client: Client, queue: str = "q") -> list[bytes]:
    return [
        batch.body(messages.entry.index(position))
        for messages in ranges(classic(client.broker.vhosts["/"].queues[queue]).backlog)
        for position in range(messages.low, messages.high)
        for batch in (messages.entry.batch,)
    ]


# -- which batch


@pytest.mark.parametrize("count", [16, 23, 24, 25, 200])
def test_alike_messages_become_one_strided_batch(client: Client, count: int) -> None:
    client.feed(row(count))
    (batch,) = batches(client)
    assert isinstance(batch, StridedBatch)
    assert batch.count == count
    assert texts(client) == [b"%016d" % number for number in range(count)]


@pytest.mark.parametrize("routing_key", ["q", "other"])
@pytest.mark.parametrize("body", [b"", b"x", b"y" * 3_000])
def test_a_message_that_comes_alone_needs_no_arrays(
    client: Client, body: bytes, routing_key: str
) -> None:
    client.feed(publish(1, body, routing_key=routing_key))
    (batch,) = batches(client, routing_key)
    assert isinstance(batch, StridedBatch)
    assert (texts(client, routing_key), batch.body_bytes(0)) == ([body], len(body))
    assert batch.size_bytes == len(publish(1, body, routing_key=routing_key))


@pytest.mark.parametrize("count", [2, 15])
def test_few_alike_messages_become_a_scattered_batch(client: Client, count: int) -> None:
    client.feed(row(count))
    (batch,) = batches(client)
    assert isinstance(batch, ScatteredBatch)
    assert texts(client) == [b"%016d" % number for number in range(count)]


def test_messages_of_different_sizes_become_one_batch(client: Client) -> None:
    client.feed(b"".join(publish(1, b"x" * size, routing_key="q") for size in range(50)))
    (batch,) = batches(client)
    assert isinstance(batch, ScatteredBatch)
    assert texts(client) == [b"x" * size for size in range(50)]


def test_rows_without_bodies(client: Client) -> None:
    client.feed(b"".join(publish(1, b"", routing_key="q") for _ in range(40)))
    (batch,) = batches(client)
    assert isinstance(batch, StridedBatch)
    assert texts(client) == [b""] * 40


def test_a_row_among_others_keeps_its_place(client: Client) -> None:
    stream = publish(1, b"first", routing_key="q") + row(30) + publish(1, b"last", routing_key="q")
    client.feed(stream)
    assert texts(client) == [b"first", *(b"%016d" % number for number in range(30)), b"last"]


def test_persistent_and_transient_do_not_mix(client: Client) -> None:
    stream = (
        publish(1, b"%d" % number, {"delivery_mode": 1 + number % 2}, routing_key="q")
        for number in range(6)
    )
    client.feed(b"".join(stream))
    assert [batch.attributes.persistent for batch in batches(client)] == [False, True] * 3
    assert texts(client) == [b"%d" % number for number in range(6)]


def test_a_message_in_several_frames_becomes_whole(client: Client) -> None:
    client.publish(b"abc" * 100, frame_max=64, routing_key="q")
    (batch,) = batches(client)
    assert isinstance(batch, SingleMessage)
    assert batch.body(0) == b"abc" * 100


def test_little_of_a_large_read_is_copied_out(client: Client) -> None:
    """A short message must not keep 200 KB of its neighbours in memory."""
    neighbours = b"".join(
        publish(1, bytes(number % 90), {"delivery_mode": 2}, routing_key="other")
        for number in range(2000)
    )
    client.feed(neighbours + publish(1, b"kept", routing_key="q") + neighbours)
    (batch,) = batches(client)
    client.feed(neighbours + row(30) + neighbours)
    assert texts(client)[:2] == [b"kept", b"%016d" % 0]
    for batch in batches(client):
        assert len(batch.data) < 10_000


# -- shares of a batch


def test_alternating_queues_share_a_batch(client: Client) -> None:
    stream = (
        publish(1, b"%d" % number, routing_key=("q", "other")[number % 2]) for number in range(20)
    )
    client.feed(b"".join(stream))
    (batch,), (same,) = batches(client), batches(client, "other")
    assert batch is same
    assert texts(client) == [b"%d" % number for number in range(0, 20, 2)]
    assert texts(client, "other") == [b"%d" % number for number in range(1, 20, 2)]


def test_order_in_a_queue_that_several_routes_lead_to(client: Client) -> None:
    """AMQP 0-9-1 4.7: `q` gets all three, `other` two of them."""
    for queue, key in (("q", "x"), ("other", "x"), ("q", "y")):
        client.call("Queue.Bind", queue=queue, exchange="amq.topic", routing_key=key)
    stream = (
        publish(1, b"%d" % number, exchange="amq.topic", routing_key="xyx"[number % 3])
        for number in range(9)
    )
    client.feed(b"".join(stream))
    assert texts(client) == [b"%d" % number for number in range(9)]
    assert texts(client, "other") == [b"0", b"2", b"3", b"5", b"6", b"8"]


def test_more_messages_in_a_read_than_16_bits_count(client: Client) -> None:
    small = [publish(1, b"", routing_key=key) for key in ("q", "other")]
    client.feed(b"".join(small) * 33_000 + small[0])
    assert (client.messages("q"), client.messages("other")) == (33_001, 33_000)
    sequences = [
        messages.entry.sequence(position)
        for messages in ranges(classic(client.broker.vhosts["/"].queues["q"]).backlog)
        for position in range(messages.low, messages.high)
    ]
    assert len(set(sequences)) == 33_001
    assert sequences == sorted(sequences)


# -- what is remembered, and for how long


def test_a_new_binding_holds_for_the_next_message_of_the_same_read(client: Client) -> None:
    client.publish(b"", exchange="amq.topic", routing_key="k")
    bind = method(1, "Queue.Bind", queue="q", exchange="amq.topic", routing_key="k", nowait=True)
    part = row(30, exchange="amq.topic", routing_key="k")
    client.feed(part + bind + part)
    assert client.messages("q") == 30


def test_a_deleted_queue_gets_nothing_of_the_same_read(client: Client) -> None:
    delete = method(1, "Queue.Delete", queue="q", nowait=True)
    declare = method(1, "Queue.Declare", queue="q", nowait=True)
    client.feed(row(30) + delete + row(20) + declare + row(5))
    assert client.messages("q") == 5


def test_another_mode_of_the_same_channel(client: Client) -> None:
    client.feed(row(30))
    ok, ack = client.feed(method(1, "Confirm.Select") + row(30))
    assert (ok.name, ack["delivery_tag"]) == ("Confirm.SelectOk", 30)


def test_a_reopened_channel_starts_anew(client: Client) -> None:
    client.call("Confirm.Select")
    client.feed(row(30))
    replies = client.feed(method(1, "Channel.Close") + method(1, "Channel.Open") + row(30))
    assert names(replies) == ["Channel.CloseOk", "Channel.OpenOk"]
    assert client.messages("q") == 60


def test_memory_of_addresses_and_lists_is_bounded(client: Client) -> None:
    client.call("Queue.Bind", queue="q", exchange="amq.topic", routing_key="#")
    count = 3 * TARGETS_MAX
    stream = (
        publish(
            1, b"%d" % number, {"message_id": str(number)}, exchange="amq.topic",
            routing_key=f"k{number}",
        )
        for number in range(count)
    )  # fmt: skip
    client.feed(b"".join(stream))
    assert texts(client) == [b"%d" % number for number in range(count)]
    exchange = client.broker.vhosts["/"].exchanges["amq.topic"]
    assert len(exchange.routes or ()) <= TARGETS_MAX + 64
    client.call("Channel.Close")
    assert not exchange.routes


@pytest.mark.parametrize("list_bytes", [10, 100])
def test_lists_that_differ_in_what_matters(client: Client, list_bytes: int) -> None:
    """The same size and structure, another delivery mode, expiration or copy."""
    pad = "x" * list_bytes
    lists: list[dict[str, Any]] = [
        {"app_id": pad, "delivery_mode": 1}, {"app_id": pad, "delivery_mode": 2},
        {"app_id": pad, "delivery_mode": 1}, {"app_id": pad, "expiration": "1000"},
        {"app_id": pad, "expiration": "9000"},
        {"headers": {"XX": ["other"], "p": pad}}, {"headers": {"CC": ["other"], "p": pad}},
    ]  # fmt: skip
    client.feed(b"".join(publish(1, b"", each, routing_key="q") for each in lists * 2))
    # One batch may hold several neighbours.
    assert [
        (messages.entry.batch.attributes.persistent, messages.entry.batch.attributes.expiration)
        for messages in ranges(classic(client.broker.vhosts["/"].queues["q"]).backlog)
        for _ in range(messages.low, messages.high)
    ] == [
        (False, None), (True, None), (False, None), (False, "1000"), (False, "9000"),
        (False, None), (False, None),
    ] * 2  # fmt: skip
    assert client.messages("other") == 2


@pytest.mark.parametrize("size", [20, 200])
def test_a_list_of_a_known_shape_is_checked_for_its_text(client: Client, size: int) -> None:
    good = publish(1, b"", {"message_id": "x" * size}, routing_key="q")
    client.feed(good)
    assert client.feed(publish(1, b"", {"message_id": "é" * (size // 2)}, routing_key="q")) == []
    (close,) = client.feed(good + publish(1, b"", {"message_id": b"\xff" * size}, routing_key="q"))
    assert (close.name, close["reply_code"]) == ("Connection.Close", 502)
    assert client.messages("q") == 3


# -- errors in the middle of a read


def test_what_follows_a_channel_error_is_discarded(client: Client) -> None:
    stream = row(30) + publish(1, b"", exchange="none") + row(30)
    (close,) = client.feed(stream)
    assert (close.name, close["reply_code"]) == ("Channel.Close", 404)
    assert client.messages("q") == 30
    assert client.feed(row(30) + method(1, "Channel.CloseOk") + method(1, "Channel.Open"))
    assert client.messages("q") == 30
    client.feed(row(30))
    assert client.messages("q") == 60


@pytest.mark.parametrize(
    "broken",
    [
        publish(1, b"body", routing_key="q")[:-1] + b"\x00",
        publish(1, b"", routing_key="q")[:-1] + b"\x00",
        method(1, "Basic.Publish", routing_key="q")
        + frames.frame(frames.HEADER, 1, frames.content_header(0, class_id=50)),
        NO_HEADER_END,
        publish(1, b"body", frames.Raw(b"\x10\x00"), routing_key="q"),
        publish(1, b"body", frames.Raw(b"\x00\x01"), routing_key="q"),
        publish(1, b"body", routing_key=b"\xff"),
        publish(1, b"body", {"headers": frames.Raw(b"\x00\x00\x00\x05\x01aZ\x00\x00")},
                routing_key="q"),
        publish(1, b"b", {"message_id": b"\xff"}, routing_key="q"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", [0, 3, 30])
def test_a_malformed_publish_among_good_ones(client: Client, broken: bytes, before: int) -> None:
    replies = client.feed(row(before) + broken + row(30))
    assert names(replies) == ["Connection.Close"]
    assert replies[0]["reply_code"] in (501, 502, 505)
    assert client.messages("q") == before


def test_frames_of_two_channels_that_only_look_alike(client: Client) -> None:
    """The header is on another channel than its method."""
    client.call("Channel.Open", 2)
    good = publish(1, b"body", routing_key="q")
    header = frames.frame(frames.HEADER, 1, frames.content_header(4))
    mixed = good.replace(header, frames.frame(frames.HEADER, 2, frames.content_header(4)))
    (close,) = client.feed(good + mixed)
    assert (close.name, close["reply_code"]) == ("Connection.Close", 505)
    assert client.messages("q") == 1


def test_a_content_on_another_channel_than_its_method(client: Client) -> None:
    client.call("Channel.Open", 2)
    good, other = publish(1, b"body", routing_key="q"), publish(2, b"body", routing_key="q")
    begin = len(method(1, "Basic.Publish", routing_key="q"))
    (close,) = client.feed(good + good[:begin] + other[begin:])
    assert (close.name, close["reply_code"]) == ("Connection.Close", 505)
    assert client.messages("q") == 1


def test_a_body_frame_of_another_length_than_declared(client: Client) -> None:
    good = publish(1, b"body", routing_key="q")
    body = frames.frame(frames.BODY, 1, b"body")
    (close,) = client.feed(good + good.replace(body, frames.frame(frames.BODY, 1, b"body!")))
    assert (close.name, close["reply_code"]) == ("Connection.Close", 501)


def test_too_large_for_the_broker_in_one_frame() -> None:
    client = Client(make_broker(limits=Limits(max_message_bytes=100)))
    client.declare("q")
    for size in (100, 100, 101):
        replies = client.publish(bytes(size), routing_key="q")
    assert (replies[0].name, replies[0]["reply_code"]) == ("Channel.Close", 406)
    assert client.messages("q") == 2


# -- cut reads


@pytest.mark.parametrize("size", [0, 16, 70_000, 131_064, 200_000])
def test_cut_at_every_interesting_place(client: Client, size: int) -> None:
    client.consume("q", no_ack=True)
    message = publish(1, bytes(size), routing_key="q")
    for cut in [*range(1, 70), len(message) // 2, len(message) - 1]:
        if cut < len(message):
            assert client.feed(message[:cut]) == []
            assert bodies(client.feed(message[cut:])) == [bytes(size)], cut


def test_a_large_message_in_small_reads_is_not_copied_for_each(client: Client) -> None:
    """Waiting for a whole frame of 128 KiB is fine, waiting for 16 MiB would be quadratic."""
    client.consume("q", no_ack=True)
    message = publish(1, bytes(1_000_000), routing_key="q")
    longest = 0
    got: list[bytes] = []
    for at in range(0, len(message), 4096):
        got += bodies(client.feed(message[at : at + 4096]))
        longest = max(longest, len(client.connection._tail))
    assert got == [bytes(1_000_000)]
    assert longest <= 131_072 + 8
