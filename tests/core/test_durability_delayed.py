"""Delayed messages through crashes and restarts."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.support.amqp import publish
from warrenmq.core.queue.delay import DelayQueue

from .life import Life, numbered, segments_of

pytestmark = pytest.mark.promise

HOUR_MS = 3_600_000
ENDS = ["crash", "restart"]


@pytest.fixture
def life(life: Life) -> Life:
    """With the delayed exchange `x`, to which the queue is bound."""
    declare(life)
    life.client.call("Queue.Bind", queue="q", exchange="x", routing_key="k")
    life.write()
    return life


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


@pytest.mark.parametrize("how", ENDS)
def test_restart_keeps_the_remaining_delay(life: Life, how: str) -> None:
    send(life, HOUR_MS)
    life.clock.advance(HOUR_MS - 1_000)
    end(life, how)
    life.turns(1, each_ms=1_000 - 130)  # 120 have passed in `end`
    assert (held(life).ready_count, life.queue("q").ready_count) == (1, 0)
    life.turns(1, each_ms=20)
    assert life.drain() == [(b"m", False)]
    end(life, how)
    assert (held(life).ready_count, life.drain()) == (0, [])


@pytest.mark.parametrize(
    ("set_by_s", "left_ms"), [(-86_400 * 365, 60_000), (-30, 60_000), (30, 30_000), (86_400, 0)]
)
def test_clock_set_at_the_start_leaves_at_most_the_whole_delay(
    life: Life, set_by_s: float, left_ms: int
) -> None:
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


@pytest.mark.parametrize("more", [{}, {"priority": 3}])
@segments_of(4_000)
def test_nothing_is_released_before_all_messages_are_read(life: Life, more: dict[str, Any]) -> None:
    """After a start the last ones that are read may be the first that are due."""
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


def test_delayed_messages_are_paged_out_and_in(life: Life) -> None:
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


def test_messages_due_together_are_read_from_disk(life: Life) -> None:
    """A clock that jumps leaves no time to read ahead."""
    for number in range(50):
        send(life, 10_000, b"%06d" % number)
    life.write()
    list(held(life).page_out(0, transient=False))
    life.turns(6, each_ms=10_000)
    assert life.bodies() == numbered(50)


def test_the_pager_pages_out_delayed_messages(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warrenmq.core.resources.pager.KEPT_BUDGET_BYTES", 50_000)
    for number in range(100):
        send(life, HOUR_MS, b"%06d" % number + bytes(2_000))
        life.turns(1)
    life.write()
    assert life.broker.memory.resident_bytes < 100 * 2_000


@segments_of(3_000)
def test_kill_during_release_neither_loses_nor_repeats(life: Life) -> None:
    """Released and settled are one: killed at any moment, none is lost and none comes twice."""
    chance = random.Random(1)
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
