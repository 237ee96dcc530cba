"""What becomes of a message by its callback's answer."""

from __future__ import annotations

import hashlib
import hmac

from tests.hub.support import INBOX, NEWS, House, deliveries, request, until
from tests.support.http import Answer, Callback, Request
from warren.hub.engine.port import QueueSpec


async def test_every_failure_is_tried_again_with_the_same_id(
    house: House, callback: Callback
) -> None:
    statuses = (301, 400, 404, 429, 500, 503)
    for status in statuses:
        await house.hub.subscribe(request(NEWS, f"{callback.url}/{status}"))
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
    await house.hub.subscribe(request(INBOX, callback.url))
    callback.script(500)
    await house.post("in", "eu.fr", b"bonjour")
    _, second = await deliveries(callback, 2)
    assert second.headers["X-AMQP-Routing-Key"] == "eu.fr"
    assert second.headers["X-AMQP-Queue"] == "in"


async def test_later_messages_overtake_a_parked_one(house: House, callback: Callback) -> None:
    await house.hub.subscribe(request(NEWS, callback.url))
    callback.script(500)
    for body in (b"1", b"2", b"3"):
        await house.publish("n", body)
    got = await deliveries(callback, 4)
    assert [one.body for one in got] == [b"1", b"2", b"3", b"1"]


async def test_gone_ends_the_subscription_and_the_queue_keeps_the_message(
    house: House, callback: Callback
) -> None:
    await house.hub.subscribe(request(INBOX, callback.url))
    callback.script(410)
    await house.post("in", "k", b"x")
    await until(lambda: house.hub.subscriptions() == [], "end of the subscription")
    [kept] = await house.take("in", 1)
    assert kept.message.body == b"x" and kept.message.redelivered


async def test_gone_ends_an_exchange_subscription_with_its_queue(
    house: House, callback: Callback
) -> None:
    await house.hub.subscribe(request(NEWS, callback.url))
    [subscription] = house.hub.subscriptions()
    callback.script(410)
    await house.publish("k", b"x")
    await until(lambda: _is_deleted(house, subscription.queue), "end of the queue")
    assert house.hub.subscriptions() == []


async def test_what_fails_for_good_is_a_dead_letter(house: House, callback: Callback) -> None:
    await house.restart(max_attempts=2)
    await house.hub.subscribe(request(NEWS, callback.url))
    [subscription] = house.hub.subscriptions()
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
    assert house.hub.subscriptions() == [subscription]


async def test_an_unreachable_callback_is_tried_again(house: House) -> None:
    with Callback() as first:
        await house.hub.subscribe(request(NEWS, first.url))
    await house.publish("k", b"x")
    await until(lambda: _is_parked(house), "parked message")
    again = Callback()
    again.port = first.port
    with again:
        assert [one.body for one in await deliveries(again, 1)] == [b"x"]


async def _is_deleted(house: House, queue: str) -> bool:
    return await house.depth(queue) is None


async def _is_parked(house: House) -> bool:
    return any([await house.depth(f"hub.retry.{step}s") for step in (1, 2, 5)])


async def test_a_secret_signs_what_is_delivered(house: House, callback: Callback) -> None:
    await house.hub.subscribe(request(NEWS, callback.url, secret="s3cret"))
    await house.publish("k", b"body")
    [got] = await deliveries(callback, 1)
    expected = hmac.new(b"s3cret", b"body", hashlib.sha256).hexdigest()
    assert got.headers["X-Hub-Signature"] == f"sha256={expected}"


async def test_hanging_targets_hold_up_only_themselves(house: House, callback: Callback) -> None:
    await house.restart(fast_slots=2, slow_slots=1, part_after_s=0.05, drain_s=0.1)
    with Callback() as hanging:
        hanging.default = Answer(hang=True)
        for number in range(6):
            await house.hub.subscribe(request(NEWS, f"{hanging.url}/{number}"))
        await house.publish("k", b"x")
        await house.hub.subscribe(request(INBOX, callback.url))
        await house.post("in", "k", b"y")
        assert [one.body for one in await deliveries(callback, 1)] == [b"y"]
        await house.stop()


async def test_stopping_waits_for_what_is_in_flight(house: House, callback: Callback) -> None:
    await house.hub.subscribe(request(INBOX, callback.url))
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
        await house.hub.subscribe(request(INBOX, hanging.url))
        await house.post("in", "k", b"x")
        await deliveries(hanging, 1)
        await house.stop()
        assert await house.depth("in") == 1
