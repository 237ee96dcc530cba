from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.hub.deliver.test_lanes import live
from tests.hub.support import until
from warrenmq.hub.deliver.breaker import State
from warrenmq.hub.deliver.holds import Holds
from warrenmq.hub.subscriptions.live import Live


class Rig:
    def __init__(self) -> None:
        self.steps: list[str] = []
        self.live = live()
        self.holds = Holds(self._suspend, self._resume)

    async def _suspend(self, live: Live) -> None:
        self.steps.append("suspend")

    async def _resume(self, live: Live) -> None:
        self.steps.append("resume")


async def test_a_hold_ends_when_its_time_is_over() -> None:
    rig = Rig()
    await rig.holds.begin(rig.live)
    assert rig.steps == ["suspend"]
    rig.holds.end_in(rig.live, 0.01)
    await until(lambda: rig.steps == ["suspend", "resume"], "resume")


async def test_its_end_lets_the_breaker_try() -> None:
    rig = Rig()
    breaker = rig.live.failed("status 500", 1.0).breaker
    for now_s in range(10):
        breaker.failed(now_s)
    rig.holds.end_in(rig.live, 0.01)
    await until(lambda: bool(rig.steps), "resume")
    assert rig.live.breaker_state is State.HALF_OPEN


async def test_a_second_hold_replaces_the_first() -> None:
    rig = Rig()
    rig.holds.end_in(rig.live, 0.01)
    rig.holds.end_in(rig.live, 3600)
    other = live()
    rig.holds.end_in(other, 0.02)
    await until(lambda: bool(rig.steps), "resume")
    assert rig.steps == ["resume"]
    await rig.holds.stop()


async def test_consuming_anew() -> None:
    rig = Rig()
    rig.holds.end_in(rig.live, 0.01)
    rig.holds.end_now(rig.live)
    await until(lambda: len(rig.steps) == 2, "resume")
    other = live()
    rig.holds.end_in(other, 0.02)
    await until(lambda: len(rig.steps) == 3, "resume of another")
    assert rig.steps == ["suspend", "resume", "resume"]


async def test_after_a_stop_nothing_is_consumed() -> None:
    rig = Rig()
    rig.holds.end_in(rig.live, 0.0)
    await rig.holds.stop()
    rig.holds.end_in(rig.live, 0.0)
    rig.holds.end_now(rig.live)
    marker = Rig()
    marker.holds.end_in(marker.live, 0.02)
    await until(lambda: bool(marker.steps), "a later resume")
    assert rig.steps == []


async def test_what_begins_again_is_held_until_it_is_told_for_how_long() -> None:
    rig = Rig()
    rig.holds.end_in(rig.live, 0.01)
    await rig.holds.begin(rig.live)
    marker = Rig()
    marker.holds.end_in(marker.live, 0.03)
    await until(lambda: bool(marker.steps), "a later resume")
    assert rig.steps == ["suspend"]


@pytest.mark.parametrize("end", [Holds.end_now, Holds._end])
async def test_a_hold_that_begins_meanwhile_is_not_undone(
    end: Callable[[Holds, Live], None],
) -> None:
    rig = Rig()
    rig.holds.end_in(rig.live, 3600)
    end(rig.holds, rig.live)
    await rig.holds.begin(rig.live)
    marker = Rig()
    marker.holds.end_in(marker.live, 0.01)
    await until(lambda: bool(marker.steps), "a later resume")
    assert rig.steps == ["suspend"]


async def test_what_nobody_ends_any_more_ends_at_once() -> None:
    rig = Rig()
    await rig.holds.begin(rig.live)
    rig.holds.end_begun(rig.live)
    await until(lambda: rig.steps == ["suspend", "resume"], "resume")
    rig.holds.end_in(rig.live, 3600)
    rig.holds.end_begun(rig.live)
    rig.holds.end_begun(live())
    marker = Rig()
    marker.holds.end_in(marker.live, 0.01)
    await until(lambda: bool(marker.steps), "a later resume")
    assert rig.steps == ["suspend", "resume"]
