"""Delayed messages through crashes and restarts: each waits for what is left of its time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.amqp import publish
from warrenmq.core.queue.delay import DelayQueue

from .life import Life, acks, numbered

HOUR_MS = 3_600_000
ENDS = ["crash", "restart"]


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path / "log")
    declare(found)
    found.declare("q")
    found.client.call("Queue.Bind", queue="q", exchange="x", routing_key="k")
    found.write()
    yield found
    found.abandon()


def declare(life: Life, exchange: str = "x", *, durable: bool = True) -> None:
    life.client.call(
        "Exchange.Declare", exchange=exchange, exchange_type="x-delayed-message", durable=durable,
        arguments={"x-delayed-type": "direct"},
    )  # fmt: skip


def send(
    life: Life, delay_ms: int, body: bytes = b"m", exchange: str = "x", **more: object
) -> None:
    properties = {"headers": {"x-delay": delay_ms}, "delivery_mode": 2, **more}
    life.client.feed(publish(1, body, properties, exchange=exchange, routing_key="k"))


def held(life: Life, exchange: str = "x") -> DelayQueue:
    queue = life.broker.vhosts["/"].exchanges[exchange].inner
    assert isinstance(queue, DelayQueue)
    return queue


def end(life: Life, how: str) -> None:
    life.write()
    getattr(life, how)()
    life.turns()


def test_it_is_confirmed_when_it_is_on_disk(life: Life) -> None:
    life.confirm()
    send(life, HOUR_MS)
    life.turns()
    assert acks(life.client.come()) == [(1, False)]
    life.crash()
    life.turns()
    assert held(life).ready_count == 1


@pytest.mark.parametrize("how", ENDS)
def test_it_waits_for_what_is_left(life: Life, how: str) -> None:
    send(life, HOUR_MS)
    life.clock.advance(HOUR_MS - 1_000)
    end(life, how)
    life.turns(1, each_ms=1_000 - 130)  # 120 have passed in `end`
    assert (held(life).ready_count, life.queue("q").ready_count) == (1, 0)
    life.turns(1, each_ms=20)
    assert life.drain() == [(b"m", False)]
    end(life, how)
    assert (held(life).ready_count, life.drain()) == (0, [])


@pytest.mark.parametrize("how", ENDS)
def test_what_was_due_meanwhile_comes_at_the_start(life: Life, how: str) -> None:
    for number in range(20):
        send(life, 2_000 - number * 10, b"%06d" % number)
    end(life, how)
    assert life.queue("q").ready_count == 0
    life.write()
    life.stop()
    life.clock.advance(HOUR_MS)
    life.open()
    life.turns(5)
    assert life.bodies() == numbered(20)[::-1]


@pytest.mark.parametrize(
    ("set_by_s", "left_ms"), [(-86_400 * 365, 60_000), (-30, 60_000), (30, 30_000), (86_400, 0)]
)
def test_a_clock_that_was_set(life: Life, set_by_s: float, left_ms: int) -> None:
    """At least no time is left and at most all of it."""
    send(life, 60_000)
    life.write()
    life.stop()
    life.clock.step(set_by_s - 0.12)
    life.open()
    life.turns(2)
    if left_ms:
        life.turns(1, each_ms=left_ms - 10)
        assert life.queue("q").ready_count == 0
    life.turns(1, each_ms=20)
    assert life.queue("q").ready_count == 1


@pytest.mark.parametrize("how", ENDS)
def test_the_order_is_that_of_the_times_again(life: Life, how: str) -> None:
    """Also of messages with a priority or a time of their own, which are read one by one."""
    kinds: list[dict[str, Any]] = [{}, {"priority": 3}, {"expiration": "900000"}]
    delays = [random.Random(5).randrange(500, 600) for _ in range(60)]
    for number, delay in enumerate(delays):
        send(life, delay, b"%06d" % number, **kinds[number // 20])
    end(life, how)
    send(life, 10, b"000060")
    life.turns(3, each_ms=400)
    wanted = sorted(range(60), key=lambda number: (delays[number], number))
    assert life.bodies() == [b"000060"] + [b"%06d" % number for number in wanted]


def test_several_segments(tmp_path: Path) -> None:
    life = Life(tmp_path / "log", segment_bytes=1_500)
    declare(life)
    life.declare("q")
    life.client.call("Queue.Bind", queue="q", exchange="x", routing_key="k")
    for number in range(100):
        send(life, HOUR_MS if number % 3 else 100, b"%06d" % number)
        life.write()
    life.turns(3, each_ms=100)
    life.crash()
    life.turns(5)
    assert life.bodies() == [b"%06d" % number for number in range(0, 100, 3)]
    life.turns(5, each_ms=HOUR_MS)
    assert life.bodies() == [b"%06d" % number for number in range(100) if number % 3]
    life.abandon()


@pytest.mark.parametrize("more", [{}, {"priority": 3}])
def test_nothing_goes_out_before_all_is_known(tmp_path: Path, more: dict[str, Any]) -> None:
    """After a start the last ones that are read may be the first that are due."""
    life = Life(tmp_path / "log", segment_bytes=4_000)
    declare(life)
    life.declare("q")
    life.client.call("Queue.Bind", queue="q", exchange="x", routing_key="k")
    count = 300
    for number in range(count):
        send(life, HOUR_MS - number, b"%06d" % number, **more)
        life.turns(1)
    life.write()
    assert len(life.files()) > 3
    life.stop()
    life.clock.advance(HOUR_MS)
    life.open()
    life.turns(10)
    assert life.bodies() == numbered(count)[::-1]
    life.abandon()


def test_a_transaction_waits_as_a_whole(life: Life) -> None:
    life.client.call("Tx.Select")
    for number in range(5):
        send(life, 1_000 - number * 100, b"%d" % number)
    life.crash()
    life.turns()
    assert held(life).ready_count == 0
    life.client.call("Tx.Select")
    for number in range(5):
        send(life, 1_000 - number * 100, b"%d" % number)
    life.client.send("Tx.Commit")
    end(life, "crash")
    life.turns(3, each_ms=500)
    assert life.bodies() == [b"4", b"3", b"2", b"1", b"0"]


def test_transient_ones_end_with_the_process(life: Life) -> None:
    send(life, 1_000, b"kept")
    send(life, 1_000, b"lost", delivery_mode=1)
    declare(life, "passing", durable=False)
    send(life, 1_000, b"lost too", exchange="passing")
    end(life, "restart")
    life.turns(2, each_ms=1_000)
    assert life.bodies() == [b"kept"]
    assert "passing" not in life.broker.vhosts["/"].exchanges
    assert len(life.broker.vhosts["/"].inner_queues) == 1


@pytest.mark.parametrize("how", ENDS)
def test_nothing_is_left_of_a_deleted_exchange(life: Life, how: str) -> None:
    send(life, 1_000)
    life.write()
    life.client.call("Exchange.Delete", exchange="x")
    end(life, how)
    assert life.broker.vhosts["/"].inner_queues == {}
    assert all(not segment.unsettled for segment in life.store.segments.values())
    declare(life)
    life.turns(2, each_ms=1_000)
    assert (held(life).ready_count, life.drain()) == (0, [])


def test_what_waits_leaves_memory_and_comes_back(life: Life) -> None:
    for number in range(50):
        send(life, 10_000, b"%06d" % number + bytes(2_000))
    life.write()
    before = life.broker.memory.resident_bytes
    list(held(life).page_out(0, transient=False))
    assert life.broker.memory.resident_bytes < before - 100_000
    life.turns(10, each_ms=900)
    assert life.queue("q").ready_count == 0
    assert life.broker.memory.resident_bytes > before - 1_000, "they are due soon"
    list(held(life).page_out(0, transient=False))
    assert life.broker.memory.resident_bytes > before - 1_000
    life.turns(2, each_ms=1_000)
    assert [body[:6] for body in life.bodies()] == numbered(50)


def test_what_is_due_at_once_comes_from_disk(life: Life) -> None:
    """A clock that jumps leaves no time to read ahead."""
    for number in range(50):
        send(life, 10_000, b"%06d" % number)
    life.write()
    list(held(life).page_out(0, transient=False))
    life.turns(6, each_ms=10_000)
    assert life.bodies() == numbered(50)


def test_the_pager_knows_what_waits(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warrenmq.core.resources.pager.KEPT_BUDGET_BYTES", 50_000)
    for number in range(100):
        send(life, HOUR_MS, b"%06d" % number + bytes(2_000))
        life.turns(1)
    life.write()
    assert life.broker.memory.resident_bytes < 100 * 2_000


def test_each_message_is_in_one_place_whenever_it_ends(tmp_path: Path) -> None:
    """Released and settled are one: killed at any moment, none is lost and none comes twice."""
    chance = random.Random(1)
    life = Life(tmp_path / "log", segment_bytes=3_000)
    declare(life)
    life.declare("q")
    life.client.call("Queue.Bind", queue="q", exchange="x", routing_key="k")
    life.write()
    sent = 0
    for _ in range(25):
        for _ in range(chance.randrange(8)):
            send(life, chance.randrange(1, 200), b"%06d" % sent)
            sent += 1
        life.write()
        for _ in range(chance.randrange(4)):
            life.clock.advance(chance.randrange(60))
            life.broker.tick()
            for _ in range(chance.randrange(4)):
                life.broker.turn()
        life.crash()
        life.turns(2)
    life.turns(4, each_ms=200)
    assert sorted(life.bodies()) == numbered(sent)
    life.abandon()
