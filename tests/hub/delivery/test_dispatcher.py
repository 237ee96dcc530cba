"""What becomes of a message by its callback's answer."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import threading
from typing import Any

import pytest

from tests.hub.support import BASE_URL, INBOX, NEWS, House, attempts_of, deliveries, request, until
from tests.support.http import Answer, Callback, Request
from warrenmq.hub.attempts.attempt import Attempt, Outcome
from warrenmq.hub.attempts.log import Settle
from warrenmq.hub.delivery.breaker import State
from warrenmq.hub.delivery.dispatcher import LARGE_BYTES
from warrenmq.hub.delivery.outcomes import OutcomeHandler
from warrenmq.hub.delivery.retry import DELAYS_S
from warrenmq.hub.delivery.signature import sign
from warrenmq.hub.engine.embedded import EmbeddedEngine
from warrenmq.hub.engine.port import QueueSpec
from warrenmq.hub.sender.http_sender import HttpSender
from warrenmq.hub.subscriptions.active import ActiveSubscription
from warrenmq.hub.subscriptions.subscription import Status


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first retry after a second or so, the shortest step there is."""
    monkeypatch.setattr("warrenmq.hub.delivery.retry.DELAYS_S", (1,) * len(DELAYS_S))


async def test_every_failure_is_tried_again_with_the_same_id(
    house: House, callback: Callback
) -> None:
    statuses = (301, 400, 404, 429, 500, 503)
    for status in statuses:
        await house.hub.subscriptions.subscribe(request(NEWS, f"{callback.url}/{status}"))
    callback.script(*(Answer(one, headers={"Location": callback.url}) for one in statuses))
    await house.publish("eu.fr", b"bonjour", content_type="text/plain", expiration="60000")
    await deliveries(callback, 2 * len(statuses))
    by_path: dict[str, list[Request]] = {}
    for one in callback.deliveries:
        by_path.setdefault(one.path, []).append(one)
    for first, second in by_path.values():
        assert second.body == b"bonjour"
        assert second.query["hub.topic"] == "eu.fr"
        assert second.headers["X-AMQP-Exchange"] == "news"
        assert second.headers["Content-Type"] == "text/plain"
        assert second.headers["webhook-id"] == first.headers["webhook-id"]
        assert first.headers["X-AMQP-Redelivered"] == "false"
        assert second.headers["X-AMQP-Redelivered"] == "true"
    assert len(by_path) == len(statuses)


async def test_a_retried_message_of_a_queue_goes_back_to_the_queue(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    callback.script(500)
    await house.post("in", "eu.fr", b"bonjour")
    _, second = await deliveries(callback, 2)
    assert second.headers["X-AMQP-Routing-Key"] == "eu.fr"
    assert second.headers["X-AMQP-Queue"] == "in"


async def test_a_large_message_is_signed_aside_from_the_loop(
    house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []

    def signed(method: str, secret: str, body: bytes) -> str:
        threads.append(threading.current_thread() is threading.main_thread())
        return sign(method, secret, body)

    monkeypatch.setattr("warrenmq.hub.delivery.request.sign", signed)
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, secret="s3cret"))
    large = bytes(LARGE_BYTES)
    for body in (b"small", large):
        await house.publish("n", body)
    got = await deliveries(callback, 2)
    assert got[1].body == large
    assert got[1].headers["X-Hub-Signature"] == sign("sha256", "s3cret", large)
    assert threads == [True, False]


async def test_a_plain_delivery_needs_no_task(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    await house.post("in", "k", b"first")
    await deliveries(callback, 1)
    await until(lambda: unacked(house, "in") == 0, "ack of the first")
    tasks: list[str] = []

    def make_task(loop: Any, work: Any, **given: Any) -> Any:
        tasks.append(getattr(work, "__qualname__", ""))
        return asyncio.Task(work, loop=loop, **given)

    asyncio.get_running_loop().set_task_factory(make_task)
    for number in range(10):
        await house.post("in", "k", b"%d" % number)
    await until(lambda: len(callback.deliveries) == 11, "deliveries")
    await until(lambda: unacked(house, "in") == 0, "acks")
    assert not [name for name in tasks if name.startswith(("Dispatcher.", "HttpClient."))]


async def test_an_error_that_nobody_foresaw_costs_no_message(
    house: House,
    callback: Callback,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("warrenmq.hub.delivery.dispatcher.BACK_OFF_S", 0.01)
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    for what in ("sending", "answering", "judging"):
        with monkeypatch.context() as patch:
            errors = Errors(patch, what)
            await house.post("in", "k", what.encode())
            await until(lambda: errors.count > 2, what)  # noqa: B023
        await until(lambda: is_empty(house, "in"), f"ack after {what}")
    bodies = [one.body for one in callback.deliveries]
    assert set(bodies) == {b"sending", b"answering", b"judging"}
    [line] = [one for one in caplog.messages if "holds messages for" in one]
    assert line.endswith(f"for 127.0.0.1:{callback.port} back: RuntimeError('unforeseen')")
    assert await house.depth("in") == 0


class Errors:
    """Makes a step of every delivery fail."""

    def __init__(self, patch: pytest.MonkeyPatch, what: str) -> None:
        self.count = 0
        self._what = what
        if what == "judging":
            patch.setattr(OutcomeHandler, "handles_at_once", self._fail)
        else:
            patch.setattr(HttpSender, "post", self._fail)

    def _fail(self, *given: Any) -> bool:
        self.count += 1
        error = RuntimeError("unforeseen")
        if self._what != "answering":
            raise error
        asyncio.get_running_loop().call_soon(given[-1], error)
        return False


async def test_later_messages_overtake_one_that_waits_for_a_retry(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    callback.script(500)
    for body in (b"1", b"2", b"3"):
        await house.publish("n", body)
    got = await deliveries(callback, 4)
    assert [one.body for one in got] == [b"1", b"2", b"3", b"1"]


async def test_gone_ends_the_subscription_and_the_queue_keeps_the_message(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    callback.script(410)
    await house.post("in", "k", b"x")
    await until(lambda: house.hub.subscriptions.all() == [], "end of the subscription")
    [kept] = await house.take("in", 1)
    assert kept.message.body == b"x" and kept.message.redelivered


async def test_gone_ends_an_exchange_subscription_with_its_queue(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [subscription] = house.hub.subscriptions.all()
    callback.script(410)
    await house.publish("k", b"x")
    await until(lambda: _is_deleted(house, subscription.queue), "end of the queue")
    assert house.hub.subscriptions.all() == []


async def test_what_fails_for_good_is_a_dead_letter(house: House, callback: Callback) -> None:
    await house.restart(max_attempts=2)
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [subscription] = house.hub.subscriptions.all()
    await house.engine.declare_queue("/", QueueSpec("hub.dead"))
    callback.script(500, 503)
    await house.publish("eu.fr", b"bonjour")
    [dead] = await house.take("hub.dead", 1)
    headers = dead.message.properties.headers or {}
    assert dead.message.body == b"bonjour"
    assert headers["x-hub-topic"] == "eu.fr" and headers["x-hub-exchange"] == "news"
    assert headers["x-hub-subscription"] == subscription.id
    assert headers["x-hub-reason"] == "2 attempts, the last: status 503"
    assert headers["x-hub-id"] == callback.deliveries[0].headers["webhook-id"]
    assert [one.id for one in house.hub.subscriptions.all()] == [subscription.id]


async def test_an_unreachable_callback_is_tried_again(house: House) -> None:
    with Callback() as first:
        await house.hub.subscriptions.subscribe(request(NEWS, first.url))
    await house.publish("k", b"x")
    await until(lambda: _is_waiting_for_retry(house), "message in a retry queue")
    again = Callback()
    again.port = first.port
    with again:
        assert [one.body for one in await deliveries(again, 1)] == [b"x"]


async def _is_deleted(house: House, queue: str) -> bool:
    return await house.depth(queue) is None


async def _is_waiting_for_retry(house: House) -> bool:
    return any([await house.depth(f"hub.retry.{step}s") for step in (1, 2, 5)])


async def test_a_secret_signs_what_is_delivered(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, secret="s3cret"))
    await house.publish("k", b"body")
    [got] = await deliveries(callback, 1)
    expected = hmac.new(b"s3cret", b"body", hashlib.sha256).hexdigest()
    assert got.headers["X-Hub-Signature"] == f"sha256={expected}"


async def test_hanging_targets_hold_up_only_themselves(house: House, callback: Callback) -> None:
    await house.restart(quick_slots=2, new_slots=2, slow_slots=1, part_after_s=0.05, drain_s=0.1)
    with Callback() as hanging:
        hanging.default = Answer(hang=True)
        for number in range(6):
            await house.hub.subscriptions.subscribe(request(NEWS, f"{hanging.url}/{number}"))
        await house.publish("k", b"x")
        await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
        await house.post("in", "k", b"y")
        assert [one.body for one in await deliveries(callback, 1)] == [b"y"]
        await house.stop()


async def test_stopping_waits_for_what_is_in_flight(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    for number in range(20):
        await house.post("in", "k", b"%d" % number)
    await deliveries(callback, 1)
    await house.stop()
    left = await house.depth("in")
    assert left is not None and left + len(callback.deliveries) == 20


async def test_stopping_gives_back_what_hangs(house: House) -> None:
    await house.restart(drain_s=0.05)
    with Callback() as hanging:
        hanging.default = Answer(hang=True)
        await house.hub.subscriptions.subscribe(request(INBOX, hanging.url))
        await house.post("in", "k", b"x")
        await deliveries(hanging, 1)
        await house.stop()
        assert await house.depth("in") == 1


async def test_standard_webhooks_headers_are_the_same_over_retries(
    house: House, callback: Callback
) -> None:
    secret = "whsec_" + base64.b64encode(bytes(24)).decode()
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, secret=secret))
    callback.script(500)
    await house.publish("k", b"body")
    first, second = await deliveries(callback, 2)
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    for one in (first, second):
        text = f"{one.headers['webhook-id']}.{one.headers['webhook-timestamp']}.body"
        digest = hmac.digest(bytes(24), text.encode(), "sha256")
        assert one.headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()


async def test_a_loop_is_dead_lettered_at_once(house: House, callback: Callback) -> None:
    await house.engine.declare_queue("/", QueueSpec("hub.dead"))
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    callback.script(508)
    await house.publish("k", b"x")
    [dead] = await house.take("hub.dead", 1)
    headers = dead.message.properties.headers or {}
    assert headers["x-hub-reason"] == "status 508: it goes round in a circle"
    await house.publish("k", b"y")
    assert [one.body for one in await deliveries(callback, 2)] == [b"x", b"y"]
    assert active_of(house).subscription.status is Status.ACTIVE


async def test_every_attempt_is_in_the_log(house: House, callback: Callback) -> None:
    await house.restart(max_attempts=2)
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [subscription] = house.hub.subscriptions.all()
    callback.script(Answer(503, headers={"X-Reason": "busy"}), 204)
    await house.publish("k", b"x")
    second = (await deliveries(callback, 2))[1]
    found = await attempts_of(house, 2)
    assert {one.subscription_id for one in found} == {subscription.id}
    assert {one.webhook_id for one in found} == {second.headers["webhook-id"]}
    assert [(one.number, one.status, one.outcome) for one in found] == [
        (1, 503, Outcome.RETRIED),
        (2, 204, Outcome.DELIVERED),
    ]
    assert found[0].response.startswith("HTTP/1.1 503 Service Unavailable\n")
    assert "X-Reason: busy" in found[0].response.split("\n")


async def test_ends_and_dead_letters_are_in_the_log(house: House, callback: Callback) -> None:
    await house.restart(max_attempts=1)
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    active = active_of(house)
    callback.script(500)
    await house.publish("k", b"x")
    assert [one.outcome for one in await attempts_of(house, 1)] == [Outcome.DEAD]
    await until(lambda: active.subscription.status is Status.PAUSED, "pause")
    await house.hub.subscriptions.resume(active)
    callback.script(410)
    await house.publish("k", b"y")
    assert [one.outcome for one in await attempts_of(house, 2)] == [Outcome.DEAD, Outcome.GONE]


async def test_no_answer_is_in_the_log_with_its_reason(house: House) -> None:
    with Callback() as first:
        await house.hub.subscriptions.subscribe(request(NEWS, first.url))
    await house.publish("k", b"x")
    [attempt] = await attempts_of(house, 1)
    assert attempt.status is None and "Connection refused" in attempt.response


async def test_a_target_gets_its_next_message_before_the_outcome_is_durable(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    held = HeldLog(house)
    for number in range(3):
        await house.post("in", "k", b"%d" % number)
    assert [one.body for one in await deliveries(callback, 3)] == [b"0", b"1", b"2"]
    await until(lambda: len(held.waiting) == 3, "outcomes")
    assert unacked(house, "in") == 3
    held.let_go()
    await until(lambda: unacked(house, "in") == 0, "acks")


async def test_nothing_new_begins_while_too_many_outcomes_wait(
    house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warrenmq.hub.delivery.pending_attempts.MAX_WAITING", 2)
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    held = HeldLog(house)
    for number in range(4):
        await house.post("in", "k", b"%d" % number)
    await until(lambda: len(held.waiting) == 2, "outcomes")
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url + "/other"))
    await house.publish("k", b"other")
    assert len(callback.deliveries) == 2
    held.let_go()
    got = await deliveries(callback, 5)
    assert sorted(one.body for one in got) == [b"0", b"1", b"2", b"3", b"other"]


async def test_a_breaker_leaves_the_messages_in_their_queue(
    house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warrenmq.hub.delivery.breaker.THRESHOLD", 3)
    monkeypatch.setattr("warrenmq.hub.delivery.breaker.FIRST_COOL_DOWN_S", 0.2)
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [subscription] = house.hub.subscriptions.all()
    active = active_of(house)
    callback.default = Answer(500, headers={"Retry-After": "3600"})
    for number in range(8):
        await house.publish("k", b"%d" % number)
    await until(lambda: active.breaker_state is State.OPEN, "open breaker")
    assert active.consumption is None and active.error_count >= 3
    assert await house.depth(subscription.queue) == 8 - len(callback.deliveries)
    await until(lambda: len(callback.deliveries) == 5, "two probes")
    callback.default = Answer(200)
    got = await deliveries(callback, 8)
    assert [one.body for one in got] == [b"%d" % number for number in range(8)]
    await until(lambda: active.breaker_state is State.CLOSED, "closed breaker")
    assert active.error_count == 0 and active.last_success_at > 0
    assert active.failure_state is not None and active.failure_state.last_error == "status 500"


async def test_while_a_breaker_is_open_others_take_from_the_queue(
    house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warrenmq.hub.delivery.breaker.THRESHOLD", 1)
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    callback.default = Answer(500)
    await house.post("in", "k", b"0")
    await until(lambda: active_of(house).breaker_state is State.OPEN, "open breaker")
    with Callback() as other:
        await house.hub.subscriptions.subscribe(request(INBOX, other.url))
        got = await deliveries(other, 1)  # the one in the retry queue, when its time has come
        for number in range(3):
            await house.post("in", "k", b"%d" % number)
        assert len(await deliveries(other, 4)) == 4 and got[0].body == b"0"
        await house.stop()
    assert len(callback.deliveries) == 1


async def test_a_subscription_that_takes_nothing_is_paused(
    house: House, callback: Callback
) -> None:
    await house.restart(max_attempts=2)
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    active = active_of(house)
    callback.default = Answer(500)
    await house.publish("k", b"x")
    await until(lambda: active.subscription.status is Status.PAUSED, "pause")
    assert active.subscription.reason == "2 attempts, the last: status 500"
    assert active.consumption is None


async def test_one_bad_message_pauses_nobody(house: House, callback: Callback) -> None:
    await house.restart(max_attempts=2)
    await house.engine.declare_queue("/", QueueSpec("hub.dead"))
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    callback.script(500, 200, 500)
    await house.publish("k", b"bad")
    await deliveries(callback, 1)
    await house.publish("k", b"good")
    assert [one.message.body for one in await house.take("hub.dead", 1)] == [b"bad"]
    assert [one.body for one in callback.deliveries] == [b"bad", b"good", b"bad"]
    await house.publish("k", b"more")
    await deliveries(callback, 4)
    assert active_of(house).subscription.status is Status.ACTIVE


async def test_websub_drops_one_update_and_tries_the_next(house: House, callback: Callback) -> None:
    """WebSub 7, rule 22 of our list."""
    await house.restart(max_attempts=1)
    await house.engine.declare_queue("/", QueueSpec("hub.dead"))
    topic_url = f"{BASE_URL}/endpoint/x/news"
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, topic_url=topic_url))
    await until(lambda: bool(house.hub.subscriptions.all()), "verification")
    callback.script(500)
    await house.publish("k", b"1")
    assert len(await house.take("hub.dead", 1)) == 1
    await house.publish("k", b"2")
    got = await deliveries(callback, 2)
    assert [one.body for one in got] == [b"1", b"2"]
    assert {one.raw_path for one in got} == {"/callback"}
    assert active_of(house).subscription.status is Status.ACTIVE


def active_of(house: House) -> ActiveSubscription:
    [active] = house.hub._store.all()
    return active


def unacked(house: House, queue: str) -> int:
    assert isinstance(house.engine, EmbeddedEngine)
    return house.engine._broker.vhosts["/"].queues[queue].unacked_count


def is_empty(house: House, queue: str) -> bool:
    """Whether nothing is unacked, nor ready because it was given back."""
    assert isinstance(house.engine, EmbeddedEngine)
    return house.engine._broker.vhosts["/"].queues[queue].ready_count + unacked(house, queue) == 0


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


async def test_a_half_open_breaker_tries_one_message_at_a_time(
    house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warrenmq.hub.delivery.breaker.THRESHOLD", 3)
    monkeypatch.setattr("warrenmq.hub.delivery.breaker.FIRST_COOL_DOWN_S", 1.0)
    given = {"hub.in_flight": "3"}
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, given=given))
    active = active_of(house)
    callback.default = Answer(500, headers={"Retry-After": "3600"})
    for number in range(12):
        await house.publish("k", b"%d" % number)
    await until(lambda: active.breaker_state is State.OPEN, "open breaker")
    failure_state = active.failure_state
    assert failure_state is not None
    first = failure_state.breaker.open_until_s
    await until(lambda: unacked(house, active.subscription.queue) == 0, "end of what was under way")
    before = failure_state.error_count
    await until(lambda: failure_state.breaker.open_until_s > first, "second cool-down")
    assert failure_state.error_count == before + 1
    callback.default = Answer(200)
    await until(lambda: active.breaker_state is State.CLOSED, "closed breaker")
    await until(lambda: prefetch_of(house, active.subscription.queue) == 3, "full prefetch")


def prefetch_of(house: House, queue: str) -> int | None:
    """Of its one consumer, None while it has none."""
    assert isinstance(house.engine, EmbeddedEngine)
    ring = house.engine._broker.vhosts["/"].queues[queue].ring
    return None if ring is None else next((one.prefetch for one in ring.members), None)


async def test_a_renewal_changes_what_is_sent_from_then_on(
    house: House, callback: Callback
) -> None:
    for secret in ("first", "second"):
        await house.hub.subscriptions.subscribe(request(NEWS, callback.url, secret=secret))
        await house.publish("k", b"body")
        got = (await deliveries(callback, 1 if secret == "first" else 2))[-1]
        expected = hmac.new(secret.encode(), b"body", hashlib.sha256).hexdigest()
        assert got.headers["X-Hub-Signature"] == f"sha256={expected}"


async def test_what_waits_for_its_pace_holds_no_slot(house: House, callback: Callback) -> None:
    await house.restart(quick_slots=1, new_slots=1, slow_slots=1, in_flight_per_subscription=10)
    given = {"hub.max_tps": "1"}
    await house.hub.subscriptions.subscribe(request(INBOX, f"{callback.url}/slow", given=given))
    for number in range(10):
        await house.post("in", "k", b"%d" % number)
    await deliveries(callback, 1)
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    for _ in range(20):
        await house.publish("k", b"news")
    await until(lambda: sum(one.body == b"news" for one in callback.deliveries) == 20, "news")
    assert len(callback.deliveries) < 30


async def test_stopping_gives_back_what_waits_for_its_pace(
    house: House, callback: Callback
) -> None:
    await house.restart(in_flight_per_subscription=10)
    given = {"hub.max_tps": "1"}
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url, given=given))
    for number in range(10):
        await house.post("in", "k", b"%d" % number)
    await deliveries(callback, 1)
    await house.stop()
    assert unacked(house, "in") == 0
    assert await house.depth("in") == 10 - len(callback.deliveries)


async def test_what_waits_for_its_pace_goes_back_when_its_subscription_is_paused(
    house: House, callback: Callback
) -> None:
    given = {"hub.max_tps": "1", "hub.in_flight": "10"}
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url, given=given))
    for number in range(10):
        await house.post("in", "k", b"%d" % number)
    await deliveries(callback, 1)
    await house.hub.subscriptions.pause(active_of(house), "by hand")
    await until(lambda: unacked(house, "in") == 0, "end of what waited")
    assert await house.depth("in") == 10 - len(callback.deliveries)
    assert len(callback.deliveries) < 5


async def test_after_a_timeout_one_message_at_a_time_is_tried(
    house: House, callback: Callback
) -> None:
    await house.restart(total_timeout_s=0.3)
    given = {"hub.in_flight": "3"}
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, given=given))
    active = active_of(house)
    queue = active.subscription.queue
    assert prefetch_of(house, queue) == 3
    callback.default = Answer(hang=True)
    await house.publish("k", b"0")
    await until(lambda: prefetch_of(house, queue) == 1, "one at a time")
    assert active.breaker_state is State.CLOSED
    callback.default = Answer(200)
    await house.publish("k", b"1")
    await until(lambda: prefetch_of(house, queue) == 3, "full prefetch")


async def test_an_error_changes_nothing_of_what_is_under_way(
    house: House, callback: Callback
) -> None:
    given = {"hub.in_flight": "3"}
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, given=given))
    active = active_of(house)
    callback.script(500)
    await house.publish("k", b"0")
    await until(lambda: active.error_count == 1, "failure")
    assert prefetch_of(house, active.subscription.queue) == 3 and not active.is_single


async def test_no_more_messages_wait_in_memory_than_a_bound(
    house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warrenmq.hub.delivery.overload.MAX_WAITING", 5)
    await house.restart(new_slots=1, part_after_s=3600)
    given = {"hub.in_flight": "20"}
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, given=given))
    queue = active_of(house).subscription.queue
    with Callback() as hanging:
        hanging.default = Answer(hang=True)
        await house.hub.subscriptions.subscribe(request(INBOX, hanging.url))
        await house.post("in", "k", b"x")
        await deliveries(hanging, 1)
        for number in range(50):
            await house.publish("k", b"%d" % number)
        await until(lambda: prefetch_of(house, queue) == 1, "one at a time")
        await until(lambda: unacked(house, queue) == 6, "return of the others")
    got = await deliveries(callback, 50)
    assert sorted(int(one.body) for one in got) == list(range(50))
    await until(lambda: prefetch_of(house, queue) == 20, "full prefetch")
