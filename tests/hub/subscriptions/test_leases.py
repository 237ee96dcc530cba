from __future__ import annotations

from warrenmq.core.clock import ManualClock
from warrenmq.hub.subscriptions.leases import Leases
from warrenmq.hub.subscriptions.subscription import Subscription

from ..support import NEWS


def lease(name: str, clock: ManualClock, seconds: int) -> Subscription:
    return Subscription(
        id=name,
        source=NEWS,
        topic="#",
        callback="http://a.b/",
        lease_seconds=seconds,
        expires_at=clock.wall_s() + seconds,
        owner="guest",
    )


def test_leases_end_in_order_and_once() -> None:
    clock = ManualClock()
    leases = Leases(clock)
    assert leases.next_s() is None
    for name, seconds in (("b", 20), ("a", 10), ("c", 30)):
        leases.hold(lease(name, clock, seconds))
    assert leases.next_s() == 10
    clock.advance(20_000)
    assert leases.take_expired() == ["a", "b"]
    assert leases.take_expired() == []
    assert leases.next_s() == 10


def test_a_renewed_lease_ends_at_its_new_time() -> None:
    clock = ManualClock()
    leases = Leases(clock)
    leases.hold(lease("a", clock, 10))
    leases.hold(lease("a", clock, 60))
    clock.advance(10_000)
    assert leases.take_expired() == []
    clock.advance(50_000)
    assert leases.take_expired() == ["a"]


def test_a_dropped_lease_does_not_end() -> None:
    clock = ManualClock()
    leases = Leases(clock)
    leases.hold(lease("a", clock, 10))
    leases.drop("a")
    assert leases.next_s() is None
    clock.advance(10_000)
    assert leases.take_expired() == []


def test_a_wall_clock_that_jumps_ends_nothing() -> None:
    clock = ManualClock()
    leases = Leases(clock)
    leases.hold(lease("a", clock, 10))
    clock.step(10 * 365 * 86_400)
    assert leases.take_expired() == []


def test_a_deadline_beyond_the_lease_is_cut_to_it() -> None:
    # The wall clock was set back between two runs.
    clock = ManualClock()
    held = lease("a", clock, 10)
    clock.step(-1_000)
    leases = Leases(clock)
    leases.hold(held)
    assert leases.next_s() == 10
