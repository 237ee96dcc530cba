"""Subscriptions over restarts, crashes, lost sources and the end of their lease."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from tests.support.http import Callback
from warren.core.clock import ManualClock
from warren.hub.engine.port import ExchangeSpec, QueueSpec
from warren.hub.storage import Storage
from warren.hub.subscription import Status, Subscription

from .support import INBOX, NEWS, House, deliveries, request, until


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
    storage = Storage(house.directory, None)
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
    assert await stored(house.directory) == [whole]


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
    assert await stored(house.directory) == []


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


async def stored(directory: Path) -> list[Subscription]:
    storage = Storage(directory, None)
    try:
        return await (await storage.repository()).all()
    finally:
        await storage.close()
