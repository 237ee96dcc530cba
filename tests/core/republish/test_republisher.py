"""Dead letters: what moves where, how many a turn, and what they carry."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.amqp import Client, Reply, bodies, make_broker, method, publish, take_turns
from tests.support.manual_store import ManualStore
from warrenmq.core.clock import ManualClock
from warrenmq.core.message.batch import MessageRange
from warrenmq.core.message.deduplication import HEADER
from warrenmq.core.policy.merge import effective_rules
from warrenmq.core.republish.republisher import AHEAD_BATCHES, REPUBLISHED_PER_TURN
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


def test_rejected(client: Client, clock: ManualClock) -> None:
    declare(client)
    client.publish(b"x", {"headers": {"a": 1}, "app_id": "b"}, routing_key="q")
    reject(client)
    dead_letter = got(client)
    assert (dead_letter.body, dead_letter["exchange"], dead_letter["routing_key"]) == (
        b"x",
        "",
        "dead",
    )
    assert dead_letter.properties is not None
    assert dead_letter.properties.app_id == "b"
    assert dead_letter.headers["a"] == 1
    (death,) = dead_letter.headers["x-death"]
    assert death.pop("time").timestamp() == int(clock.wall_s())
    assert death == {
        "count": 1, "reason": "rejected", "queue": "q", "exchange": "", "routing-keys": ["q"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [({"message_ttl": 5}, "expired"), ({"max_length": 0}, "maxlen")],
)
def test_other_reasons(
    client: Client, clock: ManualClock, arguments: dict[str, Any], reason: str
) -> None:
    declare(client, **arguments)
    client.publish(b"x", routing_key="q")
    clock.advance(6)
    take_turns(client.broker)
    assert got(client).headers["x-first-death-reason"] == reason


def test_an_own_expiration_does_not_travel_on(client: Client, clock: ManualClock) -> None:
    declare(client)
    client.publish(b"x", {"expiration": "5"}, routing_key="q")
    clock.advance(6)
    take_turns(client.broker)
    clock.advance(1000)
    take_turns(client.broker)
    dead_letter = got(client)
    assert dead_letter.properties is not None
    assert dead_letter.properties.expiration is None
    assert dead_letter.headers["x-death"][0]["original-expiration"] == "5"


def test_the_original_key_is_kept(client: Client) -> None:
    client.declare("q2")
    client.call("Queue.Bind", queue="dead", exchange="amq.topic", routing_key="eu.*")
    client.call("Queue.Bind", queue="q2", exchange="amq.direct", routing_key="eu.fr")
    declare(client, "q", dead_letter_exchange="amq.topic", dead_letter_routing_key=None)
    client.call("Queue.Bind", queue="q", exchange="amq.direct", routing_key="eu.fr")
    client.publish(b"x", exchange="amq.direct", routing_key="eu.fr")
    reject(client)
    dead_letter = got(client)
    assert (dead_letter["exchange"], dead_letter["routing_key"]) == ("amq.topic", "eu.fr")
    assert dead_letter.headers["x-death"][0]["exchange"] == "amq.direct"


def test_without_an_exchange_it_is_dropped(client: Client) -> None:
    client.declare("q")
    client.publish(b"x", routing_key="q")
    reject(client)
    assert client.messages("dead") == client.messages("q") == 0


def test_with_an_exchange_that_does_not_exist_it_is_dropped(client: Client) -> None:
    declare(client, dead_letter_exchange="none")
    client.publish(b"x", routing_key="q")
    reject(client)
    assert client.messages("dead") == client.messages("q") == 0


def test_headers_route_dead_letters_too(client: Client) -> None:
    client.call(
        "Queue.Bind", queue="dead", exchange="amq.headers",
        arguments={"x-match": "all", "kind": "a"},
    )  # fmt: skip
    declare(client, dead_letter_exchange="amq.headers")
    for kind in "ab":
        client.publish(kind.encode(), {"headers": {"kind": kind}}, routing_key="q")
        reject(client)
    assert got(client).body == b"a"
    assert client.messages("dead") == 0


# -- cycles


def test_an_expired_message_does_not_go_in_circles(client: Client, clock: ManualClock) -> None:
    declare(client, "a", dead_letter_routing_key="b", message_ttl=5)
    declare(client, "b", dead_letter_routing_key="a", message_ttl=5)
    client.publish(b"x", routing_key="a")
    for _ in range(3):
        clock.advance(6)
        take_turns(client.broker)
    assert (client.messages("a"), client.messages("b")) == (0, 0)


def test_a_rejection_breaks_the_circle(client: Client, clock: ManualClock) -> None:
    """Retry by a waiting queue, as task queues do it."""
    declare(client, "work", dead_letter_routing_key="wait")
    declare(client, "wait", dead_letter_routing_key="work", message_ttl=5)
    client.publish(b"x", routing_key="work")
    for attempt in range(1, 4):
        reject(client, "work")
        clock.advance(6)
        take_turns(client.broker)
        found = client.call("Basic.Get", queue="work")
        counts = {death["queue"]: death["count"] for death in found.headers["x-death"]}
        assert counts == {"work": attempt, "wait": attempt}
        client.send("Basic.Reject", delivery_tag=found["delivery_tag"], requeue=True)


def test_a_queue_that_is_its_own_grave(client: Client) -> None:
    declare(client, dead_letter_routing_key="q", max_length=1)
    client.publish(b"a", routing_key="q")
    client.publish(b"b", routing_key="q")
    take_turns(client.broker)
    assert client.messages("q") == 1


# -- turns


def test_order_is_kept(client: Client) -> None:
    declare(client)
    row = (publish(1, b"%d" % number, routing_key="q") for number in range(30))
    client.feed(b"".join(row))
    client.consume("q")
    client.send("Basic.Nack", delivery_tag=30, multiple=True)
    assert bodies(client.consume("dead", "d")) == [b"%d" % number for number in range(30)]


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


def test_letters_keep_their_order_whatever_they_are(client: Client) -> None:
    """Large ones and those with blind copies travel alone, the others together."""
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


def test_letters_of_one_read_go_to_their_own_queues(client: Client) -> None:
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


def test_alike_letters_have_their_own_time(client: Client, clock: ManualClock) -> None:
    declare(client)
    for _ in range(2):
        client.publish(b"x", routing_key="q")
        reject(client)
        clock.advance(1_000)
    times = [got(client).headers["x-death"][0]["time"].timestamp() for _ in range(2)]
    assert times[1] - times[0] == 1


def test_the_rules_at_its_death_count(client: Client, clock: ManualClock) -> None:
    """A policy may change them while letters wait for their turn."""
    declare(client, max_length=0)
    queue = client.broker.vhosts["/"].queues["q"]
    stream = b"".join(publish(1, b"x", routing_key="q") for _ in range(3 * REPUBLISHED_PER_TURN))
    client.broker.tick()
    client.connection.receive(stream)
    client.broker.turn()
    queue.apply(None)
    take_turns(client.broker)
    assert client.messages("dead") == 3 * REPUBLISHED_PER_TURN


def test_letters_of_a_virtual_host_that_is_gone(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    declare(client)
    client.publish(b"x", routing_key="q")
    tag = client.call("Basic.Get", queue="q")["delivery_tag"]
    gone = client.broker.vhosts.pop("/")
    client.receive(method(1, "Basic.Reject", delivery_tag=tag))
    assert gone.queues["dead"].ready_count == 0
    assert caplog.records == [], "nothing is wrong with that"


def test_a_queue_that_refuses_letters(client: Client) -> None:
    """As RabbitMQ's default strategy has it (at-most-once), the letter is dropped."""
    client.declare("full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    declare(client, dead_letter_routing_key="full")
    for _ in range(3):
        client.publish(b"x", routing_key="q")
        reject(client)
    assert (client.messages("full"), client.messages("q")) == (1, 0)


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("by_policy", [False, True])
def test_letters_that_are_not_to_be_lost(client: Client, size: int, by_policy: bool) -> None:
    """At-least-once: a full queue takes them, and deduplication does not count them twice."""
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


# -- what a publisher may have written itself


@pytest.mark.parametrize(
    "headers",
    [
        {"x-death": "nonsense"}, {"x-death": [5, {"count": "many"}]}, {"x-death": {}},
        {"CC": []}, {f"h{number}": number for number in range(1020)},
        {"x-death": [{"queue": "q", "reason": "rejected", "count": 2**40}]},
    ],
)  # fmt: skip
def test_odd_histories_do_not_stop_the_broker(client: Client, headers: dict[str, Any]) -> None:
    declare(client)
    client.publish(b"x", {"headers": headers}, routing_key="q")
    reject(client)
    dead_letter = got(client)
    assert dead_letter.body == b"x"
    assert dead_letter.headers["x-death"][0]["queue"] == "q"


@pytest.mark.parametrize("own_key", [None, "dead"])
def test_copies_travel_on_unless_the_queue_sets_the_key(
    client: Client, own_key: str | None
) -> None:
    client.declare("copy")
    client.declare("blind")
    declare(client, "q", dead_letter_routing_key=own_key)
    headers = {"CC": ["copy"], "BCC": ["blind"]}
    client.publish(b"x", {"headers": headers}, routing_key="q")
    for queue in ("copy", "blind"):
        client.call("Queue.Purge", queue=queue)
    reject(client)
    counts = {queue: client.messages(queue) for queue in ("q", "copy", "blind", "dead")}
    if own_key is None:
        assert counts == {"q": 1, "copy": 1, "blind": 1, "dead": 0}
        assert "BCC" not in got(client, "blind").headers
    else:
        assert counts == {"q": 0, "copy": 0, "blind": 0, "dead": 1}


# -- with a store


class NotingStore(ManualStore):
    """Knows what queues are done with: the queue's id and how many messages."""

    def __init__(self) -> None:
        super().__init__()
        self.settled: list[tuple[int, int]] = []

    def settle(self, queue: QueueIdentity, messages: MessageRange) -> None:
        self.settled.append((queue.id, messages.count))


@pytest.mark.parametrize("exchange", ["", "none", None])
def test_a_message_is_settled_where_it_came_from(exchange: str | None) -> None:
    """Once, whether it was moved or dropped."""
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


def test_a_moved_message_lasts_where_it_goes() -> None:
    store = ManualStore()
    store.paging = True
    client = Client(make_broker(store))
    client.declare("dead", durable=True)
    client.declare(
        "q", durable=True,
        arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
    )  # fmt: skip
    client.publish(b"x", {"delivery_mode": 2}, routing_key="q")
    client.send("Basic.Get", queue="q")
    store.arrive()
    take_turns(client.broker)
    (found,) = client.come()
    client.send("Basic.Reject", delivery_tag=found["delivery_tag"])
    client.send("Basic.Get", queue="dead", no_ack=True)
    while store.arrive():
        take_turns(client.broker)
    (dead_letter,) = client.come()
    assert dead_letter.properties is not None
    assert (dead_letter.body, dead_letter.properties.delivery_mode) == (b"x", 2)


def test_letters_that_left_memory_are_read_together() -> None:
    store = ManualStore()
    store.paging = False
    client = Client(make_broker(store))
    client.declare("dead", durable=True)
    client.declare("q", durable=True, arguments={
        "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead",
    })  # fmt: skip
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
    """Of what left memory, what is at odd places can't be read any more."""

    def arrive(self) -> int:
        reads, self._reads = self._reads, []
        for place, (batch, ready) in enumerate(reads):
            if place % 2 == 0 and not batch.resident:
                batch.restore(self._written[batch])
            ready()
        return len(reads)


def test_a_letter_that_cannot_be_read_does_not_hold_the_others() -> None:
    store = LosingStore()
    store.paging = False
    client = Client(make_broker(store))
    client.declare("dead", durable=True)
    client.declare("q", durable=True, arguments={
        "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead",
    })  # fmt: skip
    for number in range(10):
        client.publish(b"%d" % number, {"delivery_mode": 2}, routing_key="q")
    client.consume("q")
    store.evict_all()
    client.send("Basic.Nack", delivery_tag=10, multiple=True)
    store.arrive()
    take_turns(client.broker)
    assert bodies(client.consume("dead", "d")) == [b"%d" % number for number in range(0, 10, 2)]
