"""Delayed messages from publish to delivery, in one process; the clock is the test's own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.amqp import Client, Reply, bodies, make_broker, names, publish, take_turns
from warrenmq.core.clock import ManualClock
from warrenmq.core.queue.delay import RELEASES_AT_ONCE, DelayQueue

DAY_MS = 86_400_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def client(clock: ManualClock) -> Client:
    """With a delaying direct exchange `x` and a queue `q`, bound by the key `k`."""
    client = Client(make_broker(clock=clock))
    declare(client)
    bind(client, "q")
    return client


def declare(client: Client, exchange: str = "x", inner: str = "direct", **arguments: Any) -> None:
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    answer = client.call(
        "Exchange.Declare", exchange=exchange, exchange_type="x-delayed-message",
        arguments={"x-delayed-type": inner} | given,
    )  # fmt: skip
    assert answer.name == "Exchange.DeclareOk"


def bind(client: Client, queue: str, exchange: str = "x", key: str = "k", **fields: Any) -> None:
    client.declare(queue)
    client.call("Queue.Bind", queue=queue, exchange=exchange, routing_key=key, **fields)


def send(
    client: Client, delay: object, body: bytes = b"m", exchange: str = "x", key: str = "k",
    **properties: Any,
) -> list[Reply]:  # fmt: skip
    headers = {"x-delay": delay, **properties.pop("headers", {})}
    found = {"headers": headers, **properties}
    return client.publish(body, found, exchange=exchange, routing_key=key)


def wait(client: Client, clock: ManualClock, ms: int) -> None:
    clock.advance(ms)
    take_turns(client.broker)


def drain(client: Client, queue: str = "q") -> list[Reply]:
    found = []
    while (reply := client.call("Basic.Get", queue=queue, no_ack=True)).name == "Basic.GetOk":
        found.append(reply)
    return found


def held(client: Client, exchange: str = "x") -> DelayQueue:
    queue = client.broker.vhosts["/"].exchanges[exchange].inner
    assert isinstance(queue, DelayQueue)
    return queue


# -- when


def test_it_comes_when_it_is_due_and_not_before(client: Client, clock: ManualClock) -> None:
    send(client, 5_000)
    assert (client.messages("q"), held(client).ready_count) == (0, 1)
    wait(client, clock, 4_999)
    assert client.messages("q") == 0
    wait(client, clock, 1)
    assert bodies(drain(client)) == [b"m"]
    assert held(client).ready_count == 0


@pytest.mark.parametrize("delay", [0, -5_000, "0", None])
def test_no_delay_is_none(client: Client, delay: object) -> None:
    send(client, delay)
    assert bodies(drain(client)) == [b"m"]


def test_without_the_header_it_is_routed_now(client: Client) -> None:
    client.publish(b"m", exchange="x", routing_key="k")
    client.publish(b"n", {"headers": {"other": 5}}, exchange="x", routing_key="k")
    assert bodies(drain(client)) == [b"m", b"n"]


def test_the_order_is_that_of_the_times(client: Client, clock: ManualClock) -> None:
    """And that of publishing where the times are equal."""
    for number, delay in enumerate((300, 100, 200, 100, 300, 200)):
        send(client, delay, b"%d" % number)
    clock.advance(100)
    send(client, 200, b"6")
    wait(client, clock, 1_000)
    assert bodies(drain(client)) == [b"1", b"3", b"2", b"5", b"0", b"4", b"6"]


def test_the_order_holds_over_many_turns(client: Client, clock: ManualClock) -> None:
    count = 3 * RELEASES_AT_ONCE
    stream = [
        publish(1, b"%d" % number, {"headers": {"x-delay": 1 + number * 7 % 50}},
                exchange="x", routing_key="k")
        for number in range(count)
    ]  # fmt: skip
    client.feed(b"".join(stream))
    clock.advance(60)
    client.broker.tick()
    assert client.broker.turn(), "not all of it in one turn"
    assert client.messages("q") < count
    take_turns(client.broker)
    expected = sorted(range(count), key=lambda number: (number * 7 % 50, number))
    assert bodies(client.consume("q")) == [b"%d" % number for number in expected]


def test_the_longest_delay(client: Client, clock: ManualClock) -> None:
    send(client, 2**32 - 1)
    wait(client, clock, 2**32 - 2)
    assert client.messages("q") == 0
    wait(client, clock, 1)
    assert client.messages("q") == 1


@pytest.mark.parametrize("delay", ["soon", 2**32, True, [5], b"\xff"])
def test_a_bad_delay_closes_the_channel(client: Client, delay: object) -> None:
    """Nothing is guessed: reliability.md names "bad x-delay silently means 0" as a defect."""
    (close,) = send(client, delay)
    assert (close.name, close["reply_code"]) == ("Channel.Close", 406)
    assert "invalid header 'x-delay'" in close["reply_text"]
    assert "exchange 'x' in vhost '/'" in close["reply_text"]
    assert (close["class_id"], close["method_id"]) == (60, 40)
    client.send("Channel.CloseOk")
    assert (client.messages("q"), held(client).ready_count) == (0, 0)


# -- what


def test_the_delay_is_negated_and_all_else_stays(client: Client, clock: ManualClock) -> None:
    properties: dict[str, Any] = {
        "content_type": "text/plain", "priority": 4, "correlation_id": "c", "reply_to": "r",
        "message_id": "m", "message_type": "t", "app_id": "a", "user_id": "guest",
    }  # fmt: skip
    send(client, "700", headers={"own": [1, {"deep": True}]}, **properties)
    wait(client, clock, 700)
    (found,) = drain(client)
    assert found.headers == {"x-delay": -700, "own": [1, {"deep": True}]}
    assert {name: getattr(found.properties, name) for name in properties} == properties
    assert (found["exchange"], found["routing_key"]) == ("x", "k")
    assert not found["redelivered"]


def test_its_own_expiration_begins_with_its_release(client: Client, clock: ManualClock) -> None:
    send(client, 1_000, expiration="500")
    wait(client, clock, 1_000)
    assert client.messages("q") == 1
    wait(client, clock, 499)
    assert client.messages("q") == 1
    wait(client, clock, 1)
    assert client.messages("q") == 0


def test_a_large_message(client: Client, clock: ManualClock) -> None:
    body = bytes(300_000)
    send(client, 10, body)
    wait(client, clock, 10)
    assert bodies(drain(client)) == [body]


# -- where


@pytest.mark.parametrize(
    ("inner", "key", "arguments"),
    [
        ("direct", "a.b", {}), ("topic", "a.*", {}), ("fanout", "", {}),
        ("headers", "", {"x-match": "all", "own": 1}),
    ],
)  # fmt: skip
def test_it_is_routed_as_the_inner_type_does(
    client: Client, clock: ManualClock, inner: str, key: str, arguments: dict[str, Any]
) -> None:
    declare(client, "y", inner)
    bind(client, "right", "y", key, arguments=arguments)
    bind(
        client,
        "wrong",
        "y",
        "c" if inner != "fanout" else "",
        arguments={"x-match": "all", "own": 2},
    )
    send(client, 50, exchange="y", key="a.b", headers={"own": 1})
    send(client, 0, exchange="y", key="a.b", headers={"own": 1})
    wait(client, clock, 50)
    assert client.messages("right") == 2
    assert client.messages("wrong") == (2 if inner == "fanout" else 0)


def test_bindings_count_as_they_are_when_it_is_due(client: Client, clock: ManualClock) -> None:
    send(client, 100)
    bind(client, "late")
    client.call("Queue.Unbind", queue="q", exchange="x", routing_key="k")
    wait(client, clock, 100)
    assert (client.messages("q"), client.messages("late")) == (0, 1)


def test_what_finds_no_queue_goes_to_the_alternate_exchange(
    client: Client, clock: ManualClock
) -> None:
    declare(client, "y", alternate_exchange="amq.fanout")
    bind(client, "rest", "amq.fanout")
    send(client, 50, exchange="y", key="nowhere")
    assert client.messages("rest") == 0
    wait(client, clock, 50)
    (found,) = drain(client, "rest")
    assert (found["exchange"], found.headers["x-delay"]) == ("y", -50)


def test_without_one_it_is_dropped(client: Client, clock: ManualClock) -> None:
    send(client, 50, key="nowhere")
    wait(client, clock, 50)
    assert held(client).ready_count == 0
    send(client, 50, b"next")
    wait(client, clock, 50)
    assert bodies(drain(client)) == [b"next"]


def test_copies_go_by_all_their_keys(client: Client, clock: ManualClock) -> None:
    for queue in ("cc", "bcc"):
        bind(client, queue, key=queue)
    send(client, 50, headers={"CC": ["cc", "k"], "BCC": ["bcc"]})
    assert held(client).ready_count == 1, "it waits once, whatever its keys"
    wait(client, clock, 50)
    for queue in ("q", "cc", "bcc"):
        (found,) = drain(client, queue)
        assert found.headers == {"x-delay": -50, "CC": ["cc", "k"]}


def test_behind_another_exchange_it_waits_too(client: Client, clock: ManualClock) -> None:
    """It comes with the name of the exchange that it was published to."""
    client.call("Exchange.Bind", source="amq.fanout", destination="x")
    bind(client, "now", "amq.fanout")
    send(client, 50, exchange="amq.fanout")
    assert (client.messages("now"), client.messages("q")) == (1, 0)
    wait(client, clock, 50)
    (found,) = drain(client)
    assert (found["exchange"], found.headers["x-delay"]) == ("amq.fanout", -50)
    assert drain(client, "now")[0].headers["x-delay"] == 50


def test_it_does_not_wait_at_the_next_exchange_again(client: Client, clock: ManualClock) -> None:
    declare(client, "y")
    client.call("Exchange.Bind", source="x", destination="y", routing_key="k")
    bind(client, "far", "y")
    send(client, 50)
    wait(client, clock, 50)
    assert (client.messages("q"), client.messages("far")) == (1, 1)


def test_a_dead_letter_may_wait(client: Client, clock: ManualClock) -> None:
    """Once: dead again, its delay is negative. A retry that is to wait sets its own."""
    client.declare(
        "work", arguments={"x-dead-letter-exchange": "x", "x-dead-letter-routing-key": "k"}
    )
    for waits in (True, False):
        headers = {"x-delay": 50 if waits else -50}
        client.publish(b"m", {"headers": headers}, routing_key="work")
        tag = client.call("Basic.Get", queue="work")["delivery_tag"]
        client.send("Basic.Reject", delivery_tag=tag)
        assert client.messages("q") == (0 if waits else 1)
        wait(client, clock, 50)
        (found,) = drain(client)
        assert found.headers["x-delay"] == -50
        assert [death["queue"] for death in found.headers["x-death"]] == ["work"]


def test_a_dead_letter_with_a_bad_delay_is_not_lost(client: Client) -> None:
    """There is no publisher who could be told."""
    client.declare(
        "work", arguments={"x-dead-letter-exchange": "x", "x-dead-letter-routing-key": "k"}
    )
    client.publish(b"m", {"headers": {"x-delay": "soon"}}, routing_key="work")
    tag = client.call("Basic.Get", queue="work")["delivery_tag"]
    client.send("Basic.Reject", delivery_tag=tag)
    (found,) = drain(client)
    assert found.headers["x-delay"] == "soon"


# -- what publishers are told


def test_a_message_that_waits_is_confirmed_and_counts_as_routed(client: Client) -> None:
    client.call("Confirm.Select")
    headers = {"x-delay": 50}
    fields: dict[str, Any] = {"exchange": "x", "routing_key": "nowhere", "mandatory": True}
    assert names(client.publish(b"m", {"headers": headers}, **fields)) == ["Basic.Ack"]
    assert names(client.publish(b"m", **fields)) == ["Basic.Return", "Basic.Ack"]


def test_in_a_transaction_it_waits_from_its_commit_on(client: Client, clock: ManualClock) -> None:
    client.call("Tx.Select")
    for number in range(3):
        send(client, 50 - number, b"%d" % number)
    wait(client, clock, 1_000)
    assert held(client).ready_count == 0
    client.call("Tx.Commit")
    assert held(client).ready_count == 3
    wait(client, clock, 49)
    assert client.messages("q") == 2
    wait(client, clock, 1)
    assert bodies(drain(client)) == [b"2", b"1", b"0"]
    send(client, 50)
    client.call("Tx.Rollback")
    assert held(client).ready_count == 0


def test_a_queue_that_refuses_when_it_is_due(client: Client, clock: ManualClock) -> None:
    """The message was confirmed long ago: it is dropped, as a dead letter would be."""
    client.declare("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    client.call("Queue.Bind", queue="full", exchange="x", routing_key="k")
    send(client, 50)
    wait(client, clock, 50)
    assert (client.messages("q"), client.messages("full"), held(client).ready_count) == (1, 0, 0)


# -- the exchange


def test_with_the_exchange_what_it_holds_goes(client: Client, clock: ManualClock) -> None:
    send(client, 50)
    client.call("Exchange.Delete", exchange="x")
    declare(client)
    bind(client, "q")
    wait(client, clock, 100)
    assert (client.messages("q"), held(client).ready_count) == (0, 0)
    assert client.broker.timers.next_ms is None or client.broker.timers.next_ms > clock.now_ms()


def test_what_is_on_its_way_goes_with_it_too(client: Client, clock: ManualClock) -> None:
    for _ in range(RELEASES_AT_ONCE):
        send(client, 50)
    clock.advance(50)
    client.broker.tick()
    client.broker.turn()
    released = client.messages("q")
    assert 0 < released < RELEASES_AT_ONCE
    vhost = client.broker.vhosts["/"]
    vhost.delete_exchange("x")
    again = vhost.declare_exchange(
        "x", "x-delayed-message", durable=False, auto_delete=False, internal=False,
        arguments={"x-delayed-type": "direct"},
    )  # fmt: skip
    vhost.bind(again, vhost.queue("q"), "k", {})
    take_turns(client.broker)
    assert client.messages("q") == released


def test_nobody_can_name_the_delay_queue(client: Client) -> None:
    send(client, DAY_MS)
    name = held(client).name
    assert client.call("Queue.Declare", queue=name, passive=True)["reply_code"] == 404
    assert list(client.broker.vhosts["/"].queues) == ["q"]


def test_two_exchanges_hold_their_own(client: Client, clock: ManualClock) -> None:
    declare(client, "y")
    bind(client, "q", "y")
    send(client, 50, b"x")
    send(client, 100, b"y", exchange="y")
    client.call("Exchange.Delete", exchange="x")
    wait(client, clock, 100)
    assert bodies(drain(client)) == [b"y"]


def test_what_has_been_handed_on_is_let_go_of(client: Client, clock: ManualClock) -> None:
    """Behind a message that waits for a day, any number come and go."""
    send(client, DAY_MS)
    for _ in range(40):
        for _ in range(20):
            send(client, 5_000)
        wait(client, clock, 5_000)
        client.call("Queue.Purge", queue="q")
    assert len(held(client)._due) == 1
    assert len(held(client)._due._fresh) <= 513
    assert len(held(client).backlog._ready) < 200
