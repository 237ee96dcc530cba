"""Seen message ids through crashes and restarts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.amqp import publish
from warrenmq.core.definitions.keys import is_fact

from .life import Life, acks, numbered, torn_lives

pytestmark = pytest.mark.promise

ENDS = ["crash", "restart"]
DEDUPLICATES = {"x-message-deduplication": True, "x-cache-size": 1_000}


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path / "log")
    declare(found)
    found.write()
    yield found
    found.abandon()


def declare(life: Life, **more: Any) -> None:
    """A queue `q` that deduplicates, and an exchange `x` that does, with the queue `plain`."""
    arguments = DEDUPLICATES | {key.replace("_", "-"): value for key, value in more.items()}
    life.declare("q", arguments=arguments)
    life.declare("plain")
    life.client.call(
        "Exchange.Declare", exchange="x", exchange_type="fanout", durable=True,
        arguments=arguments,
    )  # fmt: skip
    life.client.call("Queue.Bind", queue="plain", exchange="x")


def send(life: Life, number: int, exchange: str = "", *, persistent: bool = True) -> None:
    properties = {
        "headers": {"x-deduplication-header": number},
        "delivery_mode": 2 if persistent else 1,
    }
    life.client.feed(publish(1, b"%06d" % number, properties, exchange=exchange, routing_key="q"))


def facts(life: Life) -> int:
    return sum(1 for key in life.store.definitions if is_fact(key))


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize(("exchange", "queue"), [("", "q"), ("x", "plain")])
def test_ids_are_known_after_a_restart(life: Life, how: str, exchange: str, queue: str) -> None:
    for number in range(5):
        send(life, number, exchange)
    life.write()
    assert life.bodies(queue) == numbered(5)
    life.write()
    getattr(life, how)()
    for number in range(7):
        send(life, number, exchange)
    assert life.bodies(queue) == numbered(2, 5)


@pytest.mark.parametrize("exchange", ["", "x"])
def test_duplicate_is_confirmed_with_its_original(
    life: Life, monkeypatch: pytest.MonkeyPatch, exchange: str
) -> None:
    """Though somebody else sends it: the first one is not on disk yet."""
    life.write()
    other = life.connect()
    other.call("Confirm.Select")
    reports: list[Any] = []
    monkeypatch.setattr(life.store.worker, "post", reports.append)
    send(life, 1, exchange)
    life.client, first = other, life.client
    send(life, 1, exchange)
    life.turns()
    assert acks(other.come()) == []
    while reports:
        reports.pop(0)()
        life.turns()
    assert acks(other.come()) == [(1, False)]
    assert first.come() == []


@pytest.mark.parametrize(("exchange", "queue"), [("", "q"), ("x", "plain")])
def test_a_torn_write_leaves_message_and_id_or_neither(
    life: Life, tmp_path: Path, exchange: str, queue: str
) -> None:
    seen = set()
    for torn in torn_lives(life, tmp_path, lambda: send(life, 1, exchange)):
        seen.add(torn.queue(queue).ready_count)
        send(torn, 1, exchange)
        assert torn.queue(queue).ready_count == 1
    assert seen == {0, 1}


def test_ids_of_transient_messages_are_not_stored(life: Life) -> None:
    send(life, 1, persistent=False)
    send(life, 1, "x", persistent=False)
    life.write()
    life.crash()
    for exchange in ("", "x"):
        send(life, 1, exchange)
    assert [life.queue(name).ready_count for name in ("q", "plain")] == [1, 1]


@pytest.mark.parametrize("how", ENDS)
def test_age_of_an_id_counts_over_a_restart(tmp_path: Path, how: str) -> None:
    life = Life(tmp_path / "log")
    declare(life, x_cache_ttl=10_000)
    send(life, 1)
    life.write()
    life.clock.advance(5_000)
    getattr(life, how)()
    life.clock.advance(4_800)
    send(life, 1)
    assert life.queue("q").ready_count == 1
    life.clock.advance(200)
    send(life, 1)
    assert life.queue("q").ready_count == 2
    life.abandon()


def test_ids_are_deleted_with_queue_and_exchange(life: Life) -> None:
    for number in range(5):
        send(life, number)
        send(life, number, "x")
    assert facts(life) == 10
    life.client.call("Queue.Delete", queue="q")
    life.client.call("Exchange.Delete", exchange="x")
    assert facts(life) == 0
    life.write()
    life.crash()
    declare(life)
    for exchange in ("", "x"):
        send(life, 1, exchange)
    assert life.queue("q").ready_count == 1


def test_only_remembered_ids_are_stored(life: Life) -> None:
    life.declare("small", arguments=DEDUPLICATES | {"x-cache-size": 3})
    for number in range(50):
        properties = {"headers": {"x-deduplication-header": number}, "delivery_mode": 2}
        life.client.feed(publish(1, b"", properties, routing_key="small"))
        assert facts(life) <= 3
    life.write()
    life.restart()
    assert facts(life) == 3


def test_transaction_stores_its_ids_at_the_commit(life: Life) -> None:
    life.client.call("Tx.Select")
    for exchange in ("", "x"):
        send(life, 1, exchange)
    life.crash()
    life.client.call("Tx.Select")
    for exchange in ("", "x", "", "x"):
        send(life, 1, exchange)
    life.client.send("Tx.Commit")
    life.write()
    life.crash()
    for exchange in ("", "x"):
        send(life, 1, exchange)
    assert [life.queue(name).ready_count for name in ("q", "plain")] == [1, 1]


def test_message_and_id_are_stored_together(tmp_path: Path) -> None:
    """Killed at any moment: sent again until it is there, each message is there once."""
    chance = random.Random(3)
    life = Life(tmp_path / "log", segment_bytes=3_000)
    declare(life)
    life.write()
    sent = 0
    for _ in range(30):
        for number in range(sent, sent + chance.randrange(1, 8)):
            send(life, number, chance.choice(["", "x"]) if number % 2 else "")
        if chance.random() < 0.5:
            life.turns(1, each_ms=chance.randrange(12))
        life.crash()
        for number in range(sent, sent + 8):
            for exchange in ("", "x"):
                send(life, number, exchange)
        sent += 8
        life.write()
    assert sorted(life.bodies("q")) == numbered(sent)
    assert sorted(life.bodies("plain")) == numbered(sent)
    life.abandon()
