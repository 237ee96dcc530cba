from __future__ import annotations

from tests.hub.support import NEWS
from warrenmq.hub.deliver.breaker import State
from warrenmq.hub.deliver.trouble import Blocking
from warrenmq.hub.subscriptions.live import Live
from warrenmq.hub.subscriptions.subscription import Subscription


def made() -> Live:
    return Live(Subscription("1", NEWS, "#", "http://a.b/", 60, 0.0, "guest"))


def test_without_a_failure_there_is_no_trouble() -> None:
    live = made()
    live.succeeded(5.0)
    assert live.trouble is None and live.last_success_at == 5.0
    assert (live.error_count, live.breaker_state) == (0, State.CLOSED)


def test_failures_and_a_success() -> None:
    live = made()
    for at in (1.0, 2.0):
        live.failed("status 500", at)
    assert live.error_count == 2
    live.succeeded(3.0)
    assert live.error_count == 0
    assert live.trouble is not None and live.trouble.last_error_at == 2.0


def test_beginning_anew() -> None:
    live = made()
    trouble = live.failed("status 500", 1.0)
    for now_s in range(10):
        trouble.breaker.failed(now_s)
    live.blocking = Blocking("msg_1", 3, 1_700_000_000.0, "status 500")
    live.begin_anew()
    assert live.breaker_state is State.CLOSED and live.error_count == 0
    assert live.blocking == Blocking("msg_1", 3, 0.0, "status 500")


def test_one_message_at_a_time_tells_how_a_callback_is() -> None:
    live = made()
    live.is_single = True
    assert live.is_probed
    live.succeeded(1.0)
    assert not live.is_single
    live.is_single = True
    live.begin_anew()
    assert not live.is_single


def test_so_it_does_while_a_breaker_is_not_closed() -> None:
    live = made()
    for now_s in range(9):
        live.failed("status 500", now_s).breaker.failed(now_s)
    assert [live.is_probed, bool(live.failed("x", 9).breaker.failed(9))] == [False, True]
    assert live.is_probed
