"""amqp.md section 5: what survives a restart, and what does not.

Everything is made before, the server is stopped or killed once, and each test looks at one thing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.server import WarrenServer

from . import raw
from .raw import Channel

pytestmark = pytest.mark.promise

Fields = dict[str, Any]
DELAY_MS = 100
QUEUES: dict[str, Fields] = {
    "plain": {},
    "ranked": {"x-max-priority": 10},
    "counted": {"x-delivery-limit": 10},
    "quorum": {"x-queue-type": "quorum"},
    "stream": {"x-queue-type": "stream"},
    "bound": {},
    "delayed": {},
    "short": {"x-max-length": 2, "x-overflow": "reject-publish"},
    "clock": {},
}
EXCHANGES: dict[str, Fields] = {
    "topics": {"exchange_type": "topic"},
    "kept": {"exchange_type": "fanout", "arguments": {"x-persist-messages": 10}},
    "waiting": {
        "exchange_type": "x-delayed-message", "arguments": {"x-delayed-type": "fanout"},
    },
    "hashing": {"exchange_type": "x-consistent-hash"},
}  # fmt: skip
KEYS = [f"key-{number}" for number in range(20)]


def prepare(channel: Channel) -> None:
    for queue, arguments in QUEUES.items():
        channel.declare(queue, durable=True, arguments=arguments)
    for exchange, fields in EXCHANGES.items():
        channel.call("Exchange.Declare", exchange=exchange, durable=True, **fields)
    channel.call("Exchange.Declare", exchange="transient", exchange_type="fanout")
    channel.declare("transient")
    channel.declare("mine", durable=True, exclusive=True)
    channel.call("Queue.Bind", queue="bound", exchange="topics", routing_key="a.#")
    channel.call("Queue.Bind", queue="delayed", exchange="waiting")
    for queue in ("bound", "plain"):
        channel.call("Queue.Bind", queue=queue, exchange="hashing", routing_key="1")
    channel.call("Confirm.Select")
    for key in KEYS:
        persist(channel, key.encode(), exchange="hashing", routing_key=key)


def fill(channel: Channel) -> None:
    for queue in ("plain", "counted", "quorum", "stream", "short"):
        for body in (b"a", b"b"):
            persist(channel, body, routing_key=queue)
    for priority in (1, 9, 5):
        persist(channel, b"%d" % priority, {"priority": priority}, routing_key="ranked")
    for body in (b"kept 0", b"kept 1"):
        persist(channel, body, exchange="kept")
    headers = {"headers": {"x-delay": DELAY_MS}}
    persist(channel, b"later", headers, exchange="waiting")
    for queue in ("plain", "transient", "stream"):
        channel.publish(b"transient", {"delivery_mode": 1}, routing_key=queue)
        channel.expect("Basic.Ack")


def persist(
    channel: Channel, body: bytes, properties: Fields | None = None, **fields: object
) -> None:
    channel.publish(body, {"delivery_mode": 2} | (properties or {}), **fields)
    channel.expect("Basic.Ack")


def shares(channel: Channel) -> dict[str, set[str]]:
    """Which of the hashed keys each of the two queues has; takes them."""
    found: dict[str, set[str]] = {"bound": set(), "plain": set()}
    for queue, keys in found.items():
        while (message := channel.get(queue)) is not None:
            if message.method.exchange == "hashing":
                keys.add(message.method.routing_key)
    return found


class Life:
    """A server that has been restarted, and what was known before."""

    def __init__(self, server: WarrenServer, hashed: dict[str, set[str]]) -> None:
        self.port = server.amqp_port
        self.hashed = hashed


@pytest.fixture(scope="module", params=["stop", "kill"])
def life(request: pytest.FixtureRequest) -> Iterator[Life]:
    with WarrenServer() as server:
        with raw.connect(server.amqp_port) as client:
            channel = client.channel()
            prepare(channel)
            hashed = shares(channel)
            fill(channel)
            taken = channel.taken("counted", no_ack=False)
            channel.send("Basic.Reject", delivery_tag=taken.method.delivery_tag, requeue=True)
            channel.taken("quorum", no_ack=False)
            # A confirm tells that what came before is kept: what was delivered, what came back.
            persist(channel, b"last", routing_key="clock")
            if request.param == "kill":
                server.kill()
        server.restart()
        yield Life(server, hashed)
        assert "Traceback" not in server.output()


@pytest.fixture
def channel(life: Life) -> Iterator[Channel]:
    with raw.connect(life.port) as client:
        yield client.channel()


def absent(channel: Channel, method: str, **fields: object) -> None:
    channel.send(method, passive=True, **fields)
    channel.refused(404)


@pytest.mark.parametrize("queue", QUEUES)
def test_durable_queues_survive(channel: Channel, queue: str) -> None:
    channel.declare(queue, durable=True, arguments=QUEUES[queue])
    if QUEUES[queue]:
        channel.send("Queue.Declare", queue=queue, durable=True)
        channel.refused(406)


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_durable_exchanges_survive(channel: Channel, exchange: str) -> None:
    channel.call("Exchange.Declare", exchange=exchange, durable=True, **EXCHANGES[exchange])


def test_transient_queues_and_exchanges_are_gone(channel: Channel) -> None:
    for queue in ("transient", "mine"):
        absent(channel, "Queue.Declare", queue=queue)
        channel.open()
    absent(channel, "Exchange.Declare", exchange="transient", exchange_type="fanout")


def test_only_persistent_messages_survive(channel: Channel) -> None:
    taken = [channel.taken("plain") for _ in range(2)]
    assert [message.body for message in taken] == [b"a", b"b"]
    assert [message.properties.delivery_mode for message in taken] == [2, 2]
    assert channel.get("plain") is None


def test_requeued_messages_keep_flag_and_count(channel: Channel) -> None:
    first, second = channel.taken("counted"), channel.taken("counted")
    headers: Any = first.properties.headers
    assert (first.body, first.method.redelivered) == (b"a", True)
    assert headers["x-delivery-count"] == 1
    assert second.body == b"b"
    assert "x-delivery-count" not in (second.properties.headers or {})


def test_unacked_messages_of_a_quorum_queue_are_redelivered(channel: Channel) -> None:
    first = channel.taken("quorum")
    assert (first.body, first.method.redelivered) == (b"a", True)
    assert channel.taken("quorum").body == b"b"


def test_priority_order_is_kept(channel: Channel) -> None:
    assert channel.drain("ranked") == [b"9", b"5", b"1"]


def test_streams_are_read_from_anywhere(channel: Channel) -> None:
    channel.call("Basic.Qos", prefetch_count=10)
    channel.consume("stream", arguments={"x-stream-offset": "first"})
    messages = [channel.content() for _ in range(3)]
    assert [message.body for message in messages] == [b"a", b"b", b"transient"]
    headers: list[Any] = [message.properties.headers for message in messages]
    assert [found["x-stream-offset"] for found in headers] == [0, 1, 2]


def test_bindings_are_in_force(channel: Channel) -> None:
    channel.publish(b"x", exchange="topics", routing_key="a.b", mandatory=True)
    channel.publish(b"y", exchange="topics", routing_key="b.a")
    assert channel.drain("bound") == [b"x"]


def test_hash_exchange_keeps_its_mapping(channel: Channel, life: Life) -> None:
    for key in KEYS:
        channel.publish(b"x", exchange="hashing", routing_key=key)
    assert shares(channel) == life.hashed


def test_delayed_messages_are_delivered(channel: Channel) -> None:
    channel.consume("delayed", no_ack=True)
    assert channel.content().body == b"later"


def test_persistent_exchanges_keep_their_messages(channel: Channel) -> None:
    queue = str(channel.declare("").queue)
    channel.call("Queue.Bind", queue=queue, exchange="kept", arguments={"x-head": 10})
    messages = [channel.taken(queue) for _ in range(2)]
    assert [message.body for message in messages] == [b"kept 0", b"kept 1"]
    headers: list[Any] = [message.properties.headers for message in messages]
    assert [found["x-offset"] for found in headers] == [0, 1]


def test_full_queues_still_reject(channel: Channel) -> None:
    channel.call("Confirm.Select")
    channel.publish(b"c", routing_key="short")
    channel.expect("Basic.Nack")
    assert channel.drain("short") == [b"a", b"b"]
