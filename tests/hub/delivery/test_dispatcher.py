"""What becomes of a message by its callback's answer."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.hub.support import (
    INBOX,
    NEWS,
    House,
    attempts_of,
    deliveries,
    until,
)
from tests.support.http import Answer, Callback
from warrenmq.hub.attempts.attempt import Attempt
from warrenmq.hub.attempts.log import Settle
from warrenmq.hub.delivery.breaker import BreakerState
from warrenmq.hub.delivery.dispatcher import LARGE_BYTES
from warrenmq.hub.delivery.outcomes import OutcomeHandler
from warrenmq.hub.delivery.retry import DELAYS_S
from warrenmq.hub.delivery.signature import sign
from warrenmq.hub.engine.port import QueueSpec
from warrenmq.hub.sender.http_sender import HttpSender
from warrenmq.hub.subscriptions.active import ActiveSubscription
from warrenmq.hub.subscriptions.subscription import SubscriptionStatus


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first retry after a second or so, the shortest step there is."""
    monkeypatch.setattr("warrenmq.hub.delivery.retry.DELAYS_S", (1,) * len(DELAYS_S))


async def test_a_large_message_is_signed_in_a_thread(
    house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []

    def signed(method: str, secret: str, body: bytes) -> str:
        threads.append(threading.current_thread() is threading.main_thread())
        return sign(method, secret, body)

    monkeypatch.setattr("warrenmq.hub.delivery.request.sign", signed)
    await house.subscribe(NEWS, callback, secret="s3cret")
    large = bytes(LARGE_BYTES)
    for body in (b"small", large):
        await house.publish("n", body)
    got = await deliveries(callback, 2)
    assert got[1].body == large
    assert got[1].headers["X-Hub-Signature"] == sign("sha256", "s3cret", large)
    assert threads == [True, False]


async def test_a_plain_delivery_needs_no_task(house: House, callback: Callback) -> None:
    await house.subscribe(INBOX, callback)
    await house.post("in", "k", b"first")
    await deliveries(callback, 1)
    await until(lambda: house.unacked("in") == 0, "ack of the first")
    tasks: list[str] = []

    def make_task(loop: Any, work: Any, **given: Any) -> Any:
        tasks.append(getattr(work, "__qualname__", ""))
        return asyncio.Task(work, loop=loop, **given)

    asyncio.get_running_loop().set_task_factory(make_task)
    for number in range(10):
        await house.post("in", "k", b"%d" % number)
    await until(lambda: len(callback.deliveries) == 11, "deliveries")
    await until(lambda: house.unacked("in") == 0, "acks")
    assert not [name for name in tasks if name.startswith(("Dispatcher.", "HttpClient."))]


async def test_an_unexpected_error_loses_no_message(
    house: House,
    callback: Callback,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("warrenmq.hub.delivery.dispatcher.BACK_OFF_S", 0.01)
    await house.subscribe(INBOX, callback)
    for what in ("sending", "answering", "judging"):
        with monkeypatch.context() as patch:
            errors = Errors(patch, what)
            await house.post("in", "k", what.encode())
            await until(lambda: errors.count > 2, what)  # noqa: B023
        await until(lambda: house.unacked("in") + house.queue("in").ready_count == 0, what)
    bodies = [one.body for one in callback.deliveries]
    assert set(bodies) == {b"sending", b"answering", b"judging"}
    [line] = [one for one in caplog.messages if "is requeued" in one]
    assert line.endswith(f"127.0.0.1:{callback.port} is requeued: RuntimeError('unforeseen')")
    assert await house.depth("in") == 0


class Errors:
    """Makes a step of every delivery fail."""

    def __init__(self, patch: pytest.MonkeyPatch, what: str) -> None:
        self.count = 0
        self._what = what
        if what == "judging":
            patch.setattr(OutcomeHandler, "settle_success", self._fail)
        else:
            patch.setattr(HttpSender, "post", self._fail)

    def _fail(self, *given: Any) -> bool:
        self.count += 1
        error = RuntimeError("unforeseen")
        if self._what != "answering":
            raise error
        asyncio.get_running_loop().call_soon(given[-1], error)
        return False


async def test_a_stop_requeues_hanging_deliveries(house: House) -> None:
    await house.restart(drain_s=0.05)
    with Callback() as hanging:
        hanging.default = Answer(hang=True)
        await house.subscribe(INBOX, hanging)
        await house.post("in", "k", b"x")
        await deliveries(hanging, 1)
        await house.stop()
        assert await house.depth("in") == 1


async def test_delivery_does_not_wait_for_the_log(house: House, callback: Callback) -> None:
    await house.subscribe(INBOX, callback)
    held = HeldLog(house)
    for number in range(3):
        await house.post("in", "k", b"%d" % number)
    assert [one.body for one in await deliveries(callback, 3)] == [b"0", b"1", b"2"]
    await until(lambda: len(held.waiting) == 3, "outcomes")
    assert house.unacked("in") == 3
    held.let_go()
    await until(lambda: house.unacked("in") == 0, "acks")


async def test_too_many_pending_attempts_stop_deliveries(
    house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warrenmq.hub.delivery.pending_attempts.MAX_WAITING", 2)
    await house.subscribe(INBOX, callback)
    held = HeldLog(house)
    for number in range(4):
        await house.post("in", "k", b"%d" % number)
    await until(lambda: len(held.waiting) == 2, "outcomes")
    await house.subscribe(NEWS, callback.url + "/other")
    await house.publish("k", b"other")
    assert len(callback.deliveries) == 2
    held.let_go()
    got = await deliveries(callback, 5)
    assert sorted(one.body for one in got) == [b"0", b"1", b"2", b"3", b"other"]


async def test_one_bad_message_does_not_pause(house: House, callback: Callback) -> None:
    await house.restart(max_attempts=2)
    await house.engine.declare_queue("/", QueueSpec("hub.dead"))
    await house.subscribe(NEWS, callback)
    callback.script(500, 200, 500)
    await house.publish("k", b"bad")
    await deliveries(callback, 1)
    await house.publish("k", b"good")
    assert [one.message.body for one in await house.take("hub.dead", 1)] == [b"bad"]
    assert [one.body for one in callback.deliveries] == [b"bad", b"good", b"bad"]
    await house.publish("k", b"more")
    await deliveries(callback, 4)
    assert active_of(house).subscription.status is SubscriptionStatus.ACTIVE


def active_of(house: House) -> ActiveSubscription:
    [active] = house.hub.subscription_store.all()
    return active


class HeldLog:
    """The log of attempts, when its database takes its time."""

    def __init__(self, house: House) -> None:
        self.waiting: list[tuple[Settle, object]] = []
        self._log = house.hub.attempts
        self._record = self._log.record
        self._log.record = self._hold  # type: ignore[method-assign]

    def let_go(self) -> None:
        self._log.record = self._record  # type: ignore[method-assign]
        for settle, what in self.waiting:
            settle([what])

    def _hold(self, attempt: Attempt, settle: Settle, what: object) -> None:
        self.waiting.append((settle, what))


async def test_a_half_open_breaker_tries_one_message(
    house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warrenmq.hub.delivery.breaker.THRESHOLD", 3)
    monkeypatch.setattr("warrenmq.hub.delivery.breaker.FIRST_COOL_DOWN_S", 1.0)
    given = {"hub.in_flight": "3"}
    active = await house.subscribe(NEWS, callback, given=given)
    callback.default = Answer(500, headers={"Retry-After": "3600"})
    for number in range(12):
        await house.publish("k", b"%d" % number)
    await until(lambda: active.breaker_state is BreakerState.OPEN, "open breaker")
    failure_state = active.failure_state
    assert failure_state is not None
    first = failure_state.breaker.open_until_s
    await until(lambda: house.unacked(active.subscription.queue) == 0, "end of what was under way")
    before = failure_state.error_count
    await until(lambda: failure_state.breaker.open_until_s > first, "second cool-down")
    assert failure_state.error_count == before + 1
    callback.default = Answer(200)
    await until(lambda: active.breaker_state is BreakerState.CLOSED, "closed breaker")
    await until(lambda: house.prefetch(active.subscription.queue) == 3, "full prefetch")


async def test_rate_limited_deliveries_take_no_slot(house: House, callback: Callback) -> None:
    await house.restart(quick_slots=1, new_slots=1, slow_slots=1, in_flight_per_subscription=10)
    given = {"hub.max_tps": "1"}
    await house.subscribe(INBOX, f"{callback.url}/slow", given=given)
    for number in range(10):
        await house.post("in", "k", b"%d" % number)
    await deliveries(callback, 1)
    await house.subscribe(NEWS, callback)
    for _ in range(20):
        await house.publish("k", b"news")
    await until(lambda: sum(one.body == b"news" for one in callback.deliveries) == 20, "news")
    assert len(callback.deliveries) < 30


@pytest.mark.parametrize("how", ["stop", "pause"])
async def test_rate_limited_messages_are_requeued(
    house: House, callback: Callback, how: str
) -> None:
    given = {"hub.max_tps": "1", "hub.in_flight": "10"}
    active = await house.subscribe(INBOX, callback, given=given)
    for number in range(10):
        await house.post("in", "k", b"%d" % number)
    await deliveries(callback, 1)
    if how == "stop":
        await house.stop()
    else:
        await house.hub.subscription_store.pause(active, "by hand")
        await until(lambda: house.unacked("in") == 0, "end of what waited")
    assert house.unacked("in") == 0
    assert await house.depth("in") == 10 - len(callback.deliveries) > 5


async def test_one_message_at_a_time_after_a_timeout(house: House, callback: Callback) -> None:
    await house.restart(total_timeout_s=0.3)
    given = {"hub.in_flight": "3"}
    active = await house.subscribe(NEWS, callback, given=given)
    queue = active.subscription.queue
    assert house.prefetch(queue) == 3
    callback.script(500)
    await house.publish("k", b"error")
    await until(lambda: active.error_count == 1, "failure")
    assert house.prefetch(queue) == 3
    callback.default = Answer(hang=True)
    await house.publish("k", b"0")
    await until(lambda: house.prefetch(queue) == 1, "one at a time")
    assert active.breaker_state is BreakerState.CLOSED
    callback.default = Answer(200)
    await house.publish("k", b"1")
    await until(lambda: house.prefetch(queue) == 3, "full prefetch")


async def test_waiting_messages_are_bounded(
    house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warrenmq.hub.delivery.overload.MAX_WAITING", 5)
    await house.restart(new_slots=1, part_after_s=3600)
    given = {"hub.in_flight": "20"}
    await house.subscribe(NEWS, callback, given=given)
    queue = active_of(house).subscription.queue
    with Callback() as hanging:
        hanging.default = Answer(hang=True)
        await house.subscribe(INBOX, hanging)
        await house.post("in", "k", b"x")
        await deliveries(hanging, 1)
        for number in range(50):
            await house.publish("k", b"%d" % number)
        await until(lambda: house.prefetch(queue) == 1, "one at a time")
        await until(lambda: house.unacked(queue) == 6, "return of the others")
    got = await deliveries(callback, 50)
    assert sorted(int(one.body) for one in got) == list(range(50))
    await until(lambda: house.prefetch(queue) == 20, "full prefetch")


@pytest.mark.parametrize("is_patient", [True, False])
async def test_an_anonymous_callback_may_fail_for_a_while(
    house: House, callback: Callback, is_patient: bool
) -> None:
    await house.restart(max_attempts=2, anonymous_dead_after_s=3_600.0 if is_patient else 0.0)
    given = {"hub.order": "strict"}  # which is not paused for a message that fails for good
    active = await house.subscribe(NEWS, callback, client="192.0.2.1", given=given)
    callback.default = Answer(500)
    await house.publish("k", b"x")
    await attempts_of(house, 2)
    if not is_patient:
        await until(lambda: active.subscription.status is SubscriptionStatus.PAUSED, "pause")
        return
    callback.default = Answer(200)
    await house.publish("k", b"y")
    assert [one.body for one in await deliveries(callback, 3)] == [b"x", b"x", b"y"]
