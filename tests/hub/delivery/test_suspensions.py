from __future__ import annotations

import pytest

from tests.hub.delivery.test_concurrency import active
from tests.hub.support import until
from warrenmq.hub.delivery.breaker import BreakerState
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

    async def later(self) -> list[str]:
        """The steps that were taken until a suspension of another ends."""
        other = Rig()
        other.suspensions.end_in(other.active, 0.03)
        await until(lambda: bool(other.steps), "a later resume")
        return self.steps


async def test_its_end_half_opens_the_breaker() -> None:
    rig = Rig()
    breaker = rig.active.failed("status 500", 1.0).breaker
    for now_s in range(10):
        breaker.failed(now_s)
    rig.suspensions.end_in(rig.active, 0.01)
    await until(lambda: bool(rig.steps), "resume")
    assert rig.active.breaker_state is BreakerState.HALF_OPEN


STORIES = {
    "in 0.01, in 3600": [],
    "in 0.01, now": ["suspend", "resume"],
    "in 0, stop, in 0, now": [],
    "in 0.01, begin": ["suspend"],
    "in 3600, now, begin": ["suspend"],
    "begin, begun": ["suspend", "resume"],
    "begin, in 3600, begun": ["suspend"],
    "begun": [],
}


@pytest.mark.parametrize("story", STORIES)
async def test_the_last_end_counts(story: str) -> None:
    rig = Rig()
    suspensions = rig.suspensions
    for step in story.split(", "):
        if step.startswith("in "):
            suspensions.end_in(rig.active, float(step[3:]))
        elif step == "begin":
            await suspensions.begin(rig.active)
        elif step == "stop":
            await suspensions.stop()
        else:
            {"now": suspensions.end_now, "begun": suspensions.end_open}[step](rig.active)
    assert await rig.later() == STORIES[story]
    await suspensions.stop()
