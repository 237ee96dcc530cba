"""Strict order: the head of the queue blocks, and nothing overtakes it."""

from __future__ import annotations

import pytest

from tests.hub.delivery.test_concurrency import Handed
from tests.hub.delivery.test_dispatcher import HeldLog, active_of, unacked
from tests.hub.support import INBOX, NEWS, House, attempts_of, deliveries, request, until
from tests.support.http import Answer, Callback
from warrenmq.core.clock import ManualClock
from warrenmq.hub.attempts.attempt import Outcome
from warrenmq.hub.delivery.envelope import Envelope
from warrenmq.hub.delivery.failure_state import Blocking
from warrenmq.hub.delivery.order import StrictOrder
from warrenmq.hub.delivery.retry import DELAYS_S
from warrenmq.hub.engine.port import QueueSpec
from warrenmq.hub.subscriptions.active import ActiveSubscription
from warrenmq.hub.subscriptions.subscription import Status

STRICT = {"hub.order": "strict"}


@pytest.fixture
def database_url(either_database: str | None) -> str | None:
    return either_database


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries that come at once."""
    monkeypatch.setattr("warrenmq.hub.delivery.retry.DELAYS_S", (0.05,) * len(DELAYS_S))


async def subscribe(house: House, callback: Callback) -> ActiveSubscription:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, given=STRICT))
    return active_of(house)


@pytest.mark.usefixtures("hasty")
async def test_nothing_overtakes_a_message_that_fails(house: House, callback: Callback) -> None:
    active = await subscribe(house, callback)
    callback.script(500, 503, 200, 500)
    for body in (b"1", b"2", b"3"):
        await house.publish("n", body)
    got = await deliveries(callback, 6)
    assert [one.body for one in got] == [b"1", b"1", b"1", b"2", b"2", b"3"]
    assert len({one.headers["webhook-id"] for one in got}) == 3
    assert [one.headers.get("X-AMQP-Redelivered-Count") for one in got[:4]] == [
        None, "1", "2", None,
    ]  # fmt: skip
    attempts = await attempts_of(house, 6)
    assert [one.number for one in attempts] == [1, 2, 3, 1, 2, 1]
    assert [one.outcome for one in attempts][:3] == [
        Outcome.RETRIED, Outcome.RETRIED, Outcome.DELIVERED,
    ]  # fmt: skip
    assert active.blocking is None


async def test_the_blocking_message_is_shown_and_waits_in_its_queue(
    house: House, callback: Callback
) -> None:
    active = await subscribe(house, callback)
    callback.script(Answer(503, headers={"Retry-After": "3600"}))
    for body in (b"1", b"2"):
        await house.publish("n", body)
    await until(lambda: active.blocking is not None, "blocking message")
    queue = active.subscription.queue
    await until(lambda: unacked(house, queue) == 0, "requeue")
    assert active.blocking is not None
    assert active.blocking.webhook_id == callback.deliveries[0].headers["webhook-id"]
    assert (active.blocking.failures, active.blocking.reason) == (1, "status 503")
    assert await house.depth(queue) == 2 and active.consumption is None


async def test_a_restart_neither_forgets_failures_nor_the_time(
    house: House, callback: Callback
) -> None:
    active = await subscribe(house, callback)
    callback.script(Answer(503, headers={"Retry-After": "3600"}))
    for body in (b"1", b"2"):
        await house.publish("n", body)
    await attempts_of(house, 1)
    before = active.blocking
    await house.restart()
    active = active_of(house)
    assert active.blocking is not None and active.blocking == before
    await until(lambda: active.consumption is None, "wait")
    assert await house.depth(active.subscription.queue) == 2
    assert len(callback.deliveries) == 1


@pytest.mark.usefixtures("hasty")
async def test_failures_from_before_a_restart_count(house: House, callback: Callback) -> None:
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
    active = active_of(house)
    assert active.blocking is None and active.subscription.status is Status.ACTIVE


@pytest.mark.usefixtures("hasty")
async def test_another_subscriber_of_the_queue_may_take_what_blocks(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url, given=STRICT))
    active = active_of(house)
    callback.script(Answer(500, headers={"Retry-After": "1"}))
    await house.post("in", "k", b"1")
    await until(lambda: active.blocking is not None and unacked(house, "in") == 0, "requeue")
    assert [one.message.body for one in await house.take("in", 1)] == [b"1"]
    await house.post("in", "k", b"2")
    assert [one.body for one in await deliveries(callback, 2)] == [b"1", b"2"]
    await until(lambda: active.blocking is None, "end of the blocking")


@pytest.mark.usefixtures("hasty")
async def test_gone_and_loop_stay_what_they_are(house: House, callback: Callback) -> None:
    await house.engine.declare_queue("/", QueueSpec("hub.dead"))
    await subscribe(house, callback)
    callback.script(508, 410)
    for body in (b"1", b"2"):
        await house.publish("n", body)
    assert [one.message.body for one in await house.take("hub.dead", 1)] == [b"1"]
    await until(lambda: house.hub.subscriptions.all() == [], "end of the subscription")


async def test_what_blocks_a_paused_subscription_is_shown_after_a_restart(
    house: House, callback: Callback
) -> None:
    active = await subscribe(house, callback)
    callback.script(Answer(503, headers={"Retry-After": "3600"}))
    await house.publish("n", b"1")
    await attempts_of(house, 1)
    before = active.blocking
    await house.hub.subscriptions.pause(active, "by hand")
    await house.restart()
    assert before is not None and active_of(house).blocking == before


async def test_a_resume_tries_the_blocking_message_at_once(
    house: House, callback: Callback
) -> None:
    active = await subscribe(house, callback)
    callback.script(Answer(503, headers={"Retry-After": "3600"}))
    await house.publish("n", b"1")
    await attempts_of(house, 1)
    await house.hub.subscriptions.pause(active, "by hand")
    await house.hub.subscriptions.resume(active)
    first, second = await deliveries(callback, 2)
    assert second.headers["webhook-id"] == first.headers["webhook-id"]
    assert second.headers["X-AMQP-Redelivered-Count"] == "1"


async def test_a_resume_lets_nothing_overtake_what_is_on_its_way_back(
    house: House, callback: Callback
) -> None:
    active = await subscribe(house, callback)
    held = HeldLog(house)
    callback.script(Answer(503, headers={"Retry-After": "3600"}))
    for body in (b"1", b"2"):
        await house.publish("n", body)
    await until(lambda: len(held.waiting) == 1, "outcome")
    for _ in range(2):
        await house.hub.subscriptions.pause(active, "by hand")
        await house.hub.subscriptions.resume(active)
        await until(lambda: active.consumption is None, "another wait")
    held.let_go()
    await house.hub.subscriptions.pause(active, "by hand")
    await house.hub.subscriptions.resume(active)
    assert [one.body for one in await deliveries(callback, 3)] == [b"1", b"1", b"2"]


async def test_nothing_overtakes_what_was_under_way_at_a_pause(
    house: House, callback: Callback
) -> None:
    await house.restart(drain_s=0.05)
    active = await subscribe(house, callback)
    callback.script(Answer(hang=True))
    for body in (b"1", b"2"):
        await house.publish("n", body)
    await deliveries(callback, 1)
    await house.hub.subscriptions.pause(active, "by hand")
    await house.hub.subscriptions.resume(active)
    queue = active.subscription.queue
    for _ in range(3):
        await until(lambda: active.is_suspended, "return of the second message")
        assert unacked(house, queue) == 1
        await until(lambda: not active.is_suspended, "another look at it")
    assert [one.body for one in callback.deliveries] == [b"1"]
    await house.restart(drain_s=0.05)
    got = await deliveries(callback, 3)
    assert [one.body for one in got] == [b"1", b"1", b"2"]


@pytest.mark.parametrize("due_ms", [None, 1_060_000])
async def test_a_step_of_the_wall_clock_holds_nothing_up(
    house: House, callback: Callback, due_ms: int | None
) -> None:
    """Neither what failed in this process nor what an earlier one had to wait for."""
    active, first = await subscribe(house, callback), Handed()
    clock = ManualClock()
    order = StrictOrder(house.hub._storage, clock)
    active.blocking = Blocking("msg_1", 1, clock.wall_s() + 60, "status 500", due_ms)
    envelope = Envelope("msg_1", "news", "k")
    assert order.wait_s(active, first, envelope) == 60
    clock.step(-3_600)
    clock.advance(20_000)
    assert order.wait_s(active, first, envelope) == 40


async def test_what_was_taken_while_the_first_was_away_waits_for_it(
    house: House, callback: Callback
) -> None:
    active = await subscribe(house, callback)
    order, first, second = house.hub._order, Handed(), Handed()
    assert order.take(active, first)
    envelope, behind = Envelope("msg_1", "news", "k"), Envelope("msg_2", "news", "k")
    await order.block(active, Blocking("msg_1", 1, 0.0, "status 500"))
    order.done(active, first)
    assert order.take(active, second)  # resumed by hand
    order.came_back(active)
    assert order.wait_s(active, second, behind) > 0
    order.done(active, second)
    assert order.take(active, first) and order.wait_s(active, first, envelope) == 0
