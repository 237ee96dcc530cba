"""Subscriptions over restarts, crashes, lost sources and the end of their lease."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.support.http import Answer, Callback
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.errors import ConfigError
from warrenmq.core.vhosts import delete_vhost
from warrenmq.hub.engine.port import ExchangeSpec, QueueSpec
from warrenmq.hub.errors import BadRequest, StorageFailed
from warrenmq.hub.requests import Resource
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.subscriptions.repository import Repository
from warrenmq.hub.subscriptions.subscription import Status, Subscription

from ..support import BASE_URL, INBOX, NEWS, House, deliveries, request, until


@pytest.fixture
def database_url(either_database: str | None) -> str | None:
    return either_database


async def test_subscriptions_outlive_a_restart(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, "eu.#", secret="s3cret"))
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    before = house.hub.subscriptions.all()
    await house.stop()
    await house.publish("eu.fr", b"while it was down")
    house.hub = house.make_hub()
    await house.start()
    assert sorted(one.id for one in house.hub.subscriptions.all()) == sorted(o.id for o in before)
    assert set(house.hub.subscriptions.all()) == set(before)
    await house.post("in", "k", b"afterwards")
    got = await deliveries(callback, 2)
    assert {one.body for one in got} == {b"while it was down", b"afterwards"}


async def test_what_a_crash_left_half_done_is_undone(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [whole] = house.hub.subscriptions.all()
    await house.stop()
    storage = Storage(house.directory, house.database_url, house.sealer)
    repository = await storage.repository()
    for status in (Status.PENDING, Status.ENDING):
        half = replace(whole, id=status.value, callback=status.value, status=status)
        await repository.add(half)
        await house.engine.declare_queue("/", QueueSpec(half.queue))
    undeclared = replace(whole, id="u", callback="u", status=Status.PENDING)
    await repository.add(undeclared)
    await storage.close()

    house.hub = house.make_hub()
    await house.start()
    assert house.hub.subscriptions.all() == [whole]
    assert await house.depth(whole.queue) == 0
    for left in ("pending", "ending", "u"):
        assert await house.depth(f"hub.sub.{left}") is None
    assert await stored(house) == [whole]


async def test_a_lease_ends_while_the_hub_runs(house: House, callback: Callback) -> None:
    house.clock = ManualClock()
    await house.restart()
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, lease_seconds="60"))
    [subscription] = house.hub.subscriptions.all()
    house.clock.advance(59_000)
    await house.hub._expiry.expire()
    assert house.hub.subscriptions.all() == [subscription]
    house.clock.advance(1_000)
    await house.hub._expiry.expire()
    assert house.hub.subscriptions.all() == []
    assert await house.depth(subscription.queue) is None
    await until(lambda: is_stored(house, []), "deletion of the row")


async def test_the_end_of_a_lease_is_noticed(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, lease_seconds="1"))
    await until(lambda: house.hub.subscriptions.all() == [], "end of the lease")


async def test_a_lease_that_ended_in_between_is_not_resumed(
    house: House, callback: Callback
) -> None:
    house.clock = clock = ManualClock()
    await house.restart()
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, lease_seconds="60"))
    [subscription] = house.hub.subscriptions.all()
    await house.stop()
    await house.publish("k", b"too late")
    clock.advance(60_000)
    house.hub = house.make_hub()
    await house.start()
    assert house.hub.subscriptions.all() == []
    assert await house.depth(subscription.queue) is None
    assert callback.deliveries == []


async def test_a_source_that_comes_back_is_followed_again(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    [news, _] = house.hub.subscriptions.all()
    await house.stop()
    for queue in ("in", news.queue):  # as if the broker had lost its memory
        await house.engine.delete_queue("/", queue)
    await house.engine.delete_exchange("/", "news")
    house.hub = house.make_hub()
    await house.start()
    assert len(house.hub.subscriptions.all()) == 2

    await house.engine.declare_exchange("/", ExchangeSpec("news", "topic"))
    await house.engine.declare_queue("/", QueueSpec("in"))
    await until(lambda: not house.hub._attacher.sources.waiting_count, "resumed subscription")
    await house.publish("k", b"news")
    await house.post("in", "k", b"in")
    got = await deliveries(callback, 2)
    assert {one.body for one in got} == {b"news", b"in"}


async def test_a_queue_that_is_deleted_under_its_subscriber(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    await house.engine.delete_queue("/", "in")
    await house.engine.declare_queue("/", QueueSpec("in"))
    await until(lambda: not house.hub._attacher.sources.waiting_count, "resumed subscription")
    await house.post("in", "k", b"again")
    assert len(await deliveries(callback, 1)) == 1


async def test_subscriptions_end_with_their_vhost(
    house: House, broker: Broker, callback: Callback
) -> None:
    """Whoever makes another one of that name has not let them in."""
    news, inbox = Resource("mine", "x", "amq.topic"), Resource("mine", "q", "in")
    broker.on_vhost_deleted = house.hub.subscriptions.forget_vhost
    broker.add_vhost("mine")
    await house.engine.declare_queue("mine", QueueSpec("in"))
    for source in (news, inbox, NEWS):
        await house.hub.subscriptions.subscribe(request(source, callback.url))
    delete_vhost(broker, "mine")
    [left] = [one for one in house.hub.subscriptions.all() if one.source == NEWS]

    await until(lambda: is_stored(house, [left]), "the end of two subscriptions")
    assert house.hub.subscriptions.all() == [left]
    broker.add_vhost("mine")
    await house.hub._attacher.sources.retry()
    assert broker.vhosts["mine"].queues == {}


async def test_subscriptions_end_with_the_vhost_of_their_sink(house: House, broker: Broker) -> None:
    broker.on_vhost_deleted = house.hub.subscriptions.forget_vhost
    broker.add_vhost("mine")
    sink = Resource("mine", "x", "amq.topic")
    token = house.hub.shortcuts.generate_token(sink, "subscribe")
    url = f"{BASE_URL}/mine/endpoint/x/amq.topic"
    await house.hub.subscriptions.subscribe(request(INBOX, url, verify_token=token))
    delete_vhost(broker, "mine")
    await until(lambda: house.hub.subscriptions.all() == [], "the end of the subscription")


async def test_the_same_subscribe_many_times_at_once_is_one(
    house: House, callback: Callback
) -> None:
    asked = request(NEWS, callback.url)
    await asyncio.gather(*(house.hub.subscriptions.subscribe(asked) for _ in range(10)))
    assert len(house.hub.subscriptions.all()) == 1
    await house.publish("k", b"once")
    await house.publish("k", b"twice")
    got = await deliveries(callback, 2)
    assert [one.body for one in got] == [b"once", b"twice"]


@pytest.mark.parametrize("failing", ["mark", "delete"])
async def test_a_subscribe_that_the_database_failed_can_be_asked_again(
    house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    async def fail(*_: Any) -> None:
        raise StorageFailed("is gone", field="database")

    if failing == "delete":  # the end of an earlier one, which leaves its row
        await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
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
    assert house.hub.subscriptions.all() == []
    [left] = await stored(house)
    assert await house.depth(left.queue) is None

    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    assert await stored(house) == house.hub.subscriptions.all()
    await house.publish("k", b"again")
    assert [one.body for one in await deliveries(callback, 1)] == [b"again"]


async def test_a_removed_subscription_is_denied_and_forgotten(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, "eu.#"))
    [subscription] = house.hub.subscriptions.all()
    await house.hub.subscriptions.remove(NEWS, "eu.#", callback.url)
    assert await house.depth(subscription.queue) is None
    await until(lambda: is_stored(house, []), "deletion of the row")
    [denial] = callback.denials
    assert denial.query["hub.topic"] == "eu.#"
    assert denial.query["hub.reason"] == "removed by an operator"


async def test_who_unsubscribes_or_is_gone_is_not_denied(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    await house.hub.subscriptions.unsubscribe(request(NEWS, callback.url))
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    callback.default = Answer(410)
    await house.post("in", "k", b"x")
    await until(lambda: house.hub.subscriptions.all() == [], "end of the subscription")
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    await house.hub._store.end(active, "for the log alone")
    assert callback.denials == [] and house.hub._denials.count == 0
    assert await stored(house) == []


async def test_a_denial_that_was_not_told_is_told_after_a_restart(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [subscription] = house.hub.subscriptions.all()
    callback.denial_answers.append(Answer(500))
    await house.hub.subscriptions.remove(NEWS, "#", callback.url)
    await until(lambda: len(callback.denials) == 1, "the first try")
    await house.restart()
    assert house.hub.subscriptions.all() == []
    await until(lambda: is_stored(house, []), "deletion of the row")
    assert [one.query["hub.reason"] for one in callback.denials] == ["removed by an operator"] * 2
    assert await house.depth(subscription.queue) is None


async def test_a_subscribe_before_the_denial_is_told_wins(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    callback.denial_answers.append(Answer(500))
    await house.hub.subscriptions.remove(NEWS, "#", callback.url)
    await until(lambda: len(callback.denials) == 1, "the first try")
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    assert house.hub._denials.count == 0
    await house.hub._store.forget(house.hub.subscriptions.all()[0])  # had heard it just now
    await house.restart()
    assert await stored(house) == house.hub.subscriptions.all() != []
    await house.publish("k", b"goes on")
    assert [one.body for one in await deliveries(callback, 1)] == [b"goes on"]
    assert len(callback.denials) == 1


async def test_a_subscribe_while_the_denial_is_under_way_keeps_its_row(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    callback.denial_answers.append(Answer(hang=True))
    await house.hub.subscriptions.remove(NEWS, "#", callback.url)
    await until(lambda: len(callback.denials) == 1, "the denial under way")
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    await house.restart()
    assert await stored(house) == house.hub.subscriptions.all() != []


@pytest.mark.parametrize("source", [NEWS, INBOX])
async def test_a_paused_subscription_gathers_until_it_is_resumed(
    house: House, callback: Callback, source: Resource
) -> None:
    await house.hub.subscriptions.subscribe(request(source, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    await house.hub.subscriptions.pause(active, "too many errors")
    assert active.consumption is None
    await publish(house, source, b"one")
    await house.restart()
    await publish(house, source, b"two")
    [active] = house.hub.subscriptions.active_subscriptions()
    assert active.subscription.status is Status.PAUSED
    assert active.subscription.reason == "too many errors"
    assert await house.depth(active.subscription.queue) == 2 and callback.deliveries == []
    await house.hub.subscriptions.resume(active)
    assert [one.body for one in await deliveries(callback, 2)] == [b"one", b"two"]
    assert (active.subscription.status, active.subscription.reason) == (Status.ACTIVE, "")
    assert await stored(house) == house.hub.subscriptions.all()


async def test_a_subscribe_makes_a_paused_one_active(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    await house.hub.subscriptions.pause(active, "for now")
    await house.publish("k", b"meanwhile")
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    assert [one.body for one in await deliveries(callback, 1)] == [b"meanwhile"]
    assert (active.subscription.status, active.subscription.reason) == (Status.ACTIVE, "")
    assert house.hub.subscriptions.active_subscriptions() == [active]


@pytest.mark.parametrize("how", ["subscribe", "resume"])
async def test_whatever_makes_it_active_forgets_its_errors(
    house: House, callback: Callback, how: str
) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    active.failed("status 500", 1.0)
    await house.hub._attacher.suspend(active)  # as its breaker does
    await house.hub.subscriptions.pause(active, "too many errors")
    if how == "subscribe":
        await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    else:
        await house.hub.subscriptions.resume(active)
    assert active.error_count == 0 and active.failure_state is None
    await house.publish("k", b"at once")
    assert [one.body for one in await deliveries(callback, 1)] == [b"at once"]


async def test_a_lease_goes_on_while_it_is_paused(house: House, callback: Callback) -> None:
    house.clock = ManualClock()
    await house.restart()
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, lease_seconds="60"))
    [active] = house.hub.subscriptions.active_subscriptions()
    await house.hub.subscriptions.pause(active, "for now")
    assert await house.hub.subscriptions.renew(active, "120") == 120
    house.clock.advance(60_000)
    await house.hub._expiry.expire()
    await house.restart()
    [subscription] = house.hub.subscriptions.all()
    assert (subscription.lease_seconds, subscription.status) == (120, Status.PAUSED)
    house.clock.advance(60_000)
    await house.hub._expiry.expire()
    assert house.hub.subscriptions.all() == []
    await until(lambda: len(callback.denials) == 1, "the denial")
    assert callback.denials[0].query["hub.reason"] == "the lease has ended"


async def test_what_is_uploaded_inactive_gathers_nothing(house: House, callback: Callback) -> None:
    for source in (NEWS, INBOX):
        result = await house.hub.subscriptions.put_inactive(request(source, callback.url))
        assert not result.verified
    await house.restart()
    news, inbox = sorted(
        house.hub.subscriptions.active_subscriptions(), key=lambda one: one.subscription.topic
    )
    assert {active.subscription.status for active in (news, inbox)} == {Status.UNVERIFIED}
    assert await house.depth(f"hub.sub.{news.subscription.id}") is None
    assert await house.depth(f"hub.sub.{inbox.subscription.id}") is None
    with pytest.raises(BadRequest, match="never verified"):
        await house.hub.subscriptions.resume(news)
    await house.hub.subscriptions.pause(news, "no effect")
    assert news.subscription.status is Status.UNVERIFIED
    assert callback.requests == []

    for source in (NEWS, INBOX):
        await house.hub.subscriptions.subscribe(request(source, callback.url))
    await house.publish("k", b"news")
    await house.post("in", "k", b"in")
    assert {one.body for one in await deliveries(callback, 2)} == {b"news", b"in"}


async def test_what_is_uploaded_inactive_pauses_what_was_active(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    await house.hub.subscriptions.put_inactive(request(NEWS, callback.url, lease_seconds="77"))
    [active] = house.hub.subscriptions.active_subscriptions()
    assert (active.subscription.status, active.subscription.lease_seconds) == (Status.PAUSED, 77)
    assert active.consumption is None
    await house.publish("k", b"later")
    assert await house.depth(active.subscription.queue) == 1
    await house.hub.subscriptions.resume(active)
    assert [one.body for one in await deliveries(callback, 1)] == [b"later"]


async def test_nobody_is_told_the_end_of_what_nobody_agreed_to(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.put_inactive(request(NEWS, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    await house.hub.subscriptions.end(active)
    assert await stored(house) == [] and house.hub._denials.count == 0


async def test_a_binding_inside_the_broker_can_not_be_paused(house: House) -> None:
    token = house.hub.shortcuts.generate_token(INBOX, "subscribe")
    url = f"{BASE_URL}/endpoint/q/in"
    await house.hub.subscriptions.subscribe(request(NEWS, url, verify_token=token))
    [active] = house.hub.subscriptions.active_subscriptions()
    with pytest.raises(BadRequest, match="binding inside the broker"):
        await house.hub.subscriptions.pause(active, "for now")
    with pytest.raises(BadRequest, match="can't be kept inactive"):
        await house.hub.subscriptions.put_inactive(request(NEWS, url, verify_token=token))


async def test_what_is_over_stays_over(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    await house.hub.subscriptions.unsubscribe(request(NEWS, callback.url))
    await house.hub.subscriptions.pause(active, "too late")
    await house.hub.subscriptions.resume(active)
    await house.hub.subscriptions.renew(active, "60")
    await house.hub.subscriptions.end(active)
    assert await stored(house) == [] and house.hub.subscriptions.all() == []
    assert await house.depth(active.subscription.queue) is None


async def test_a_subscription_is_found_by_its_id(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    assert house.hub.subscriptions.by_id(active.subscription.id) is active
    assert house.hub.subscriptions.find(active.subscription.identity) is active
    await house.hub.subscriptions.end(active)
    assert house.hub.subscriptions.by_id(active.subscription.id) is None


async def test_a_start_that_the_database_fails_is_told(
    house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: Repository) -> None:
        raise StorageFailed("is gone", field="database")

    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    with monkeypatch.context() as patch:
        patch.setattr(Repository, "all", fail)
        with pytest.raises(ConfigError, match="the hub's database: is gone"):
            await house.restart()
    await house.restart()
    assert len(house.hub.subscriptions.all()) == 1


async def publish(house: House, source: Resource, body: bytes) -> None:
    if source.kind == "x":
        await house.publish("k", body)
    else:
        await house.post(source.name, "k", body)


async def stored(house: House) -> list[Subscription]:
    return await (await house.hub._storage.repository()).all()


async def is_stored(house: House, expected: list[Subscription]) -> bool:
    return await stored(house) == expected
