from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.hub.delivery.test_concurrency import active
from tests.hub.support import until
from warrenmq.hub.delivery.breaker import State
from warrenmq.hub.delivery.suspensions import Suspensions
from warrenmq.hub.subscriptions.active import ActiveSubscription


class Rig:
    def __init__(self) -> None:
        self.steps: list[str] = []
        self.active = active()
        self.suspensions = Suspensions(self._suspend, self._resume)

    async def _suspend(self, active: ActiveSubscription) -> None:
        self.steps.append("suspend")

    async def _resume(self, active: ActiveSubscription) -> None:
        self.steps.append("resume")


async def test_a_hold_ends_when_its_time_is_over() -> None:
    rig = Rig()
    await rig.suspensions.begin(rig.active)
    assert rig.steps == ["suspend"]
    rig.suspensions.end_in(rig.active, 0.01)
    await until(lambda: rig.steps == ["suspend", "resume"], "resume")


async def test_its_end_lets_the_breaker_try() -> None:
    rig = Rig()
    breaker = rig.active.failed("status 500", 1.0).breaker
    for now_s in range(10):
        breaker.failed(now_s)
    rig.suspensions.end_in(rig.active, 0.01)
    await until(lambda: bool(rig.steps), "resume")
    assert rig.active.breaker_state is State.HALF_OPEN


async def test_a_second_hold_replaces_the_first() -> None:
    rig = Rig()
    rig.suspensions.end_in(rig.active, 0.01)
    rig.suspensions.end_in(rig.active, 3600)
    other = active()
    rig.suspensions.end_in(other, 0.02)
    await until(lambda: bool(rig.steps), "resume")
    assert rig.steps == ["resume"]
    await rig.suspensions.stop()


async def test_consuming_anew() -> None:
    rig = Rig()
    rig.suspensions.end_in(rig.active, 0.01)
    rig.suspensions.end_now(rig.active)
    await until(lambda: len(rig.steps) == 2, "resume")
    other = active()
    rig.suspensions.end_in(other, 0.02)
    await until(lambda: len(rig.steps) == 3, "resume of another")
    assert rig.steps == ["suspend", "resume", "resume"]


async def test_after_a_stop_nothing_is_consumed() -> None:
    rig = Rig()
    rig.suspensions.end_in(rig.active, 0.0)
    await rig.suspensions.stop()
    rig.suspensions.end_in(rig.active, 0.0)
    rig.suspensions.end_now(rig.active)
    marker = Rig()
    marker.suspensions.end_in(marker.active, 0.02)
    await until(lambda: bool(marker.steps), "a later resume")
    assert rig.steps == []


async def test_what_begins_again_is_held_until_it_is_told_for_how_long() -> None:
    rig = Rig()
    rig.suspensions.end_in(rig.active, 0.01)
    await rig.suspensions.begin(rig.active)
    marker = Rig()
    marker.suspensions.end_in(marker.active, 0.03)
    await until(lambda: bool(marker.steps), "a later resume")
    assert rig.steps == ["suspend"]


@pytest.mark.parametrize("end", [Suspensions.end_now, Suspensions._end])
async def test_a_hold_that_begins_meanwhile_is_not_undone(
    end: Callable[[Suspensions, ActiveSubscription], None],
) -> None:
    rig = Rig()
    rig.suspensions.end_in(rig.active, 3600)
    end(rig.suspensions, rig.active)
    await rig.suspensions.begin(rig.active)
    marker = Rig()
    marker.suspensions.end_in(marker.active, 0.01)
    await until(lambda: bool(marker.steps), "a later resume")
    assert rig.steps == ["suspend"]


async def test_what_nobody_ends_any_more_ends_at_once() -> None:
    rig = Rig()
    await rig.suspensions.begin(rig.active)
    rig.suspensions.end_begun(rig.active)
    await until(lambda: rig.steps == ["suspend", "resume"], "resume")
    rig.suspensions.end_in(rig.active, 3600)
    rig.suspensions.end_begun(rig.active)
    rig.suspensions.end_begun(active())
    marker = Rig()
    marker.suspensions.end_in(marker.active, 0.01)
    await until(lambda: bool(marker.steps), "a later resume")
    assert rig.steps == ["suspend", "resume"]
