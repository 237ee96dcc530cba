from __future__ import annotations

import asyncio

from warrenmq.core.clock import ManualClock
from warrenmq.hub.deadlines import Deadlines


def test_keys_are_due_once_and_the_earliest_first() -> None:
    clock = ManualClock()
    deadlines = Deadlines(clock)
    assert deadlines.next_s() is None
    for key, delay_s in (("b", 2.0), ("a", 1.0), ("c", 3.0)):
        deadlines.set(key, delay_s)
    assert (deadlines.take_due(), deadlines.next_s()) == ([], 1.0)
    clock.advance(2_000)
    assert deadlines.take_due() == ["a", "b"]
    assert (deadlines.take_due(), deadlines.next_s(), len(deadlines)) == ([], 1.0, 1)


def test_the_last_deadline_of_a_key_counts() -> None:
    clock = ManualClock()
    deadlines = Deadlines(clock)
    deadlines.set("sooner", 9.0)
    deadlines.set("sooner", 1.0)
    deadlines.set("later", 1.0)
    deadlines.set("later", 9.0)
    deadlines.set("removed", 1.0)
    deadlines.remove("removed")
    clock.advance(1_000)
    assert deadlines.take_due() == ["sooner"]
    clock.advance(8_000)
    assert deadlines.take_due() == ["later"]


def test_a_wall_clock_that_jumps_ends_nothing() -> None:
    clock = ManualClock()
    deadlines = Deadlines(clock)
    deadlines.set("a", 10.0)
    clock.step(10 * 365 * 86_400)
    assert deadlines.take_due() == []


async def test_waiting_ends_with_a_new_deadline_and_when_one_has_passed() -> None:
    deadlines = Deadlines(ManualClock())
    deadlines.set("far", 1_000.0)
    waiting = asyncio.create_task(deadlines.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    deadlines.set("now", 0.0)
    await waiting
    assert deadlines.take_due() == ["now"]
    deadlines.set("soon", 0.01)
    await deadlines.wait()
    await deadlines.wait()
