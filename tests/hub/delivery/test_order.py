"""Strict order: the head of the queue blocks, and nothing overtakes it."""

from __future__ import annotations

import pytest

from tests.hub.delivery.test_concurrency import Handed
from tests.hub.delivery.test_dispatcher import HeldLog, active_of
from tests.hub.support import (
    INBOX,
    NEWS,
    House,
    attempts_of,
    deliveries,
    until,
)
from tests.support.http import Answer, Callback
from warrenmq.core.clock import ManualClock
from warrenmq.hub.delivery.envelope import Envelope
from warrenmq.hub.delivery.failure_state import Blocking
from warrenmq.hub.delivery.order import StrictOrder
from warrenmq.hub.delivery.retry import DELAYS_S
from warrenmq.hub.engine.port import QueueSpec
from warrenmq.hub.subscriptions.active import ActiveSubscription
from warrenmq.hub.subscriptions.subscription import SubscriptionStatus

STRICT = {"hub.order": "strict"}


@pytest.fixture
def database_url(either_database: str | None) -> str | None:
    return either_database


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries that come at once."""
    monkeypatch.setattr("warrenmq.hub.delivery.retry.DELAYS_S", (0.05,) * len(DELAYS_S))


async def subscribe(house: House, callback: Callback) -> ActiveSubscription:
    await house.subscribe(NEWS, callback, given=STRICT)
    return active_of(house)


async def test_the_blocking_message_survives_a_restart(house: House, callback: Callback) -> None:
    active = await subscribe(house, callback)
    callback.script(Answer(503, headers={"Retry-After": "3600"}))
    for body in (b"1", b"2"):
        await house.publish("n", body)
    await attempts_of(house, 1)
    before = active.blocking
    await house.restart()
    active = active_of(house)
    assert active.blocking is not None and active.blocking == before
    await until(lambda: active.state.consumption is None, "wait")
    assert await house.depth(active.subscription.queue) == 2
    assert len(callback.deliveries) == 1


@pytest.mark.usefixtures("hasty")
async def test_failures_before_a_restart_count(house: House, callback: Callback) -> None:
    await house.restart(max_attempts=2)
    await house.engine.declare_queue("/", QueueSpec("hub.dead"))
    active = await subscribe(house, callback)
    callback.script(Answer(503, headers={"Retry-After": "1"}), 500)
    for body in (b"1", b"2"):
        await house.publish("n", body)
    await attempts_of(house, 1)
    await house.restart(max_attempts=2)
    [dead] = await house.take("hub.dead", 1)
    assert (dead.message.properties.headers or {})["x-hub-reason"] == (
        "2 attempts, the last: status 500"
    )
    assert [one.body for one in await deliveries(callback, 3)] == [b"1", b"1", b"2"]
    for _ in range(2):
        active = active_of(house)
        assert active.blocking is None and active.subscription.status is SubscriptionStatus.ACTIVE
        await house.restart(max_attempts=2)


@pytest.mark.usefixtures("hasty")
async def test_another_consumer_may_take_the_blocking_message(
    house: House, callback: Callback
) -> None:
    active = await house.subscribe(INBOX, callback, given=STRICT)
    callback.script(Answer(500, headers={"Retry-After": "1"}))
    await house.post("in", "k", b"1")
    await until(lambda: active.blocking is not None and house.unacked("in") == 0, "requeue")
    assert [one.message.body for one in await house.take("in", 1)] == [b"1"]
    await house.post("in", "k", b"2")
    assert [one.body for one in await deliveries(callback, 2)] == [b"1", b"2"]
    await until(lambda: active.blocking is None, "end of the blocking")


async def test_a_resume_delivers_the_blocking_message_at_once(
    house: House, callback: Callback
) -> None:
    active = await subscribe(house, callback)
    callback.script(Answer(503, headers={"Retry-After": "3600"}))
    await house.publish("n", b"1")
    await attempts_of(house, 1)
    await house.hub.subscription_store.pause(active, "by hand")
    await house.hub.subscription_store.resume(active)
    first, second = await deliveries(callback, 2)
    assert second.headers["webhook-id"] == first.headers["webhook-id"]
    assert second.headers["X-AMQP-Redelivered-Count"] == "1"


async def test_nothing_overtakes_a_pending_requeue(house: House, callback: Callback) -> None:
    active = await subscribe(house, callback)
    held = HeldLog(house)
    callback.script(Answer(503, headers={"Retry-After": "3600"}))
    for body in (b"1", b"2"):
        await house.publish("n", body)
    await until(lambda: len(held.waiting) == 1, "outcome")
    for _ in range(2):
        await house.hub.subscription_store.pause(active, "by hand")
        await house.hub.subscription_store.resume(active)
        await until(lambda: active.state.consumption is None, "another wait")
    held.let_go()
    await house.hub.subscription_store.pause(active, "by hand")
    await house.hub.subscription_store.resume(active)
    assert [one.body for one in await deliveries(callback, 3)] == [b"1", b"1", b"2"]


async def test_nothing_overtakes_a_delivery_in_flight(house: House, callback: Callback) -> None:
    await house.restart(drain_s=0.05)
    active = await subscribe(house, callback)
    callback.script(Answer(hang=True))
    for body in (b"1", b"2"):
        await house.publish("n", body)
    await deliveries(callback, 1)
    await house.hub.subscription_store.pause(active, "by hand")
    await house.hub.subscription_store.resume(active)
    queue = active.subscription.queue
    for _ in range(3):
        await until(lambda: not active.state.takes(), "return of the second message")
        assert house.unacked(queue) == 1
        await until(lambda: active.state.takes(), "another look at it")
    assert [one.body for one in callback.deliveries] == [b"1"]
    await house.restart(drain_s=0.05)
    got = await deliveries(callback, 3)
    assert [one.body for one in got] == [b"1", b"1", b"2"]


@pytest.mark.parametrize("due_ms", [None, 1_060_000])
async def test_a_wall_clock_step_delays_nothing(
    house: House, callback: Callback, due_ms: int | None
) -> None:
    """Neither what failed in this process nor what an earlier one had to wait for."""
    active, first = await subscribe(house, callback), Handed()
    clock = ManualClock()
    order = StrictOrder(house.hub.storage, clock)
    active.blocking = Blocking("msg_1", 1, clock.wall_s() + 60, "status 500", due_ms)
    envelope = Envelope("msg_1", "news", "k")
    assert order.wait_s(active, first, envelope) == 60
    clock.step(-3_600)
    clock.advance(20_000)
    assert order.wait_s(active, first, envelope) == 40


async def test_the_next_message_waits_for_the_first(house: House, callback: Callback) -> None:
    active = await subscribe(house, callback)
    order = StrictOrder(house.hub.storage, ManualClock())
    first, second = Handed(), Handed()
    assert order.take(active, first)
    envelope, behind = Envelope("msg_1", "news", "k"), Envelope("msg_2", "news", "k")
    await order.block(active, Blocking("msg_1", 1, 0.0, "status 500"))
    order.done(active, first)
    assert order.take(active, second)  # resumed by hand
    order.requeued(active)
    assert order.wait_s(active, second, behind) > 0
    order.done(active, second)
    assert order.take(active, first) and order.wait_s(active, first, envelope) == 0
