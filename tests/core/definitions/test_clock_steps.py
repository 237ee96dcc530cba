"""The wall clock is stepped while messages wait: nothing ages by it, nor after the next start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.amqp import publish
from warrenmq.core.queue.rules import Rules

from ..life import PERSISTENT, Life, numbered

HOUR_S = 3_600
MINUTE_MS = 60_000
STEPS_S = [HOUR_S, -HOUR_S]
ENDS = ["restart", "crash"]


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path / "log")
    yield found
    found.abandon()


def fill(life: Life, queue: str, count: int = 5, **properties: Any) -> None:
    for body in numbered(count):
        life.client.feed(publish(1, body, {**PERSISTENT, **properties}, routing_key=queue))
    life.write()


def end(life: Life, how: str) -> None:
    life.broker.clock_steps.look()
    life.write()
    getattr(life, how)()
    life.turns()


def times_out(life: Life, queue: str, left_ms: int) -> bool:
    """Whether all five expire when so much time has passed, and nothing before."""
    count = life.queue(queue).ready_count
    life.turns(1, each_ms=left_ms - 1_000)
    before = life.queue(queue).ready_count
    life.turns(3, each_ms=1_001)
    return before == count == 5 and life.queue(queue).ready_count == 0


@pytest.mark.parametrize("step_s", STEPS_S)
def test_a_policy_ages_a_backlog_on_disk_by_the_time_that_passed(life: Life, step_s: float) -> None:
    life.declare("q")
    fill(life, "q")
    life.page_out()
    life.clock.step(step_s)
    life.queue("q").apply(Rules(message_ttl_ms=10 * MINUTE_MS))
    life.turns(4)
    assert times_out(life, "q", 10 * MINUTE_MS - 120)


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("step_s", STEPS_S)
def test_a_ttl_goes_on_behind_a_step_and_a_start(life: Life, step_s: float, how: str) -> None:
    life.declare("q", arguments={"x-message-ttl": 10 * MINUTE_MS})
    life.clock.step(step_s)
    fill(life, "q")
    end(life, how)
    assert times_out(life, "q", 10 * MINUTE_MS - 240)


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("step_s", STEPS_S)
def test_steps_of_several_lives_add_up(life: Life, step_s: float, how: str) -> None:
    life.declare("q", arguments={"x-message-ttl": 10 * MINUTE_MS})
    for _ in range(3):
        life.clock.step(step_s)
        fill(life, "q")
        end(life, how)
    assert life.queue("q").ready_count == 15


def test_a_clock_that_is_not_stepped_keeps_nothing(life: Life) -> None:
    before = dict(life.broker.store.definitions)
    life.turns(10, each_ms=997)
    life.broker.clock_steps.look()
    assert life.broker.store.definitions == before


@pytest.mark.parametrize("step_s", STEPS_S)
def test_a_stream_keeps_its_messages_for_their_time(life: Life, step_s: float) -> None:
    life.declare("s", arguments={"x-queue-type": "stream", "x-max-age": "10m"})
    fill(life, "s")
    life.clock.step(step_s)
    end(life, "restart")
    life.turns(3, each_ms=MINUTE_MS)
    assert life.queue("s").ready_count == 5


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("step_s", STEPS_S)
def test_an_id_is_known_for_its_time(life: Life, step_s: float, how: str) -> None:
    arguments = {"x-message-deduplication": True, "x-cache-size": 9, "x-cache-ttl": 10 * MINUTE_MS}
    life.declare("q", arguments=arguments)
    fill(life, "q", 1, headers={"x-deduplication-header": "a"})
    life.clock.step(step_s)
    end(life, how)
    fill(life, "q", 1, headers={"x-deduplication-header": "a"})
    assert life.queue("q").ready_count == 1
    life.turns(1, each_ms=10 * MINUTE_MS)
    fill(life, "q", 1, headers={"x-deduplication-header": "a"})
    assert life.queue("q").ready_count == 2


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("step_s", STEPS_S)
def test_a_delayed_message_is_due_when_it_was(life: Life, step_s: float, how: str) -> None:
    call: Callable[..., Any] = life.client.call
    call(
        "Exchange.Declare", exchange="x", exchange_type="x-delayed-message", durable=True,
        arguments={"x-delayed-type": "fanout"},
    )  # fmt: skip
    life.declare("q")
    call("Queue.Bind", queue="q", exchange="x")
    life.client.feed(
        publish(1, b"m", {"delivery_mode": 2, "headers": {"x-delay": 10 * MINUTE_MS}}, exchange="x")
    )
    life.write()
    life.clock.step(step_s)
    end(life, how)
    life.turns(2, each_ms=4 * MINUTE_MS)
    assert life.queue("q").ready_count == 0
    life.turns(4, each_ms=MINUTE_MS)
    assert life.queue("q").ready_count == 1
