from __future__ import annotations

from dataclasses import replace

from tests.hub.deliver.test_lanes import Handed, live
from tests.hub.support import until
from warrenmq.hub.deliver.holds import Holds
from warrenmq.hub.deliver.surplus import Surplus
from warrenmq.hub.subscriptions.live import Live
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
        self.live = live()
        self.live.subscription = replace(self.live.subscription, options=options, status=status)
        self.surplus = Surplus(Holds(self._suspend, self._resume))

    def turn_away(self, count: int) -> None:
        for _ in range(count):
            self.surplus.turn_away(self.live, Given(self.steps))

    async def _suspend(self, live: Live) -> None:
        self.steps.append("suspend")

    async def _resume(self, live: Live) -> None:
        self.steps.append("resume")


async def test_all_go_back_while_nothing_is_consumed() -> None:
    rig = Rig(Options(in_flight=3))
    rig.turn_away(3)
    assert rig.live in rig.surplus and rig.steps == []
    await until(lambda: len(rig.steps) == 5, "resume")
    assert rig.steps == ["suspend", "back", "back", "back", "resume"]
    assert rig.live.is_single and rig.live not in rig.surplus


async def test_a_strict_order_is_asked_again() -> None:
    rig = Rig(Options(strict_order=True))
    rig.turn_away(1)
    await until(lambda: len(rig.steps) == 3, "resume")
    assert rig.steps == ["suspend", "back", "resume"] and not rig.live.is_single


async def test_who_is_paused_is_not_resumed() -> None:
    rig, other = Rig(Options(in_flight=3), Status.PAUSED), Rig(Options(in_flight=3))
    rig.turn_away(2)
    other.turn_away(1)
    await until(lambda: len(other.steps) == 3, "resume of another")
    assert rig.steps == ["back", "back"] and not rig.live.is_single


async def test_what_has_not_gone_back_can_be_taken() -> None:
    rig = Rig(Options(in_flight=3))
    rig.turn_away(2)
    assert len(rig.surplus.take_all()) == 2 and rig.live not in rig.surplus
    await rig.surplus.stop()
    assert "back" not in rig.steps
