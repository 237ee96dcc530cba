from __future__ import annotations

import asyncio

from warrenmq.core.clock import ManualClock
from warrenmq.hub.topics.agenda import Agenda


def test_keys_are_given_once_when_their_time_has_come() -> None:
    clock = ManualClock()
    agenda = Agenda(clock)
    agenda.plan("a", 2.0)
    agenda.plan("b", 1.0)
    assert agenda.take() == []
    clock.advance(1_000)
    assert agenda.take() == ["b"]
    clock.advance(1_000)
    assert (agenda.take(), agenda.take(), len(agenda)) == (["a"], [], 0)


def test_the_last_plan_counts() -> None:
    clock = ManualClock()
    agenda = Agenda(clock)
    agenda.plan("sooner", 9.0)
    agenda.plan("sooner", 1.0)
    agenda.plan("later", 1.0)
    agenda.plan("later", 9.0)
    agenda.plan("never", 1.0)
    agenda.drop("never")
    clock.advance(1_000)
    assert agenda.take() == ["sooner"]
    clock.advance(8_000)
    assert agenda.take() == ["later"]


async def test_waiting_ends_with_a_new_plan_and_at_its_time() -> None:
    agenda = Agenda(ManualClock())
    agenda.plan("far", 1_000.0)
    waiting = asyncio.create_task(agenda.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    agenda.plan("now", 0.0)
    await waiting
    assert agenda.take() == ["now"]
    agenda.plan("soon", 0.01)
    await agenda.wait()
    await agenda.wait()
