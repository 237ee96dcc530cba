"""Subscriptions over restarts, crashes, lost sources and the end of their lease."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.support.http import Callback
from warren.core.broker import Broker
from warren.core.clock import ManualClock
from warren.core.errors import ConfigError
from warren.core.vhosts import delete_vhost
from warren.hub.engine.port import ExchangeSpec, QueueSpec
from warren.hub.errors import StorageFailed
from warren.hub.repository import Repository
from warren.hub.requests import Resource
from warren.hub.storage import Storage
from warren.hub.subscription import Status, Subscription

from .support import BASE_URL, INBOX, NEWS, House, deliveries, request, until


@pytest.fixture
def database_url(either_database: str | None) -> str | None:
    return either_database


async def test_subscriptions_outlive_a_restart(house: House, callback: Callback) -> None:
    await house.hub.subscribe(request(NEWS, callback.url, "eu.#", secret="s3cret"))
    await house.hub.subscribe(request(INBOX, callback.url))
    before = house.hub.subscriptions()
    await house.stop()
    await house.publish("eu.fr", b"while it was down")
    house.hub = house.make_hub()
    await house.start()
    assert sorted(one.id for one in house.hub.subscriptions()) == sorted(o.id for o in before)
    assert set(house.hub.subscriptions()) == set(before)
    await house.post("in", "k", b"afterwards")
    got = await deliveries(callback, 2)
    assert {one.body for one in got} == {b"while it was down", b"afterwards"}


async def test_what_a_crash_left_half_done_is_undone(house: House, callback: Callback) -> None:
    await house.hub.subscribe(request(NEWS, callback.url))
    [whole] = house.hub.subscriptions()
    await house.stop()
    storage = Storage(house.directory, house.database_url)
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
    assert house.hub.subscriptions() == [whole]
    assert await house.depth(whole.queue) == 0
    for left in ("pending", "ending", "u"):
        assert await house.depth(f"hub.sub.{left}") is None
    assert await stored(house) == [whole]


async def test_a_lease_ends_while_the_hub_runs(house: House, callback: Callback) -> None:
    house.clock = ManualClock()
    await house.restart()
    await house.hub.subscribe(request(NEWS, callback.url, lease_seconds="60"))
    [subscription] = house.hub.subscriptions()
    house.clock.advance(59_000)
    await house.hub._book.expire()
    assert house.hub.subscriptions() == [subscription]
    house.clock.advance(1_000)
    await house.hub._book.expire()
    assert house.hub.subscriptions() == []
    assert await house.depth(subscription.queue) is None
    assert await stored(house) == []


async def test_the_end_of_a_lease_is_noticed(house: House, callback: Callback) -> None:
    await house.hub.subscribe(request(NEWS, callback.url, lease_seconds="1"))
    await until(lambda: house.hub.subscriptions() == [], "end of the lease")


async def test_a_lease_that_ended_in_between_is_not_resumed(
    house: House, callback: Callback
) -> None:
    house.clock = clock = ManualClock()
    await house.restart()
    await house.hub.subscribe(request(NEWS, callback.url, lease_seconds="60"))
    [subscription] = house.hub.subscriptions()
    await house.stop()
    await house.publish("k", b"too late")
    clock.advance(60_000)
    house.hub = house.make_hub()
    await house.start()
    assert house.hub.subscriptions() == []
    assert await house.depth(subscription.queue) is None
    assert callback.deliveries == []


async def test_a_source_that_comes_back_is_followed_again(house: House, callback: Callback) -> None:
    await house.hub.subscribe(request(NEWS, callback.url))
    await house.hub.subscribe(request(INBOX, callback.url))
    [news, _] = house.hub.subscriptions()
    await house.stop()
    for queue in ("in", news.queue):  # as if the broker had lost its memory
        await house.engine.delete_queue("/", queue)
    await house.engine.delete_exchange("/", "news")
    house.hub = house.make_hub()
    await house.start()
    assert len(house.hub.subscriptions()) == 2

    await house.engine.declare_exchange("/", ExchangeSpec("news", "topic"))
    await house.engine.declare_queue("/", QueueSpec("in"))
    await until(lambda: not house.hub._attacher.waiting_count, "resumed subscription")
    await house.publish("k", b"news")
    await house.post("in", "k", b"in")
    got = await deliveries(callback, 2)
    assert {one.body for one in got} == {b"news", b"in"}


async def test_a_queue_that_is_deleted_under_its_subscriber(
    house: House, callback: Callback
) -> None:
    await house.hub.subscribe(request(INBOX, callback.url))
    await house.engine.delete_queue("/", "in")
    await house.engine.declare_queue("/", QueueSpec("in"))
    await until(lambda: not house.hub._attacher.waiting_count, "resumed subscription")
    await house.post("in", "k", b"again")
    assert len(await deliveries(callback, 1)) == 1


async def test_subscriptions_end_with_their_vhost(
    house: House, broker: Broker, callback: Callback
) -> None:
    """Whoever makes another one of that name has not let them in."""
    news, inbox = Resource("mine", "x", "amq.topic"), Resource("mine", "q", "in")
    broker.on_vhost_deleted = house.hub.forget_vhost
    broker.add_vhost("mine")
    await house.engine.declare_queue("mine", QueueSpec("in"))
    for source in (news, inbox, NEWS):
        await house.hub.subscribe(request(source, callback.url))
    delete_vhost(broker, "mine")
    [left] = [one for one in house.hub.subscriptions() if one.source == NEWS]

    async def over() -> bool:
        return await stored(house) == [left]

    await until(over, "the end of two subscriptions")
    assert house.hub.subscriptions() == [left]
    broker.add_vhost("mine")
    await house.hub._attacher.retry_waiting()
    assert broker.vhosts["mine"].queues == {}


async def test_subscriptions_end_with_the_vhost_of_their_sink(house: House, broker: Broker) -> None:
    broker.on_vhost_deleted = house.hub.forget_vhost
    broker.add_vhost("mine")
    sink = Resource("mine", "x", "amq.topic")
    token = house.hub.generate_token(sink, "subscribe")
    url = f"{BASE_URL}/mine/endpoint/x/amq.topic"
    await house.hub.subscribe(request(INBOX, url, verify_token=token))
    delete_vhost(broker, "mine")
    await until(lambda: house.hub.subscriptions() == [], "the end of the subscription")


async def test_the_same_subscribe_many_times_at_once_is_one(
    house: House, callback: Callback
) -> None:
    asked = request(NEWS, callback.url)
    await asyncio.gather(*(house.hub.subscribe(asked) for _ in range(10)))
    assert len(house.hub.subscriptions()) == 1
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
        await house.hub.subscribe(request(NEWS, callback.url))
    with monkeypatch.context() as patch:
        for method in (failing, "delete"):
            patch.setattr(Repository, method, fail)
        asked = (
            house.hub.subscribe(request(NEWS, callback.url))
            if failing == "mark"
            else house.hub.remove(NEWS, "#", callback.url)
        )
        with pytest.raises(StorageFailed):
            await asked
    assert house.hub.subscriptions() == []
    [left] = await stored(house)
    assert await house.depth(left.queue) is None

    await house.hub.subscribe(request(NEWS, callback.url))
    assert await stored(house) == house.hub.subscriptions()
    await house.publish("k", b"again")
    assert [one.body for one in await deliveries(callback, 1)] == [b"again"]


async def test_a_start_that_the_database_fails_is_told(
    house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: Repository) -> None:
        raise StorageFailed("is gone", field="database")

    await house.hub.subscribe(request(NEWS, callback.url))
    with monkeypatch.context() as patch:
        patch.setattr(Repository, "all", fail)
        with pytest.raises(ConfigError, match="the hub's database: is gone"):
            await house.restart()
    await house.restart()
    assert len(house.hub.subscriptions()) == 1


async def stored(house: House) -> list[Subscription]:
    return await (await house.hub._storage.repository()).all()
