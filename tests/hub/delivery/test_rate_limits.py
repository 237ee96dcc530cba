"""Rate limits; no test measures how long anything takes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.hub.delivery.test_concurrency import Handed
from tests.hub.support import until
from warrenmq.hub.delivery.rate_limits import RateLimiter, RateLimits, origin_of
from warrenmq.hub.engine.port import Delivery
from warrenmq.hub.requests import Resource
from warrenmq.hub.settings import HubSettings
from warrenmq.hub.subscriptions.active import ActiveSubscription
from warrenmq.hub.subscriptions.options import Options
from warrenmq.hub.subscriptions.subscription import Status, Subscription

NEWS = Resource("/", "x", "news")


def active(callback: str = "http://a.b/", max_tps: int = 0) -> ActiveSubscription:
    options = Options(max_tps=max_tps)
    subscription = Subscription("1", NEWS, "#", callback, 60, 0.0, "guest", options=options)
    return ActiveSubscription(replace(subscription, status=Status.ACTIVE))


class Rig:
    def __init__(self, **settings: int) -> None:
        self.passed: list[tuple[ActiveSubscription, Delivery]] = []
        self.rate_limits = RateLimits(HubSettings(**settings), self._pass)  # type: ignore[arg-type]

    def _pass(self, active: ActiveSubscription, delivery: Delivery) -> None:
        self.passed.append((active, delivery))

    def enter(self, active: ActiveSubscription, count: int) -> list[Delivery]:
        entered: list[Delivery] = [Handed() for _ in range(count)]
        for delivery in entered:
            self.rate_limits.enter(active, delivery)
        return entered


async def test_without_limits_nothing_waits() -> None:
    rig = Rig()
    rig.enter(active(), 1_000)
    assert len(rig.passed) == 1_000 and rig.rate_limits.take_waiting() == []


async def test_a_subscription_has_its_pace_and_its_order() -> None:
    rig = Rig()
    entered = rig.enter(active(max_tps=200), 60)
    assert len(rig.passed) < 60  # 20 at once, then one every 5 ms
    await until(lambda: len(rig.passed) == 60, "pass of the last")
    assert [delivery for _, delivery in rig.passed] == entered


async def test_one_subscriptions_pace_is_not_anothers() -> None:
    rig = Rig()
    rig.enter(active(max_tps=1), 2)
    rig.enter(active(max_tps=1), 2)
    rig.enter(active(), 2)
    assert len(rig.passed) == 4


async def test_subscriptions_of_one_origin_share_its_pace() -> None:
    rig = Rig(max_rate_per_origin=1)
    for callback in ("http://a.b/1", "http://A.B:80/2", "http://other/", "https://a.b/"):
        rig.enter(active(callback), 2)
    assert [one.subscription.callback for one, _ in rig.passed] == [
        "http://a.b/1", "http://other/", "https://a.b/",
    ]  # fmt: skip


async def test_the_pace_of_all() -> None:
    rig = Rig(max_rate=1)
    for callback in ("http://a.b/1", "http://other/"):
        rig.enter(active(callback), 1)
    assert len(rig.passed) == 1


async def test_who_waits_for_the_own_pace_takes_none_of_the_origins() -> None:
    rig = Rig(max_rate_per_origin=20)
    rig.enter(active("http://a.b/1", max_tps=1), 10)
    rig.enter(active("http://a.b/2"), 1)
    assert len(rig.passed) == 2


async def test_what_waits_can_be_taken_back() -> None:
    rig = Rig(max_rate_per_origin=1, max_rate=1)
    entered = [
        *rig.enter(active("http://a.b/1", max_tps=1), 2),
        *rig.enter(active("http://a.b/1"), 2),
        *rig.enter(active("http://c.d/1"), 2),
    ]
    taken = [delivery for _, delivery in rig.rate_limits.take_waiting()]
    assert {*taken, *(delivery for _, delivery in rig.passed)} == set(entered)
    assert len(taken) == 5
    await asyncio.sleep(0)
    assert len(rig.passed) == 1


async def test_a_renewal_changes_the_pace() -> None:
    rig = Rig()
    limited = active(max_tps=1)
    rig.enter(limited, 1)
    limited.subscription = replace(limited.subscription, options=Options(max_tps=1_000))
    rig.enter(limited, 50)
    assert len(rig.passed) == 51
    limited.subscription = replace(limited.subscription, options=Options())
    rig.enter(limited, 500)
    assert len(rig.passed) == 551 and limited.rate_limiter is None


async def test_a_renewal_lets_those_pass_that_wait() -> None:
    rig = Rig()
    for rate in (1_000, 0):
        limited = active(max_tps=1)
        before = len(rig.passed)
        entered = rig.enter(limited, 20)
        assert len(rig.passed) == before + 1
        limited.subscription = replace(limited.subscription, options=Options(max_tps=rate))
        entered += rig.enter(limited, 1)
        assert [delivery for _, delivery in rig.passed[before:]] == entered


async def test_what_is_paused_or_over_waits_for_no_pace() -> None:
    rig = Rig(max_rate_per_origin=20, max_rate=1)
    paused, over, other = active(max_tps=20), active(), active("http://other/")
    rig.enter(other, 2)
    for one in (paused, over):
        rig.enter(one, 5)
    paused.subscription = replace(paused.subscription, status=Status.PAUSED)
    over.is_over = True
    rig.enter(paused, 5)
    assert [one for one, _ in rig.passed] == [other]
    await until(lambda: len(rig.passed) == 17, "what goes back, at the next tick of the limiter")
    assert [one for one, _ in rig.passed if one.takes()] == [other, other]


async def test_origins_with_nothing_to_remember_are_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("warrenmq.hub.delivery.rate_limits.MAX_ORIGINS", 2)
    rig = Rig(max_rate_per_origin=1_000)
    for number in range(10):
        rig.enter(active(f"http://host{number}/"), 1)
        await asyncio.sleep(0.002)
    assert len(rig.passed) == 10 and len(rig.rate_limits._origins) <= 3


async def test_a_gate_counts_idle_when_a_new_one_would_be_the_same() -> None:
    passed: list[Delivery] = []
    limiter = RateLimiter(1, lambda _, delivery: passed.append(delivery))
    assert limiter.is_idle()
    limiter.enter(active(), Handed())
    assert not limiter.is_idle()


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://a.b/x", "http://a.b:80"),
        ("HTTP://A.B:80", "http://a.b:80"),
        ("https://a.b:8443/?x", "https://a.b:8443"),
        ("http://[::1]/", "http://::1:80"),
    ],
)
def test_origins(url: str, origin: str) -> None:
    assert origin_of(url) == origin
