from __future__ import annotations

from dataclasses import replace

from tests.hub.delivery.test_concurrency import Handed, active
from tests.hub.support import until
from warrenmq.hub.delivery.overload import Overload
from warrenmq.hub.delivery.suspensions import Suspensions
from warrenmq.hub.subscriptions.active import ActiveSubscription
from warrenmq.hub.subscriptions.options import Options
from warrenmq.hub.subscriptions.subscription import Status


class Given(Handed):
    def __init__(self, steps: list[str]) -> None:
        self._steps = steps

    def nack(self, *, requeue: bool) -> None:
        assert requeue
        self._steps.append("back")


class Rig:
    def __init__(self, options: Options, status: Status = Status.ACTIVE) -> None:
        self.steps: list[str] = []
        self.active = active()
        self.active.subscription = replace(self.active.subscription, options=options, status=status)
        self.overload = Overload(Suspensions(self._suspend, self._resume))

    def turn_away(self, count: int) -> None:
        for _ in range(count):
            self.overload.turn_away(self.active, Given(self.steps))

    async def _suspend(self, active: ActiveSubscription) -> None:
        self.steps.append("suspend")

    async def _resume(self, active: ActiveSubscription) -> None:
        self.steps.append("resume")


async def test_all_go_back_while_nothing_is_consumed() -> None:
    rig = Rig(Options(in_flight=3))
    rig.turn_away(3)
    assert rig.active in rig.overload and rig.steps == []
    await until(lambda: len(rig.steps) == 5, "resume")
    assert rig.steps == ["suspend", "back", "back", "back", "resume"]
    assert rig.active.is_single and rig.active not in rig.overload


async def test_a_strict_order_is_asked_again() -> None:
    rig = Rig(Options(strict_order=True))
    rig.turn_away(1)
    await until(lambda: len(rig.steps) == 3, "resume")
    assert rig.steps == ["suspend", "back", "resume"] and not rig.active.is_single


async def test_who_is_paused_is_not_resumed() -> None:
    rig, other = Rig(Options(in_flight=3), Status.PAUSED), Rig(Options(in_flight=3))
    rig.turn_away(2)
    other.turn_away(1)
    await until(lambda: len(other.steps) == 3, "resume of another")
    assert rig.steps == ["back", "back"] and not rig.active.is_single


async def test_what_has_not_gone_back_can_be_taken() -> None:
    rig = Rig(Options(in_flight=3))
    rig.turn_away(2)
    assert len(rig.overload.take_all()) == 2 and rig.active not in rig.overload
    await rig.overload.stop()
    assert "back" not in rig.steps
