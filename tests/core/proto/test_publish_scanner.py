"""The batch path of publishing: how reads become batches."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.core.queue.support import classic, ranges
from tests.support.amqp import Client, bodies, make_broker, method, publish
from warrenmq.core.context import BrokerLimits
from warrenmq.core.message.batch import Batch, SingleMessage
from warrenmq.core.message.framed_batch import ScatteredBatch, StridedBatch
from warrenmq.core.proto.target_cache import TARGETS_MAX


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


@pytest.mark.parametrize(
    ("sizes", "kind"),
    [
        *(([16] * count, StridedBatch) for count in (1, 16, 23, 24, 25, 200)),
        ([0] * 40, StridedBatch),
        *(([16] * count, ScatteredBatch) for count in (2, 15)),
        (range(50), ScatteredBatch),
    ],
)
def test_messages_of_one_read_become_one_batch(
    client: Client, sizes: Sequence[int], kind: type[Batch]
) -> None:
    bodies = [(b"%d" % number).rjust(size, b"0")[:size] for number, size in enumerate(sizes)]
    client.feed(b"".join(publish(1, body, routing_key="q") for body in bodies))
    (batch,) = batches(client)
    assert type(batch) is kind
    assert batch.count == len(bodies)
    assert texts(client) == bodies


@pytest.mark.parametrize("routing_key", ["q", "other"])
@pytest.mark.parametrize("body", [b"", b"x", b"y" * 3_000])
def test_single_message_needs_no_arrays(client: Client, body: bytes, routing_key: str) -> None:
    client.feed(publish(1, body, routing_key=routing_key))
    (batch,) = batches(client, routing_key)
    assert isinstance(batch, StridedBatch)
    assert (texts(client, routing_key), batch.body_bytes(0)) == ([body], len(body))
    assert batch.size_bytes == len(publish(1, body, routing_key=routing_key))


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


def test_new_binding_applies_within_the_same_read(client: Client) -> None:
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


def test_too_large_for_the_broker_in_one_frame() -> None:
    client = Client(make_broker(limits=BrokerLimits(max_message_bytes=100)))
    client.declare("q")
    for size in (100, 100, 101):
        replies = client.publish(bytes(size), routing_key="q")
    assert (replies[0].name, replies[0]["reply_code"]) == ("Channel.Close", 406)
    assert client.messages("q") == 2


# -- cut reads


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_a_small_message_cut_by_the_read_waits_for_its_rest(client: Client, share: float) -> None:
    """Taken frame by frame it would be a batch of another kind."""
    whole = publish(1, b"x" * 999, {"app_id": "a"}, routing_key="q")
    cut = int(share * len(whole))
    for piece in (whole + whole[:cut], whole[cut:]):
        client.feed(piece)
    assert [type(batch) for batch in batches(client)] == [StridedBatch] * 2
    assert texts(client) == [b"x" * 999] * 2


def test_a_large_message_in_small_reads_is_not_copied_for_each(client: Client) -> None:
    client.consume("q", no_ack=True)
    message = publish(1, bytes(1_000_000), routing_key="q")
    longest = 0
    got: list[bytes] = []
    for at in range(0, len(message), 4096):
        got += bodies(client.feed(message[at : at + 4096]))
        longest = max(longest, len(client.connection.pending.tail))
    assert got == [bytes(1_000_000)]
    assert longest <= 131_072 + 8
