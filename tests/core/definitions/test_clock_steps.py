"""Steps of the wall clock, which must not change the ages of messages."""

from __future__ import annotations

from collections.abc import Iterator
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
    life.broker.clock_steps.check()
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
def test_a_ttl_by_policy_counts_from_arrival_over_a_clock_step(life: Life, step_s: float) -> None:
    life.declare("q")
    fill(life, "q")
    life.page_out()
    life.clock.step(step_s)
    life.queue("q").apply(Rules(message_ttl_ms=10 * MINUTE_MS))
    life.turns(4)
    assert times_out(life, "q", 10 * MINUTE_MS - 120)


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("step_s", STEPS_S)
def test_a_ttl_continues_after_a_clock_step_and_a_start(
    life: Life, step_s: float, how: str
) -> None:
    life.declare("q", arguments={"x-message-ttl": 10 * MINUTE_MS})
    life.clock.step(step_s)
    fill(life, "q")
    end(life, how)
    assert times_out(life, "q", 10 * MINUTE_MS - 240)


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("step_s", STEPS_S)
def test_clock_steps_of_several_starts_add_up(life: Life, step_s: float, how: str) -> None:
    life.declare("q", arguments={"x-message-ttl": 10 * MINUTE_MS})
    for _ in range(3):
        life.clock.step(step_s)
        fill(life, "q")
        end(life, how)
    assert life.queue("q").ready_count == 15


def test_without_a_clock_step_nothing_is_stored(life: Life) -> None:
    before = dict(life.broker.store.definitions)
    life.turns(10, each_ms=997)
    life.broker.clock_steps.check()
    assert life.broker.store.definitions == before


@pytest.mark.parametrize("step_s", STEPS_S)
def test_stream_retention_continues_after_a_clock_step(life: Life, step_s: float) -> None:
    life.declare("s", arguments={"x-queue-type": "stream", "x-max-age": "10m"})
    fill(life, "s")
    life.clock.step(step_s)
    end(life, "restart")
    life.turns(3, each_ms=MINUTE_MS)
    assert life.queue("s").ready_count == 5


def test_a_step_is_logged_once(life: Life, caplog: pytest.LogCaptureFixture) -> None:
    for step_s in (9, HOUR_S, -HOUR_S):
        life.clock.step(step_s)
        life.broker.clock_steps.check()
        life.broker.clock_steps.check()
    end(life, "restart")
    life.broker.clock_steps.check()
    steps = [line.split(" was set ")[1].split(",")[0] for line in caplog.messages]
    assert steps == ["forward by 3600 s", "back by 3600 s"]
