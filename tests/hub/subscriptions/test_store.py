"""Subscriptions over restarts, crashes, lost sources and the end of their lease."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.hub.support import subscriptions_of
from tests.support.http import Answer, Callback
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.errors import ConfigError
from warrenmq.core.vhosts import delete_vhost
from warrenmq.hub.engine.port import QueueSpec
from warrenmq.hub.errors import BadRequest, StorageFailed
from warrenmq.hub.requests import Resource
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.subscriptions.active import ActiveSubscription
from warrenmq.hub.subscriptions.expiry import REMOVED
from warrenmq.hub.subscriptions.repository import Repository
from warrenmq.hub.subscriptions.subscription import Subscription, SubscriptionStatus

from ..support import BASE_URL, INBOX, NEWS, House, deliveries, request, until


@pytest.fixture
def database_url(either_database: str | None) -> str | None:
    return either_database


async def test_a_start_undoes_unfinished_changes(house: House, callback: Callback) -> None:
    await house.subscribe(NEWS, callback)
    [whole] = subscriptions_of(house.hub)
    await house.stop()
    storage = Storage(house.directory, house.database_url, house.sealer)
    repository = await storage.repository()
    for status in (SubscriptionStatus.PENDING, SubscriptionStatus.ENDING):
        half = replace(whole, id=status.value, callback=status.value, status=status)
        await repository.add(half)
        await house.engine.declare_queue("/", QueueSpec(half.queue))
    undeclared = replace(whole, id="u", callback="u", status=SubscriptionStatus.PENDING)
    await repository.add(undeclared)
    await storage.close()

    house.hub = house.make_hub()
    await house.start()
    assert subscriptions_of(house.hub) == [whole]
    assert await house.depth(whole.queue) == 0
    for left in ("pending", "ending", "u"):
        assert await house.depth(f"hub.sub.{left}") is None
    assert await stored(house) == [whole]


async def test_subscriptions_end_with_the_vhost_of_their_sink(house: House, broker: Broker) -> None:
    broker.on_vhost_deleted = house.hub.subscriptions.forget_vhost
    broker.add_vhost("mine")
    sink = Resource("mine", "x", "amq.topic")
    token = house.hub.shortcuts.generate_token(sink, "subscribe")
    url = f"{BASE_URL}/mine/endpoint/x/amq.topic"
    await house.subscribe(INBOX, url, verify_token=token)
    delete_vhost(broker, "mine")
    await until(lambda: subscriptions_of(house.hub) == [], "the end of the subscription")


@pytest.mark.parametrize("failing", ["mark", "delete"])
async def test_a_failed_subscribe_can_be_repeated(
    house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    async def fail(*_: Any) -> None:
        raise StorageFailed("is gone", field="database")

    if failing == "delete":  # the end of an earlier one, which leaves its row
        await house.subscribe(NEWS, callback)
    with monkeypatch.context() as patch:
        for method in (failing, "delete"):
            patch.setattr(Repository, method, fail)
        asked = (
            house.hub.subscriptions.subscribe(request(NEWS, callback.url))
            if failing == "mark"
            else house.hub.subscriptions.unsubscribe(request(NEWS, callback.url))
        )
        with pytest.raises(StorageFailed):
            await asked
    assert subscriptions_of(house.hub) == []
    [left] = await stored(house)
    assert await house.depth(left.queue) is None

    await house.subscribe(NEWS, callback)
    assert await stored(house) == subscriptions_of(house.hub)
    await house.publish("k", b"again")
    assert [one.body for one in await deliveries(callback, 1)] == [b"again"]


async def test_an_unsubscribe_is_not_announced(house: House, callback: Callback) -> None:
    await house.subscribe(NEWS, callback)
    await house.hub.subscriptions.unsubscribe(request(NEWS, callback.url))
    await house.subscribe(INBOX, callback)
    callback.default = Answer(410)
    await house.post("in", "k", b"x")
    await until(lambda: subscriptions_of(house.hub) == [], "end of the subscription")
    active = await house.subscribe(NEWS, callback)
    await house.hub.subscription_store.end(active)
    assert callback.denials == []
    assert await stored(house) == []


async def test_a_denial_is_sent_after_a_restart(house: House, callback: Callback) -> None:
    subscription = (await house.subscribe(NEWS, callback)).subscription
    callback.denial_answers.append(Answer(500))
    await house.hub.subscriptions.remove(NEWS, "#", callback.url)
    await until(lambda: len(callback.denials) == 1, "the first try")
    await house.restart()
    assert subscriptions_of(house.hub) == []
    await until(lambda: is_stored(house, []), "deletion of the row")
    assert [one.query["hub.reason"] for one in callback.denials] == ["removed by an operator"] * 2
    assert await house.depth(subscription.queue) is None


async def test_a_subscribe_cancels_a_denial(house: House, callback: Callback) -> None:
    await house.subscribe(NEWS, callback)
    callback.denial_answers.append(Answer(500))
    await house.hub.subscriptions.remove(NEWS, "#", callback.url)
    await until(lambda: len(callback.denials) == 1, "the first try")
    await house.subscribe(NEWS, callback)
    await house.hub.subscription_store.forget(
        subscriptions_of(house.hub)[0]
    )  # had heard it just now
    await house.restart()
    assert await stored(house) == subscriptions_of(house.hub) != []
    await house.publish("k", b"goes on")
    assert [one.body for one in await deliveries(callback, 1)] == [b"goes on"]
    assert len(callback.denials) == 1


@pytest.mark.parametrize("how", ["subscribe", "resume"])
async def test_resuming_resets_failures(house: House, callback: Callback, how: str) -> None:
    active = await house.subscribe(NEWS, callback)
    active.failed("status 500", 1.0)
    await house.hub.attacher.suspend(active)  # as its breaker does
    await house.hub.subscription_store.pause(active, "too many errors")
    if how == "subscribe":
        await house.subscribe(NEWS, callback)
    else:
        await house.hub.subscription_store.resume(active)
    assert active.error_count == 0 and active.failure_state is None
    await house.publish("k", b"at once")
    assert [one.body for one in await deliveries(callback, 1)] == [b"at once"]


async def test_a_pause_does_not_stop_the_lease(house: House, callback: Callback) -> None:
    house.clock = ManualClock()
    await house.restart()
    active = await house.subscribe(NEWS, callback, lease_seconds="60")
    await house.hub.subscription_store.pause(active, "for now")
    assert await house.hub.subscription_store.renew(active, "120") == 120
    house.clock.advance(60_000)
    await house.hub.expiry.expire()
    await house.restart()
    [subscription] = subscriptions_of(house.hub)
    assert (subscription.lease_seconds, subscription.status) == (120, SubscriptionStatus.PAUSED)
    house.clock.advance(60_000)
    await house.hub.expiry.expire()
    assert subscriptions_of(house.hub) == []
    await until(lambda: len(callback.denials) == 1, "the denial")
    assert callback.denials[0].query["hub.reason"] == "the lease has ended"


async def test_an_unverified_subscription_has_no_queue(house: House, callback: Callback) -> None:
    for source in (NEWS, INBOX):
        result = await house.hub.subscriptions.put_inactive(request(source, callback.url))
        assert not result.verified
    await house.restart()
    news, inbox = sorted(house.hub.subscription_store.all(), key=lambda one: one.subscription.topic)
    assert {active.subscription.status for active in (news, inbox)} == {
        SubscriptionStatus.UNVERIFIED
    }
    assert await house.depth(f"hub.sub.{news.subscription.id}") is None
    assert await house.depth(f"hub.sub.{inbox.subscription.id}") is None
    with pytest.raises(BadRequest, match="never verified"):
        await house.hub.subscription_store.resume(news)
    await house.hub.subscription_store.pause(news, "no effect")
    assert news.subscription.status is SubscriptionStatus.UNVERIFIED
    assert callback.requests == []

    for source in (NEWS, INBOX):
        await house.subscribe(source, callback)
    await house.publish("k", b"news")
    await house.post("in", "k", b"in")
    assert {one.body for one in await deliveries(callback, 2)} == {b"news", b"in"}


async def test_a_binding_can_not_be_paused(house: House) -> None:
    token = house.hub.shortcuts.generate_token(INBOX, "subscribe")
    url = f"{BASE_URL}/endpoint/q/in"
    active = await house.subscribe(NEWS, url, verify_token=token)
    with pytest.raises(BadRequest, match="binding inside the broker"):
        await house.hub.subscription_store.pause(active, "for now")
    with pytest.raises(BadRequest, match="can't be kept inactive"):
        await house.hub.subscriptions.put_inactive(request(NEWS, url, verify_token=token))


async def test_changes_after_the_end_have_no_effect(house: House, callback: Callback) -> None:
    active = await house.subscribe(NEWS, callback)
    await house.hub.subscriptions.unsubscribe(request(NEWS, callback.url))
    await house.hub.subscription_store.pause(active, "too late")
    await house.hub.subscription_store.resume(active)
    await house.hub.subscription_store.renew(active, "60")
    await house.hub.subscription_store.end(active, REMOVED)
    assert await stored(house) == [] and subscriptions_of(house.hub) == []
    assert await house.depth(active.subscription.queue) is None


async def test_a_start_without_the_database_fails(
    house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: Repository) -> None:
        raise StorageFailed("is gone", field="database")

    await house.subscribe(NEWS, callback)
    with monkeypatch.context() as patch:
        patch.setattr(Repository, "all", fail)
        with pytest.raises(ConfigError, match="the hub's database: is gone"):
            await house.restart()
    await house.restart()
    assert len(subscriptions_of(house.hub)) == 1


@pytest.mark.parametrize(("clock_step_s", "left_s"), [(0, 10), (-1_000, 10), (4, 6), (1_000, 0)])
async def test_a_lease_is_never_longer_than_granted(
    house: House, clock_step_s: int, left_s: int
) -> None:
    house.clock = clock = ManualClock()
    await house.restart()
    expires_at = clock.wall_s() + 10
    subscription = Subscription("a", INBOX, "#", "http://a.b/", 10, expires_at, "guest")
    clock.step(clock_step_s)
    house.hub.subscription_store.enter(ActiveSubscription(subscription))
    assert house.hub.subscription_store.leases.next_s() == left_s


async def stored(house: House) -> list[Subscription]:
    return await (await house.hub.storage.repository()).all()


async def is_stored(house: House, expected: list[Subscription]) -> bool:
    return await stored(house) == expected
