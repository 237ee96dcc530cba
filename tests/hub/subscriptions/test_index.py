from __future__ import annotations

import pytest

from warrenmq.core.clock import ManualClock
from warrenmq.hub.owner_rights import EverybodyMay
from warrenmq.hub.subscriptions.active import ActiveSubscription
from warrenmq.hub.subscriptions.index import SubscriptionIndex
from warrenmq.hub.subscriptions.subscription import Subscription

from ..support import NEWS

LEASE_S = 10


@pytest.mark.parametrize(
    ("clock_step_s", "left_s"), [(0, LEASE_S), (-1_000, LEASE_S), (4, 6), (1_000, 0)]
)
def test_a_lease_ends_after_its_length_at_the_latest(clock_step_s: int, left_s: int) -> None:
    clock = ManualClock()
    expires_at = clock.wall_s() + LEASE_S
    subscription = Subscription(
        "a", NEWS, "#", "http://a.b/", lease_seconds=LEASE_S, expires_at=expires_at, owner="guest"
    )
    clock.step(clock_step_s)
    index = SubscriptionIndex(clock, EverybodyMay(), 1_000)
    index.enter(ActiveSubscription(subscription))
    assert index.leases.next_s() == left_s
