from __future__ import annotations

from tests.hub.support import NEWS
from warrenmq.hub.delivery.breaker import State
from warrenmq.hub.delivery.failure_state import Blocking
from warrenmq.hub.subscriptions.active import ActiveSubscription
from warrenmq.hub.subscriptions.subscription import Subscription


def made() -> ActiveSubscription:
    return ActiveSubscription(Subscription("1", NEWS, "#", "http://a.b/", 60, 0.0, "guest"))


def test_there_is_no_failure_state_without_a_failure() -> None:
    active = made()
    active.succeeded(5.0)
    assert active.failure_state is None and active.last_success_at == 5.0
    assert (active.error_count, active.breaker_state) == (0, State.CLOSED)


def test_failures_and_a_success() -> None:
    active = made()
    for at in (1.0, 2.0):
        active.failed("status 500", at)
    assert active.error_count == 2
    active.succeeded(3.0)
    assert active.error_count == 0
    assert active.failure_state is not None and active.failure_state.last_error_at == 2.0


def test_beginning_anew() -> None:
    active = made()
    failure_state = active.failed("status 500", 1.0)
    for now_s in range(10):
        failure_state.breaker.failed(now_s)
    active.blocking = Blocking("msg_1", 3, 1_700_000_000.0, "status 500")
    active.begin_anew()
    assert active.breaker_state is State.CLOSED and active.error_count == 0
    assert active.blocking == Blocking("msg_1", 3, 0.0, "status 500")


def test_one_message_at_a_time_tells_how_a_callback_is() -> None:
    active = made()
    active.is_single = True
    assert active.is_probed
    active.succeeded(1.0)
    assert not active.is_single
    active.is_single = True
    active.begin_anew()
    assert not active.is_single


def test_so_it_does_while_a_breaker_is_not_closed() -> None:
    active = made()
    for now_s in range(9):
        active.failed("status 500", now_s).breaker.failed(now_s)
    assert [active.is_probed, bool(active.failed("x", 9).breaker.failed(9))] == [False, True]
    assert active.is_probed
