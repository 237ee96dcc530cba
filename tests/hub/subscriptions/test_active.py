from __future__ import annotations

from tests.hub.support import subscription
from warrenmq.hub.delivery.breaker import BreakerState
from warrenmq.hub.delivery.failure_state import Blocking
from warrenmq.hub.subscriptions.active import ActiveSubscription


def made() -> ActiveSubscription:
    return ActiveSubscription(subscription())


def test_no_failure_state_without_a_failure() -> None:
    active = made()
    active.succeeded(5.0)
    assert active.failure_state is None and active.last_success_at == 5.0
    assert (active.error_count, active.breaker_state) == (0, BreakerState.CLOSED)


def test_begin_anew_resets_breaker_and_failures() -> None:
    active = made()
    failure_state = active.failed("status 500", 1.0)
    for now_s in range(10):
        failure_state.breaker.failed(now_s)
    active.blocking = Blocking("msg_1", 3, 1_700_000_000.0, "status 500")
    active.begin_anew()
    assert active.breaker_state is BreakerState.CLOSED and active.error_count == 0
    assert active.blocking == Blocking("msg_1", 3, 0.0, "status 500")


def test_one_message_at_a_time_until_a_success() -> None:
    active = made()
    active.is_single = True
    assert active.is_probed
    active.succeeded(1.0)
    assert not active.is_single
    active.is_single = True
    active.begin_anew()
    assert not active.is_single
