"""Publishing inside this process: the same rules as over AMQP, one by one and in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.amqp import Client, make_broker
from tests.support.manual_store import ManualStore
from warrenmq.core.broker import Broker
from warrenmq.core.errors import ChannelError
from warrenmq.core.local.publisher import LocalPublisher
from warrenmq.core.message.model import Properties
from warrenmq.core.publish.buffered_batch import BATCH_BYTES
from warrenmq.core.publish.shares import FRAMED_MAX_BYTES

LONG = b"l" * (FRAMED_MAX_BYTES + 1)
REJECT = {"x-max-length": 2, "x-overflow": "reject-publish"}
BATCHES: dict[str, list[bytes]] = {
    "one": [b"1"],
    "empty bodies": [b"", b"1", b""],
    "long ones": [b"1", LONG, LONG, b"2", b"3", LONG],
    "several batches": [bytes([65 + place]) * (BATCH_BYTES // 6) for place in range(20)],
    "many": [str(place).encode() for place in range(5_000)],
}


@pytest.fixture
def broker() -> Broker:
    return make_broker()


@pytest.fixture
def client(broker: Broker) -> Client:
    client = Client(broker)
    client.declare("q")
    return client


def publisher(broker: Broker) -> LocalPublisher:
    return LocalPublisher(broker, broker.vhosts["/"], None)


def publish(
    broker: Broker,
    bodies: Sequence[bytes] = (b"x",),
    exchange: str = "",
    key: str = "q",
    queue: str | None = None,
    *,
    batch: bool = False,
    **properties: Any,
) -> LocalPublisher:
    one = publisher(broker)
    queues = () if queue is None else (broker.vhosts["/"].queues[queue],)
    if batch:
        one.add(exchange, key, Properties(**properties), bodies, queues)
        one.flush()
    else:
        for body in bodies:
            one.publish(exchange, key, Properties(**properties), body, queues)
    return one


@pytest.mark.parametrize("batch", [False, True])
def test_headers_that_no_frame_has_room_for(broker: Broker, client: Client, *, batch: bool) -> None:
    """Refused to users; the server's own messages may have grown by its headers."""
    long = Properties(headers={"a": "b" * broker.limits.frame_max})
    user = LocalPublisher(broker, broker.vhosts["/"], broker.users.get("guest"))
    with pytest.raises(ChannelError, match="fit a content header frame"):
        user.add("", "q", long, [b"x"]) if batch else user.publish("", "q", long, b"x")
    publish(broker, headers=long.headers, batch=batch)
    assert taken(client, "q") == [b"x"]


def taken(client: Client, queue: str) -> list[bytes]:
    deliveries = client.consume(queue, queue, no_ack=True)
    return [reply.body for reply in deliveries + client.come()]


def outcome(done: LocalPublisher) -> tuple[int, int]:
    return done.unrouted_count, done.rejected_count


@pytest.mark.parametrize("batch", [False, True])
def test_message_arrives_unchanged(client: Client, batch: bool) -> None:
    done = publish(
        client.broker, [b"body"], batch=batch, content_type="text/plain",
        headers={"a": [1, {"b": None}]}, priority=3, message_id="m", type="t",
    )  # fmt: skip
    got = client.call("Basic.Get", queue="q")
    assert (got["exchange"], got["routing_key"], got.body) == ("", "q", b"body")
    assert got.properties is not None
    assert got.properties.headers == {"a": [1, {"b": None}]}
    assert (got.properties.content_type, got.properties.message_id) == ("text/plain", "m")
    assert outcome(done) == (0, 0)
    assert done.commit == 0


@pytest.mark.parametrize("bodies", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("queue", [None, "q"])
def test_a_batch_arrives_in_order(client: Client, bodies: list[bytes], queue: str | None) -> None:
    client.declare("also")
    for name in ("q", "also"):
        client.call("Queue.Bind", queue=name, exchange="amq.fanout")
    done = publish(client.broker, bodies, "" if queue else "amq.fanout", queue=queue, batch=True)
    assert outcome(done) == (0, 0)
    assert client.messages("also") == (0 if queue else len(bodies))
    assert taken(client, "q") == bodies


def test_batches_with_different_keys_keep_their_order(client: Client) -> None:
    client.declare("short", arguments=REJECT)
    for name in ("q", "short"):
        client.call("Queue.Bind", queue=name, exchange="amq.topic", routing_key=f"*.{name}")
        client.call("Queue.Bind", queue=name, exchange="amq.topic", routing_key="both")
    one = publisher(client.broker)
    for number, key in enumerate(("a.q", "b.q", "both", "a.q", "none", "a.short", "both")):
        one.add("amq.topic", key, Properties(), [b"%d" % number])
    one.flush()
    assert outcome(one) == (1, 1)
    assert taken(client, "q") == [b"0", b"1", b"2", b"3", b"6"]
    assert taken(client, "short") == [b"2", b"5"]


@pytest.mark.parametrize("batch", [False, True])
def test_unroutable_and_refused_messages_are_counted(client: Client, batch: bool) -> None:
    client.declare("short", arguments=REJECT)
    bodies = [b"1", b"2", b"3"]
    assert outcome(publish(client.broker, bodies, key="none", batch=batch)) == (3, 0)
    assert outcome(publish(client.broker, bodies, "amq.topic", batch=batch)) == (3, 0)
    assert outcome(publish(client.broker, bodies, queue="short", batch=batch)) == (0, 1)
    assert taken(client, "short") == bodies[:2]


@pytest.mark.parametrize("batch", [False, True])
def test_commit_covers_the_last_message(batch: bool) -> None:
    store = ManualStore()
    broker = make_broker(store)
    broker.vhosts["/"].declare_queue("q", durable=True)
    assert publish(broker, batch=batch).commit == 0
    done = publish(broker, [b"1", LONG, b"2"], batch=batch, delivery_mode=2)
    assert done.commit == 4  # 1 was the queue
    assert store.progress.committed == 0


@pytest.mark.parametrize("long", [{"key": "k" * 256}, {"message_id": "ü" * 128}])
def test_lengths_that_amqp_cannot_carry(broker: Broker, long: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="255"):
        publish(broker, **long)


def test_publish_into_a_queue_ignores_key_and_cc(client: Client) -> None:
    client.declare("other")
    publish(client.broker, key="other", queue="q", headers={"CC": ["other"]})
    assert client.messages("other") == 0
    got = client.call("Basic.Get", queue="q")
    assert (got["exchange"], got["routing_key"]) == ("", "other")


def test_publish_into_a_queue_needs_its_permission(client: Client) -> None:
    broker, user = client.broker, client.connection.user
    broker.users.set_permissions(user.name, "/", "", "other", "")
    one = LocalPublisher(broker, broker.vhosts["/"], user)
    with pytest.raises(ChannelError, match="write access to queue 'q'"):
        one.publish("", "other", Properties(), b"", (broker.vhosts["/"].queues["q"],))


@pytest.mark.parametrize("batch", [False, True])
def test_a_turn_is_requested(client: Client, batch: bool) -> None:
    requests: list[bool] = []
    client.broker.on_work = lambda: requests.append(True)
    publish(client.broker, batch=batch)
    assert requests
