"""Republishing dead letters: turns, batches, routes and the store.

`tests/conformance/test_s5_dead_letter.py` has what dead letters carry and where they go.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.amqp import Client, Reply, bodies, make_broker, method, publish, take_turns
from tests.support.manual_store import ManualStore
from warrenmq.core.clock import ManualClock
from warrenmq.core.message.deduplication import HEADER
from warrenmq.core.message.queue_entry import MessageRange
from warrenmq.core.policy.merge import effective_rules
from warrenmq.core.republish.fifo import AHEAD_BATCHES
from warrenmq.core.republish.republisher import REPUBLISHED_PER_TURN
from warrenmq.core.store.port import QueueIdentity


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def client(clock: ManualClock) -> Client:
    client = Client(make_broker(clock=clock))
    client.declare("dead")
    return client


def declare(client: Client, queue: str = "q", **arguments: Any) -> None:
    """A queue whose dead letters go to `dead`, unless said otherwise."""
    found = {"dead-letter-exchange": "", "dead-letter-routing-key": "dead"} | {
        name.replace("_", "-"): value for name, value in arguments.items()
    }
    client.declare(
        queue,
        arguments={f"x-{name}": value for name, value in found.items() if value is not None},
    )


def got(client: Client, queue: str = "dead") -> Reply:
    reply = client.call("Basic.Get", queue=queue, no_ack=True)
    assert reply.name == "Basic.GetOk", f"{queue} is empty"
    return reply


def reject(client: Client, queue: str = "q") -> None:
    tag = client.call("Basic.Get", queue=queue)["delivery_tag"]
    client.send("Basic.Reject", delivery_tag=tag)


# -- turns


def test_a_turn_moves_a_bounded_number(client: Client) -> None:
    declare(client, max_length=0)
    count = 5 * REPUBLISHED_PER_TURN
    stream = b"".join(publish(1, b"x", routing_key="q") for _ in range(count))
    client.broker.tick()
    client.connection.receive(stream)
    assert client.broker.turn(), "there is more to do"
    assert 0 < client.messages("dead") <= 2 * REPUBLISHED_PER_TURN
    take_turns(client.broker)
    assert client.messages("dead") == count


def test_dead_letters_of_a_deleted_queue_still_move(client: Client) -> None:
    declare(client)
    client.publish(b"x", routing_key="q")
    tag = client.call("Basic.Get", queue="q")["delivery_tag"]
    client.feed(method(1, "Basic.Reject", delivery_tag=tag) + method(1, "Queue.Delete", queue="q"))
    assert client.messages("dead") == 1


def test_dead_letters_keep_their_order_in_batches_and_alone(client: Client) -> None:
    declare(client, dead_letter_routing_key=None, dead_letter_exchange="amq.fanout")
    client.call("Queue.Bind", queue="dead", exchange="amq.fanout")
    kinds: list[tuple[bytes, dict[str, Any]]] = [
        (b"small", {}), (bytes(70_000), {}), (b"blind", {"headers": {"BCC": ["none"]}}),
        (b"", {"priority": 3}), (b"other", {"app_id": "a"}),
    ]  # fmt: skip
    sent = []
    for number in range(40):
        body, properties = kinds[number * 7 % 5]
        sent.append(b"%d " % number + body)
        client.publish(sent[-1], properties, routing_key="q")
    client.consume("q")
    client.send("Basic.Nack", delivery_tag=40, multiple=True)
    found = client.consume("dead", "d", no_ack=True)
    assert [dead_letter.body for dead_letter in found] == sent
    kept = [dead_letter.properties.app_id for dead_letter in found if dead_letter.properties]
    assert kept.count("a") == 8


def test_dead_letters_of_one_read_go_to_their_own_queues(client: Client) -> None:
    for queue in ("even", "odd"):
        client.declare(queue)
        client.call("Queue.Bind", queue=queue, exchange="amq.direct", routing_key=queue)
    declare(client, dead_letter_exchange="amq.direct", dead_letter_routing_key=None)
    for key in ("even", "odd"):
        client.call("Queue.Bind", queue="q", exchange="amq.topic", routing_key=key)
    row = (
        publish(1, b"%d" % number, exchange="amq.topic", routing_key=("even", "odd")[number % 2])
        for number in range(30)
    )
    client.feed(b"".join(row))
    client.consume("q")
    client.send("Basic.Nack", delivery_tag=30, multiple=True)
    for place, queue in enumerate(("even", "odd")):
        found = client.consume(queue, queue, no_ack=True)
        assert bodies(found) == [b"%d" % number for number in range(place, 30, 2)]
        assert {dead_letter.headers["x-death"][0]["routing-keys"][0] for dead_letter in found} == {
            queue
        }


def test_dead_letters_have_their_own_time(client: Client, clock: ManualClock) -> None:
    declare(client)
    for _ in range(2):
        client.publish(b"x", routing_key="q")
        reject(client)
        clock.advance(1_000)
    times = [got(client).headers["x-death"][0]["time"].timestamp() for _ in range(2)]
    assert times == [int(clock.wall_s()) - 2, int(clock.wall_s()) - 1]


def test_rules_at_dead_lettering_apply(client: Client, clock: ManualClock) -> None:
    declare(client, max_length=0)
    queue = client.broker.vhosts["/"].queues["q"]
    stream = b"".join(publish(1, b"x", routing_key="q") for _ in range(3 * REPUBLISHED_PER_TURN))
    client.broker.tick()
    client.connection.receive(stream)
    client.broker.turn()
    queue.apply(None)
    take_turns(client.broker)
    assert client.messages("dead") == 3 * REPUBLISHED_PER_TURN


def test_dead_letters_of_a_deleted_virtual_host_are_dropped(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    declare(client)
    client.publish(b"x", routing_key="q")
    tag = client.call("Basic.Get", queue="q")["delivery_tag"]
    gone = client.broker.vhosts.pop("/")
    client.receive(method(1, "Basic.Reject", delivery_tag=tag))
    assert gone.queues["dead"].ready_count == 0
    assert caplog.records == []


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("by_policy", [False, True])
def test_a_full_queue_takes_dead_letters_at_least_once(
    client: Client, size: int, by_policy: bool
) -> None:
    """Nor are they dropped as duplicates."""
    client.declare(
        "full",
        arguments={
            "x-max-length": 1, "x-overflow": "reject-publish", "x-message-deduplication": True,
        },
    )  # fmt: skip
    strategy = {} if by_policy else {"dead_letter_strategy": "at-least-once"}
    declare(client, dead_letter_routing_key="full", **strategy)
    if by_policy:
        queue = client.broker.vhosts["/"].queues["q"]
        definition = {"dead-letter-strategy": "at-least-once"}
        queue.apply(effective_rules(queue.rules, queue.arguments, definition))
    for _ in range(3):
        client.publish(bytes(size), {"headers": {HEADER: "same"}}, routing_key="q")
        reject(client)
    assert (client.messages("full"), client.messages("q")) == (3, 0)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-death": "nonsense"}, {"x-death": [5, {"count": "many"}]}, {"x-death": {}},
        {"CC": []}, {f"h{number}": number for number in range(1020)},
        {"x-death": [{"queue": "q", "reason": "rejected", "count": 2**40}]},
    ],
)  # fmt: skip
def test_any_x_death_header_of_a_publisher_is_accepted(
    client: Client, headers: dict[str, Any]
) -> None:
    declare(client)
    client.publish(b"x", {"headers": headers}, routing_key="q")
    reject(client)
    dead_letter = got(client)
    assert dead_letter.body == b"x"
    assert dead_letter.headers["x-death"][0]["queue"] == "q"


# -- with a store


def stored(store: ManualStore, *, paging: bool = False) -> Client:
    store.paging = paging
    client = Client(make_broker(store))
    client.declare("dead", durable=True)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.declare("q", durable=True, arguments=arguments)
    return client


class NotingStore(ManualStore):
    """Records settlements: the queue's id and the number of messages."""

    def __init__(self) -> None:
        super().__init__()
        self.settled: list[tuple[int, int]] = []

    def settle(self, queue: QueueIdentity, messages: MessageRange) -> None:
        self.settled.append((queue.id, messages.count))


@pytest.mark.parametrize("exchange", ["", "none", None])
def test_a_message_is_settled_once_in_its_queue(exchange: str | None) -> None:
    store = NotingStore()
    store.paging = False
    client = Client(make_broker(store))
    client.declare("dead", durable=True)
    arguments = {} if exchange is None else {"x-dead-letter-exchange": exchange}
    client.declare("q", durable=True, arguments=arguments)
    client.call("Queue.Bind", queue="dead", exchange="amq.fanout")
    client.publish(b"x", {"delivery_mode": 2}, routing_key="q")
    reject(client)
    assert store.settled == [(client.broker.vhosts["/"].queues["q"].id, 1)]


def test_paged_out_dead_letters_are_read_together() -> None:
    store = ManualStore()
    client = stored(store)
    count = 2 * AHEAD_BATCHES
    for number in range(count):
        client.publish(b"%d" % number, {"delivery_mode": 2}, routing_key="q")
    client.consume("q")
    store.evict_all()
    client.send("Basic.Nack", delivery_tag=count, multiple=True)
    assert client.messages("dead") == 0
    assert store.reads == AHEAD_BATCHES
    store.arrive()
    take_turns(client.broker)
    assert client.messages("dead") == AHEAD_BATCHES
    store.arrive()
    take_turns(client.broker)
    assert bodies(client.consume("dead", "d")) == [b"%d" % number for number in range(count)]


class LosingStore(ManualStore):
    """Can't read every second batch that was paged out."""

    def arrive(self) -> int:
        reads = self.take_reads()
        for place, (batch, ready) in enumerate(reads):
            if place % 2 == 0 and not batch.resident:
                batch.restore(self.batches.written[batch])
            ready()
        return len(reads)


def test_an_unreadable_dead_letter_does_not_stop_the_others() -> None:
    store = LosingStore()
    client = stored(store)
    for number in range(10):
        client.publish(b"%d" % number, {"delivery_mode": 2}, routing_key="q")
    client.consume("q")
    store.evict_all()
    client.send("Basic.Nack", delivery_tag=10, multiple=True)
    store.arrive()
    take_turns(client.broker)
    dead_letters = client.consume("dead", "d", no_ack=True)
    assert bodies(dead_letters) == [b"%d" % number for number in range(0, 10, 2)]
    store.batches.written.clear()
    assert client.broker.memory.resident_bytes == 0
