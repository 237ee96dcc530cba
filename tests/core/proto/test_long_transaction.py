"""Transactions that settle very many deliveries: in slices, and atomically."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.life import PERSISTENT, Life, numbered
from tests.support.amqp import Client, bodies, make_broker, method, names, publish, take_turns
from tests.support.steps import STEPS_A_TURN, count_calls, count_steps
from warrenmq.core.proto import transaction
from warrenmq.core.queue.classic import ClassicQueue
from warrenmq.core.queue.unacked import Unacked
from warrenmq.core.republish.group import RepublishGroup

COUNT = 2 * STEPS_A_TURN
ALL: dict[str, Any] = {"delivery_tag": 0, "multiple": True}


TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


@pytest.fixture
def arguments() -> dict[str, Any]:
    """What `q` is declared with."""
    return {}


@pytest.fixture
def life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any]
) -> Iterator[Life]:
    """Its client holds `COUNT` messages of `q`, each of which came alone, in a transaction."""
    count_steps(monkeypatch)
    found = Life(tmp_path / "log")
    found.declare("q", arguments=arguments)
    found.declare("dead")
    found.declare("marker")
    for body in numbered(COUNT):
        found.client.publish(body, PERSISTENT, routing_key="q")
    found.write()
    found.client.call("Tx.Select")
    found.client.consume("q", "c")
    yield found
    found.abandon()


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often something was done with one delivery."""
    names = (
        "note_settled", "count_settled", "begin_requeue", "finish_requeue", "settle", "requeue",
    )  # fmt: skip
    return count_calls(
        monkeypatch,
        *((ClassicQueue, name) for name in names),
        (RepublishGroup, "add"),
        (transaction, "dead_letter_bytes"),
    )


def begin(life: Life, *frames: bytes) -> None:
    """The rest is done in the turns that follow."""
    life.broker.tick()
    life.client.connection.receive(b"".join(frames))


def go_on(life: Life, steps: Counter[str]) -> int:
    """Takes turns until all is done, handling what the client sends; returns their number."""
    turns, more = 0, True
    connection = life.client.connection
    while more or connection.pending.unfinished:
        assert steps.total() <= 2 * STEPS_A_TURN
        steps.clear()
        more = life.broker.turn()
        if connection.pending.unfinished:
            connection.receive(b"")
            more = True
        turns += 1
    return turns


def marker() -> bytes:
    return publish(1, b"committed", PERSISTENT, routing_key="marker")


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 9])
def test_a_crash_finds_all_of_a_commit_or_nothing(life: Life, turns: int) -> None:
    begin(life, method(1, "Basic.Ack", **ALL), marker(), method(1, "Tx.Commit"))
    for _ in range(turns):
        life.broker.turn()
    life.store.flush()
    life.crash()
    found = life.bodies("q"), life.bodies("marker")
    assert found in ((numbered(COUNT), []), ([], [b"committed"]))
    if turns in (0, 9):
        assert (found[0] == []) == (turns == 9)


@pytest.mark.parametrize("arguments", [{}, {"x-delivery-limit": 3}])
@pytest.mark.parametrize("name", ["Basic.Ack", "Basic.Nack"])
def test_a_commit_settles_in_slices(life: Life, steps: Counter[str], name: str) -> None:
    steps.clear()
    begin(life, method(1, name, **ALL), marker(), method(1, "Tx.Commit"))
    assert go_on(life, steps) >= 2 * COUNT // STEPS_A_TURN - 1
    life.turns()
    assert names(life.client.come()) == ["Tx.CommitOk"]
    assert (life.queue("q").ready_count, life.queue("q").unacked_count) == (0, 0)
    life.crash()
    assert (life.bodies("q"), life.bodies("marker")) == ([], [b"committed"])


@pytest.mark.parametrize("arguments", [TO_DEAD, TO_DEAD | {"x-delivery-limit": 3}])
def test_a_commit_makes_dead_letters_in_slices(life: Life, steps: Counter[str]) -> None:
    steps.clear()
    begin(life, method(1, "Basic.Nack", **ALL, requeue=False), marker(), method(1, "Tx.Commit"))
    assert life.client.connection.pending.awaits_reply
    assert go_on(life, steps) >= 3 * COUNT // STEPS_A_TURN
    life.turns()
    assert names(life.client.come()) == ["Tx.CommitOk"]
    assert (life.queue("q").ready_count, life.queue("q").unacked_count) == (0, 0)
    life.crash()
    found = [life.bodies(name) for name in ("q", "dead", "marker")]
    assert found == [[], numbered(COUNT), [b"committed"]]


@pytest.mark.parametrize("arguments", [TO_DEAD])
def test_a_crash_finds_all_dead_letters_of_a_commit_or_none(
    life: Life, steps: Counter[str]
) -> None:
    begin(life, method(1, "Basic.Nack", **ALL, requeue=False), marker(), method(1, "Tx.Commit"))
    while not life.store.log.settlements.uncounted:
        life.broker.turn()
        assert life.queue("dead").ready_count in (0, COUNT)
        if life.client.connection.pending.unfinished:
            life.client.connection.receive(b"")
    life.store.flush()
    assert life.queue("q").unacked_count, "not all is counted yet"
    life.crash()
    found = [life.bodies(name) for name in ("q", "dead", "marker")]
    assert found == [[], numbered(COUNT), [b"committed"]]


@pytest.mark.parametrize("turns", [0, 1, 3, 8])
@pytest.mark.parametrize("arguments", [TO_DEAD])
def test_a_channel_that_closes_before_its_commit_requeues_all(life: Life, turns: int) -> None:
    begin(life, method(1, "Basic.Nack", **ALL, requeue=False))
    for _ in range(turns):
        life.broker.turn()
    life.client.connection.lost()
    take_turns(life.broker)
    assert (life.queue("q").ready_count, life.queue("q").unacked_count) == (COUNT, 0)


@pytest.mark.parametrize("arguments", [TO_DEAD])
def test_too_many_dead_letters_close_the_channel(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "TRANSACTION_MAX_BYTES", 10 * COUNT)
    begin(life, method(1, "Basic.Nack", **ALL, requeue=False), marker(), method(1, "Tx.Commit"))
    take_turns(life.broker)
    life.client.connection.receive(b"")
    take_turns(life.broker)
    (closed,) = life.client.come()
    assert (closed.name, closed["reply_code"]) == ("Channel.Close", 406)
    assert (life.queue("q").ready_count, life.queue("marker").ready_count) == (COUNT, 0)


def test_a_checkpoint_during_the_count_keeps_the_settlements(life: Life) -> None:
    begin(life, method(1, "Basic.Ack", **ALL), method(1, "Tx.Commit"))
    while not life.store.log.settlements.uncounted:
        life.broker.turn()
    life.store.log.roll()
    for _ in range(30):
        life.store.turned()
        life.store.flush()
    life.crash()
    assert life.bodies("q") == []


def test_a_commit_requeues_in_slices(life: Life, steps: Counter[str]) -> None:
    steps.clear()
    life.client.send("Basic.Cancel", consumer_tag="c")
    begin(life, method(1, "Basic.Nack", **ALL, requeue=True), marker(), method(1, "Tx.Commit"))
    assert go_on(life, steps) >= 2 * COUNT // STEPS_A_TURN - 1
    life.turns()
    assert names(life.client.come()) == ["Tx.CommitOk"]
    assert (life.bodies("q"), life.bodies("marker")) == (numbered(COUNT), [b"committed"])


def test_the_queue_is_deleted_while_a_commit_is_counted(life: Life) -> None:
    begin(life, method(1, "Basic.Ack", **ALL), method(1, "Tx.Commit"))
    other = Client(life.broker)
    other.call("Queue.Delete", queue="q")
    life.turns()
    assert sorted(names(life.client.come())) == ["Basic.Cancel", "Tx.CommitOk"]
    life.write()
    life.crash()
    assert life.store.recovered.quarantine == {}
    assert "q" not in life.broker.vhosts["/"].queues


@pytest.mark.parametrize("is_single", [False, True])
def test_a_rollback_restores_the_tags_in_slices(
    life: Life, monkeypatch: pytest.MonkeyPatch, *, is_single: bool
) -> None:
    if is_single:
        for tag in range(COUNT, 0, -1):
            life.client.send("Basic.Ack", delivery_tag=tag)
    else:
        life.client.send("Basic.Ack", **ALL)
    begin(life, method(1, "Tx.Rollback"), method(1, "Basic.Ack", delivery_tag=COUNT))
    turns = 0
    while life.broker.slices.busy:
        assert life.client.connection.pending.awaits_reply
        life.broker.turn()
        turns += 1
    assert turns >= COUNT // STEPS_A_TURN
    unacked: Unacked = life.client.connection.channels[1].deliveries.unacked
    assert unacked.count == COUNT
    life.client.connection.receive(b"")
    assert unacked.count == COUNT - 1
    assert names(life.client.send("Tx.Commit") or life.client.come()) == ["Tx.RollbackOk"]
    life.turns()
    assert names(life.client.come()) == ["Tx.CommitOk"]
    life.crash()
    assert life.bodies("q") == numbered(COUNT - 1)


@pytest.mark.parametrize("turns", [0, 1, 3])
@pytest.mark.parametrize("end", ["Channel.Close", "lost"])
def test_a_channel_that_closes_during_a_rollback_requeues_all(
    life: Life, end: str, turns: int
) -> None:
    half = {"delivery_tag": COUNT // 2 + 1, "multiple": True}
    begin(life, method(1, "Basic.Ack", **half), method(1, "Tx.Rollback"))
    for _ in range(turns):
        life.broker.turn()
    if end == "lost":
        life.client.connection.lost()
    else:
        life.client.connection.channels[1].release()
    take_turns(life.broker)
    assert (life.queue("q").ready_count, life.queue("q").unacked_count) == (COUNT, 0)
    other = Client(life.broker)
    assert bodies(other.consume("q", no_ack=True)) == numbered(COUNT)


def test_recover_without_requeue_delivers_again_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    count_steps(monkeypatch)
    client = Client(make_broker())
    client.declare("q")
    client.consume("q", "c")
    for body in numbered(COUNT):
        client.publish(body, routing_key="q")
    client.come()
    client.broker.tick()
    client.connection.receive(method(1, "Basic.Recover") + publish(1, b"new", routing_key="q"))
    found, turns = [], 0
    while client.broker.turn():
        replies = bodies(client.come())
        assert len(replies) <= 2 * STEPS_A_TURN
        found += replies
        turns += 1
    assert turns >= COUNT // STEPS_A_TURN
    assert found + bodies(client.come()) == [*numbered(COUNT), b"new"]
