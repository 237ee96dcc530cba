from __future__ import annotations

import asyncio

from warrenmq.core.clock import ManualClock
from warrenmq.hub.topics.schedule import Schedule


def test_keys_are_given_once_when_their_time_has_come() -> None:
    clock = ManualClock()
    schedule = Schedule(clock)
    schedule.plan("a", 2.0)
    schedule.plan("b", 1.0)
    assert schedule.take() == []
    clock.advance(1_000)
    assert schedule.take() == ["b"]
    clock.advance(1_000)
    assert (schedule.take(), schedule.take(), len(schedule)) == (["a"], [], 0)


def test_the_last_plan_counts() -> None:
    clock = ManualClock()
    schedule = Schedule(clock)
    schedule.plan("sooner", 9.0)
    schedule.plan("sooner", 1.0)
    schedule.plan("later", 1.0)
    schedule.plan("later", 9.0)
    schedule.plan("never", 1.0)
    schedule.drop("never")
    clock.advance(1_000)
    assert schedule.take() == ["sooner"]
    clock.advance(8_000)
    assert schedule.take() == ["later"]


async def test_waiting_ends_with_a_new_plan_and_at_its_time() -> None:
    schedule = Schedule(ManualClock())
    schedule.plan("far", 1_000.0)
    waiting = asyncio.create_task(schedule.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    schedule.plan("now", 0.0)
    await waiting
    assert schedule.take() == ["now"]
    schedule.plan("soon", 0.01)
    await schedule.wait()
    await schedule.wait()
