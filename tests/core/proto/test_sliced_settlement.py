"""Settling very many deliveries in slices, and the state between two slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.core.queue.support import classic
from tests.support.amqp import Client, bodies, make_broker, method, names, publish, take_turns
from tests.support.steps import STEPS_A_TURN, count_calls, count_steps
from warrenmq.core.message.queue_entry import MessageRange
from warrenmq.core.queue.classic import ClassicQueue

COUNT = 4 * STEPS_A_TURN
NACK = {"delivery_tag": COUNT, "multiple": True}


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    count_steps(monkeypatch)
    return Client(make_broker())


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often messages were looked at and put back, and acknowledged."""
    names = ("begin_requeue", "finish_requeue", "settle", "reject")
    return count_calls(monkeypatch, *((ClassicQueue, name) for name in names))


def outstanding(client: Client, **arguments: Any) -> list[bytes]:
    """Delivers messages of `q` to channel 1, each on its own; returns the deliveries."""
    client.declare("q", arguments=arguments)
    client.consume("q", "c")
    sent = [b"%06d" % number for number in range(COUNT)]
    for body in sent:
        client.receive(publish(1, body, routing_key="q"))
    client.come()
    client.call("Basic.Cancel", consumer_tag="c")
    return sent


def slices(client: Client, name: str, **fields: Any) -> Iterator[None]:
    """Begins with that method; then a turn each."""
    client.broker.tick()
    client.connection.receive(method(int(not name.startswith("Connection.")), name, **fields))
    yield
    while client.broker.turn():
        yield


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("Basic.Nack", NACK | {"requeue": True}),
        ("Basic.Nack", {"delivery_tag": 0, "multiple": True, "requeue": True}),
        ("Basic.Recover", {"requeue": True}),
        ("Channel.Close", {"reply_code": 200}),
        ("Connection.Close", {"reply_code": 200}),
    ],
)
def test_requeue_in_slices_and_in_order(
    client: Client, steps: Counter[str], name: str, fields: dict[str, Any]
) -> None:
    sent = outstanding(client)
    other = Client(client.broker)
    other.consume("q", "other", no_ack=True)
    client.receive(publish(1, b"younger", routing_key="q"))
    assert other.come() != []
    turns = 0
    queue = client.broker.vhosts["/"].queues["q"]
    steps.clear()
    for _ in slices(client, name, **fields):
        turns += 1
        assert steps.total() <= 2 * STEPS_A_TURN
        steps.clear()
        assert queue.ready_count + queue.unacked_count <= COUNT
        if queue.unacked_count:
            assert other.come() == [], "nothing overtakes those that are not back yet"
    take_turns(client.broker)
    assert turns > 2 * COUNT // STEPS_A_TURN - 2
    found = other.come()
    assert bodies(found) == sent
    assert all(reply["redelivered"] for reply in found)
    assert (queue.ready_count, queue.unacked_count) == (0, 0)


@pytest.mark.parametrize(
    ("name", "fields", "step"),
    [
        ("Basic.Ack", NACK, "settle"),
        ("Basic.Nack", NACK | {"requeue": False}, "reject"),
    ],
)
def test_ack_and_reject_in_slices(
    client: Client, steps: Counter[str], name: str, fields: dict[str, Any], step: str
) -> None:
    client.declare("dead")
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    sent = outstanding(client, **dead)
    steps.clear()
    for _ in slices(client, name, **fields):
        assert steps[step] <= 2 * STEPS_A_TURN
        steps.clear()
    queue = client.broker.vhosts["/"].queues["q"]
    assert (queue.ready_count, queue.unacked_count) == (0, 0)
    assert bodies(client.consume("dead")) == (sent if step == "reject" else [])


def test_other_connections_are_served_between_slices(client: Client) -> None:
    outstanding(client)
    other = Client(client.broker)
    other.declare("o")
    other.consume("o", no_ack=True)
    served = 0
    for _ in slices(client, "Basic.Nack", **NACK, requeue=True):
        other.connection.receive(publish(1, b"x", routing_key="o"))
        client.broker.turn()
        served += len(other.come())
    assert served > 2


@pytest.mark.parametrize("last", [COUNT, COUNT - 1, COUNT // 2])
def test_the_tags_are_unknown_at_once(client: Client, last: int) -> None:
    outstanding(client)
    nack = {"delivery_tag": last, "multiple": True, "requeue": True}
    client.connection.receive(method(1, "Basic.Nack", **nack))
    if last < COUNT:
        client.connection.receive(method(1, "Basic.Ack", delivery_tag=last + 1))
    client.connection.receive(method(1, "Basic.Ack", delivery_tag=last))
    take_turns(client.broker)
    (close,) = client.come()
    assert (close["reply_code"], close["reply_text"]) == (
        406, f"PRECONDITION_FAILED - unknown delivery tag {last}",
    )  # fmt: skip
    assert client.messages("q") == COUNT - (last < COUNT)


def test_unsettled_part_of_a_delivery_stays_outstanding(client: Client) -> None:
    sent = outstanding(client)
    client.declare("p")
    client.receive(b"".join(publish(1, b"%d" % number, routing_key="p") for number in range(10)))
    client.consume("p", "p")
    last = COUNT + 4
    assert client.send("Basic.Nack", delivery_tag=last, multiple=True, requeue=False) == []
    assert client.send("Basic.Ack", delivery_tag=last + 1) == []
    assert len(sent) == COUNT and client.connection.channels[1].deliveries.unacked.count == 5
    (close,) = client.send("Basic.Ack", delivery_tag=last)
    assert close["reply_code"] == 406


def test_a_get_waits_until_all_are_requeued(client: Client) -> None:
    outstanding(client)
    other = Client(client.broker)
    client.connection.receive(method(1, "Basic.Nack", **NACK, requeue=True))
    other.connection.receive(method(1, "Basic.Get", queue="q"))
    client.broker.turn()
    assert other.come() == []
    take_turns(client.broker)
    (got,) = other.come()
    assert (got.body, got["message_count"]) == (b"000000", COUNT - 1)


@pytest.mark.parametrize("how", ["Queue.Delete", "Queue.Purge"])
def test_the_queue_is_deleted_or_purged_between_slices(client: Client, how: str) -> None:
    outstanding(client)
    other = Client(client.broker)
    other.declare("q2")
    client.connection.receive(method(1, "Basic.Nack", **NACK, requeue=True))
    client.broker.turn()
    other.connection.receive(method(1, how, queue="q") + method(1, "Basic.Get", queue="q2"))
    take_turns(client.broker)
    assert names(other.come()) == [f"{how}Ok", "Basic.GetEmpty"]
    if how == "Queue.Purge":
        assert client.messages("q") == COUNT
    assert not client.broker.slices.busy


def test_a_length_limit_drops_the_oldest_after_the_requeue(client: Client) -> None:
    sent = outstanding(client, **{"x-max-length": COUNT // 2})
    client.send("Basic.Nack", **NACK, requeue=True)
    assert bodies(client.consume("q", "d", no_ack=True)) == sent[COUNT // 2 :]


def test_dead_letters_by_delivery_limit_keep_their_order(client: Client) -> None:
    client.declare("dead")
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    sent = outstanding(client, **dead, **{"x-delivery-limit": 0})
    client.send("Basic.Nack", **NACK, requeue=True)
    assert bodies(client.consume("dead", "d", no_ack=True)) == sent


def test_pieces_of_sliced_work_share_a_turn(client: Client) -> None:
    done: Counter[str] = Counter()

    def work(name: str, count: int) -> Iterator[None]:
        for _ in range(count):
            done[name] += 1
            yield

    slices = client.broker.slices
    slices.start(work("short", 5))
    assert done["short"] == 5, "what is short is done at once"
    for name in ("a", "b"):
        slices.start(work(name, 10 * STEPS_A_TURN))
    assert STEPS_A_TURN // 2 < done["a"] < STEPS_A_TURN and done["b"] > 0
    before = sum(done.values())
    while client.broker.turn():
        assert abs(done["a"] - done["b"]) <= 2 * STEPS_A_TURN
        assert sum(done.values()) - before <= STEPS_A_TURN
        before = sum(done.values())
    assert done["a"] == done["b"] == 10 * STEPS_A_TURN


def test_an_error_ends_one_piece_of_sliced_work(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Iterator[None]:
        yield
        raise RuntimeError("broken")

    client.broker.slices.start(broken())
    assert "internal error in background work" in caplog.text
    assert not client.broker.turn()


@pytest.mark.parametrize("name", ["begin_requeue", "finish_requeue"])
def test_an_error_with_one_message_stops_no_other(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
) -> None:
    sent = outstanding(client)
    before = getattr(ClassicQueue, name)

    def broken(queue: ClassicQueue, messages: MessageRange, **named: Any) -> Any:
        if messages.entry.batch.body(messages.low) == sent[1]:
            raise RuntimeError("broken")
        return before(queue, messages, **named)

    monkeypatch.setattr(ClassicQueue, name, broken)
    client.send("Basic.Nack", **NACK, requeue=True)
    assert "continuing with the next step" in caplog.text
    assert bodies(client.consume("q", "d", no_ack=True)) == [sent[0], *sent[2:]]


def test_an_error_in_one_queue_releases_the_others(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sent = outstanding(client)
    for name in ("before", "behind"):
        client.declare(name)
        client.publish(b"x", routing_key=name)
        client.call("Basic.Get", queue=name)
    client.connection.receive(method(1, "Basic.Nack", delivery_tag=0, multiple=True, requeue=True))
    queues = client.broker.vhosts["/"].queues

    def fail() -> None:
        raise RuntimeError("broken")

    classic(queues["q"]).page_in_requests.when_requeued(fail)
    take_turns(client.broker)
    assert "internal error in background work" in caplog.text
    for name, expected in (("before", [b"x"]), ("q", sent), ("behind", [b"x"])):
        assert bodies(client.consume(name, name, no_ack=True)) == expected
