"""Rate limits; no test measures how long anything takes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.hub.delivery.test_concurrency import Handed
from tests.hub.support import subscription, until
from tests.support.settings import hub_settings
from warrenmq.hub.delivery.rate_limits import RateLimits, origin_of
from warrenmq.hub.engine.port import Delivery
from warrenmq.hub.requests import Resource
from warrenmq.hub.subscriptions.active import ActiveSubscription
from warrenmq.hub.subscriptions.options import Options
from warrenmq.hub.subscriptions.subscription import SubscriptionStatus

NEWS = Resource("/", "x", "news")


def active(callback: str = "http://a.b/", max_tps: int = 0) -> ActiveSubscription:
    options = Options(max_tps=max_tps)
    status = SubscriptionStatus.ACTIVE
    return ActiveSubscription(subscription(callback=callback, options=options, status=status))


class Rig:
    def __init__(self, **settings: int) -> None:
        self.passed: list[tuple[ActiveSubscription, Delivery]] = []
        self.rate_limits = RateLimits(hub_settings(**settings), self._pass)

    def _pass(self, active: ActiveSubscription, delivery: Delivery) -> None:
        self.passed.append((active, delivery))

    def enter(self, active: ActiveSubscription, count: int) -> list[Delivery]:
        entered: list[Delivery] = [Handed() for _ in range(count)]
        for delivery in entered:
            self.rate_limits.enter(active, delivery)
        return entered


async def test_a_limit_keeps_the_order() -> None:
    rig = Rig()
    entered = rig.enter(active(max_tps=200), 60)
    assert len(rig.passed) < 60  # 20 at once, then one every 5 ms
    await until(lambda: len(rig.passed) == 60, "pass of the last")
    assert [delivery for _, delivery in rig.passed] == entered


A, B, OTHER = "http://a.b/1", "http://A.B:80/2", "http://other/"


@pytest.mark.parametrize(
    ("settings", "entered", "passed"),
    [
        ({}, [(A, 1, 2), (A, 1, 2), (A, 0, 2)], [A, A, A, A]),
        (
            {"max_rate_per_origin": 1},
            [(A, 0, 2), (B, 0, 2), (OTHER, 0, 2), ("https://a.b/", 0, 2)],
            [A, OTHER, "https://a.b/"],
        ),
        ({"max_rate": 1}, [(A, 0, 1), (OTHER, 0, 1)], [A]),
        # Deliveries that wait for their subscription's limit take no token of its origin.
        ({"max_rate_per_origin": 20}, [(A, 1, 10), (B, 0, 1)], [A, B]),
    ],
    ids=["subscription", "origin", "all", "subscription and origin"],
)
async def test_limits_apply_per_subscription_per_origin_and_in_all(
    settings: dict[str, int], entered: list[tuple[str, int, int]], passed: list[str]
) -> None:
    rig = Rig(**settings)
    for callback, max_tps, count in entered:
        rig.enter(active(callback, max_tps), count)
    assert [one.subscription.callback for one, _ in rig.passed] == passed


async def test_take_waiting_returns_all_waiting_deliveries() -> None:
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


async def test_a_renewal_changes_the_rate() -> None:
    rig = Rig()
    limited = active(max_tps=1)
    rig.enter(limited, 1)
    limited.subscription = replace(limited.subscription, options=Options(max_tps=1_000))
    rig.enter(limited, 50)
    assert len(rig.passed) == 51
    limited.subscription = replace(limited.subscription, options=Options())
    rig.enter(limited, 500)
    assert len(rig.passed) == 551 and limited.rate_limiter is None


async def test_a_renewal_lets_waiting_deliveries_pass() -> None:
    rig = Rig()
    for rate in (1_000, 0):
        limited = active(max_tps=1)
        before = len(rig.passed)
        entered = rig.enter(limited, 20)
        assert len(rig.passed) == before + 1
        limited.subscription = replace(limited.subscription, options=Options(max_tps=rate))
        entered += rig.enter(limited, 1)
        assert [delivery for _, delivery in rig.passed[before:]] == entered


async def test_inactive_subscriptions_need_no_token() -> None:
    rig = Rig(max_rate_per_origin=20, max_rate=1)
    paused, over, other = active(max_tps=20), active(), active("http://other/")
    rig.enter(other, 2)
    for one in (paused, over):
        rig.enter(one, 5)
    paused.change(replace(paused.subscription, status=SubscriptionStatus.PAUSED))
    over.state.end()
    rig.enter(paused, 5)
    assert [one for one, _ in rig.passed] == [other]
    await until(lambda: len(rig.passed) == 17, "what goes back, at the next tick of the limiter")
    assert [one for one, _ in rig.passed if one.state.takes()] == [other, other]


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://a.b/x", "http://a.b:80"),
        ("HTTP://A.B:80", "http://a.b:80"),
        ("http://A.B./x", "http://a.b:80"),
        ("https://a.b:8443/?x", "https://a.b:8443"),
        ("http://[::1]/", "http://::1:80"),
    ],
)
def test_origins(url: str, origin: str) -> None:
    assert origin_of(url) == origin
