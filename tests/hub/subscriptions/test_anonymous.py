"""What a subscription without credentials may take up, and what becomes of it when it is dead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.hub.support import (
    NEWS,
    House,
    deliveries,
    request,
    subscription,
    subscriptions_of,
    text,
    topic_request,
    until,
)
from tests.hub.topics.test_topics import settled
from tests.support.http import Answer, Callback
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.resources.alarms import Bounds, Reading
from warrenmq.hub.delivery.retry import DELAYS_S
from warrenmq.hub.errors import TooManySubscriptions
from warrenmq.hub.guard import domains
from warrenmq.hub.requests import SubscribeRequest
from warrenmq.hub.subscriptions.anonymous import AnonymousSubscriptions, anonymous_client_of
from warrenmq.hub.subscriptions.options import AnonymousClient, Options
from warrenmq.hub.subscriptions.subscription import Subscription, SubscriptionStatus
from warrenmq.hub.topics.distributor import PAUSED_AGAIN_S, SHORTAGE_AGAIN_S
from warrenmq.hub.verification.repository import VerificationRepository

CLIENT = "192.0.2.1"


def to(publisher: Callback, callback: Callback, **given: Any) -> SubscribeRequest:
    return replace(topic_request(publisher, callback, **given), client=CLIENT)


def of(house: House) -> Subscription:
    [subscription] = subscriptions_of(house.hub)
    return subscription


def test_limits_of_client_callback_and_topic() -> None:
    def made(number: int, *who: str) -> Subscription:
        options = Options(anonymous_client=AnonymousClient(*who))
        return subscription(id=str(number), topic="k", owner="", options=options)

    anonymous = AnonymousSubscriptions(limit=2)
    first = made(1, "c1", "d1", "t1")
    for one in (first, made(2, "c1", "d2", "t2"), made(3, "c2", "d1", "t2"), made(4, *["x"] * 3)):
        anonymous.add(one)
    for who, limit in {
        ("c1", "d9", "t9"): "2 for one client",
        ("c9", "d1", "t9"): "2 for one domain of callbacks",
        ("c9", "d9", "t2"): "2 for one domain of topics",
    }.items():
        with pytest.raises(TooManySubscriptions) as caught:
            anonymous.require_room(AnonymousClient(*who))
        assert caught.value.limit == limit
    anonymous.remove(first)
    anonymous.require_room(AnonymousClient("c1", "d1", "t9"))
    assert len(anonymous.of("k")) == 3
    for number in range(10, 27):
        anonymous.add(made(number, *[str(number)] * 3))
    with pytest.raises(TooManySubscriptions, match="without credentials") as caught:
        anonymous.require_room(AnonymousClient("new", "new", "new"))
    assert caught.value.limit == "20 in all"


async def test_the_client_of_a_request() -> None:
    await domains.load()
    url, topic_url = "http://hooks.example.org/cb", "https://feeds.blog.example.net/all"
    asked = request(NEWS, url, topic_url=topic_url, client=CLIENT)
    assert anonymous_client_of(asked) == AnonymousClient(CLIENT, "example.org", "example.net")
    assert anonymous_client_of(request(NEWS, url)) is None


async def test_nothing_is_fetched_before_verification(
    house: House, callback: Callback, publisher: Callback
) -> None:
    await house.restart(hub_check_topics=True)
    callback.refusal = Answer(404)
    await house.hub.subscriptions.subscribe(to(publisher, callback))
    await until(lambda: len(callback.verifications) == 1, "question")
    rows = VerificationRepository(await house.hub.storage.database(), house.sealer)

    async def is_refused() -> bool:
        return await rows.all() == []

    await until(is_refused, "refusal")
    assert publisher.requests == []


async def test_nothing_is_fetched_during_an_alarm(
    house: House, broker: Broker, callback: Callback, publisher: Callback
) -> None:
    house.clock = ManualClock()
    await house.restart(fetch_gap_s=0.0)
    broker.alarms.bounds = Bounds(disk_free=1_000)
    broker.alarms.measure(Reading(disk_free_bytes=1))
    await house.hub.subscriptions.subscribe(to(publisher, callback))
    planned = house.hub.topics.scheduler.deadlines
    await until(lambda: planned.next_s() == SHORTAGE_AGAIN_S, "second look that is planned")
    assert publisher.requests == []
    broker.alarms.measure(Reading(disk_free_bytes=2_000))
    house.clock.advance(int(SHORTAGE_AGAIN_S * 1_000))
    house.hub.topics.scheduler.begin_due()
    assert [one.body for one in await deliveries(callback, 1)] == [b"one"]


async def test_nothing_is_fetched_while_all_are_paused(
    house: House, callback: Callback, publisher: Callback
) -> None:
    house.clock = ManualClock()
    await house.restart(fetch_gap_s=0.0)
    subscriptions, topics = house.hub.subscriptions, house.hub.topics
    for name in ("first", "second"):
        url = f"{callback.url}/{name}"
        await subscriptions.subscribe(replace(to(publisher, callback), callback=url))
    await deliveries(callback, 2)
    await settled(house, publisher.url)
    publisher.default = text("two")
    store = house.hub.subscription_store
    first, second = store.all()
    await store.pause(first, "by hand")
    await topics.ping([publisher.url])
    await deliveries(callback, 3)
    await settled(house, publisher.url)
    fetched = len(publisher.requests)
    await store.pause(second, "by hand")
    publisher.default = text("three")
    await topics.ping([publisher.url])
    await until(lambda: topics.scheduler.deadlines.next_s() == PAUSED_AGAIN_S, "pause of the topic")
    assert len(publisher.requests) == fetched
    await store.resume(second)
    house.hub.topics.scheduler.begin_due()
    assert (await deliveries(callback, 4))[-1].body == b"three"
    assert await house.depth(first.subscription.queue) == 2


async def test_a_dead_callback_is_paused(
    house: House,
    broker: Broker,
    callback: Callback,
    publisher: Callback,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When its content is spent, a message is tried again without a copy in a delay queue; none
    becomes a dead letter."""
    monkeypatch.setattr("warrenmq.hub.delivery.retry.DELAYS_S", (0.01,) * len(DELAYS_S))
    content = len(publisher.default.body)
    few = {"max_attempts": 3, "anonymous_dead_after_s": 0.0, "anonymous_bytes_per_hour": content}
    await house.restart(**few)
    callback.default = Answer(500)
    await house.hub.subscriptions.subscribe(to(publisher, callback))
    await until(lambda: bool(subscriptions_of(house.hub)), "subscription")
    await until(lambda: of(house).status is SubscriptionStatus.PAUSED, "pause")
    assert "3 failures, the last: status 500" in of(house).reason
    assert len(callback.deliveries) == 3
    assert not [name for name in broker.vhosts["/"].queues if "delay" in name]
    assert not await house.depth("hub.dead")

    async def is_back() -> bool:
        return await house.depth(of(house).queue) == 1

    await until(is_back, "message in its queue")
    callback.default = Answer()
    await house.hub.subscriptions.subscribe(to(publisher, callback))
    await until(lambda: of(house).status is SubscriptionStatus.ACTIVE, "renewal")
    assert (await deliveries(callback, 4))[-1].body == b"one"
