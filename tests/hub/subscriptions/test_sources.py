"""What becomes of subscriptions whose source or sink is deleted, and declared again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.support.http import Callback
from tests.support.steps import STEPS_A_SLICE, count_steps
from warrenmq.core import slices
from warrenmq.core.broker import Broker
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.model import Table
from warrenmq.hub.engine.port import ExchangeSpec, QueueSpec
from warrenmq.hub.errors import BadRequest
from warrenmq.hub.requests import Resource
from warrenmq.hub.subscriptions.sources import Sources

from ..support import BASE_URL, INBOX, NEWS, House, deliveries, request, until


def sources_of(house: House) -> Sources:
    return house.hub._attacher.sources


async def test_an_exchange_that_is_deleted_under_its_subscriber(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    await house.publish("k", b"before")
    await house.engine.delete_exchange("/", "news")
    assert sources_of(house).waiting_count == 1
    await house.engine.declare_exchange("/", ExchangeSpec("news", "topic"))
    await until(lambda: not sources_of(house).waiting_count, "resumed subscription")
    await house.publish("k", b"after")
    got = await deliveries(callback, 2)
    assert [one.body for one in got] == [b"before", b"after"]


@pytest.mark.parametrize("gone", ["news", "in"])
async def test_a_binding_whose_source_or_sink_is_deleted_is_made_again(
    house: House, gone: str
) -> None:
    token = house.hub.shortcuts.generate_token(INBOX, "subscribe")
    bound = request(NEWS, f"{BASE_URL}/endpoint/q/in", verify_token=token)
    await house.hub.subscriptions.subscribe(bound)
    if gone == "news":
        await house.engine.delete_exchange("/", "news")
        await house.engine.declare_exchange("/", ExchangeSpec("news", "topic"))
    else:
        await house.engine.delete_queue("/", "in")
        await house.engine.declare_queue("/", QueueSpec("in"))
    await until(lambda: not sources_of(house).waiting_count, "resumed subscription")
    await house.publish("k", b"after")
    assert await house.depth("in") == 1


async def test_nobody_waits_for_what_is_gone_when_it_is_over(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    await house.hub.subscriptions.unsubscribe(request(NEWS, callback.url))
    await house.engine.delete_exchange("/", "news")
    assert sources_of(house).waiting_count == 0 and sources_of(house).bound_count == 0


async def test_what_is_left_is_not_followed(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    await house.engine.declare_exchange("/", ExchangeSpec("other", "topic"))
    other = replace(active.subscription, source=Resource("/", "x", "other"))
    house.hub._store.index.change(active, other)
    await house.hub._attacher.attach(active)
    await house.hub._attacher.leave(active, "news")
    await house.publish("k", b"to the one before")
    assert await house.depth(other.queue) == 0 and callback.deliveries == []
    await house.engine.delete_exchange("/", "news")
    assert sources_of(house).waiting_count == 0
    await house.engine.delete_exchange("/", "other")
    assert sources_of(house).waiting_count == 1


async def test_queues_that_can_not_be_subscribed_to(house: House, callback: Callback) -> None:
    """A message that failed would come back to a stream as a new one, for all of its readers."""
    stream: Table = {"x-queue-type": "stream"}
    await house.engine.declare_queue("/", QueueSpec("log", arguments=stream))
    await house.engine.declare_queue("/", QueueSpec("alone", exclusive=True, durable=False))
    subscribe = house.hub.subscriptions.subscribe
    with pytest.raises(BadRequest, match="is a stream"):
        await subscribe(request(Resource("/", "q", "log"), callback.url))
    with pytest.raises(ChannelError) as refused:
        await subscribe(request(Resource("/", "q", "alone"), callback.url))
    assert refused.value.code == 405
    assert callback.requests == []


@pytest.mark.parametrize("kind", ["topic", "x-recent-history"])
async def test_what_is_published_right_after_the_re_creation_arrives(
    house: House, callback: Callback, kind: str
) -> None:
    """However seldom the hub looks."""
    await house.restart(source_poll_s=3_600.0)
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, ""))
    [active] = house.hub.subscriptions.active_subscriptions()
    await house.engine.delete_exchange("/", "news")
    assert not active.is_served and active.waits_for == "exchange 'news' in vhost '/' was deleted"
    for number in range(2):
        await house.engine.declare_exchange("/", ExchangeSpec("news", kind))
        await house.publish("", b"%d" % number)
        await house.engine.delete_exchange("/", "news")
    assert [one.body for one in await deliveries(callback, 2)] == [b"0", b"1"]
    await house.engine.declare_exchange("/", ExchangeSpec("news", kind))
    await until(lambda: active.is_served, "subscription that is served")
    assert sources_of(house).waiting_count == 0


async def test_a_source_that_came_after_the_start_is_bound_as_it_is_made(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    await house.engine.delete_exchange("/", "news")
    await house.restart(source_poll_s=3_600.0)
    [active] = house.hub.subscriptions.active_subscriptions()
    assert active.waits_for == "no exchange 'news' in vhost '/'"
    await house.engine.declare_exchange("/", ExchangeSpec("news", "topic"))
    await house.publish("k", b"first")
    assert [one.body for one in await deliveries(callback, 1)] == [b"first"]


async def test_one_that_can_not_be_bound_anew_says_why(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, "eu.#"))
    [active] = house.hub.subscriptions.active_subscriptions()
    await house.engine.delete_exchange("/", "news")
    await house.engine.declare_exchange("/", ExchangeSpec("news", "x-consistent-hash"))
    await until(lambda: "must be an integer" in active.waits_for, "reason")
    assert not active.is_served
    await house.engine.delete_exchange("/", "news")
    await house.engine.declare_exchange("/", ExchangeSpec("news", "topic"))
    await until(lambda: active.is_served, "subscription that is served")


async def test_a_queue_that_is_deleted_and_declared_again(house: House, callback: Callback) -> None:
    await house.restart(source_poll_s=3_600.0)
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    await house.engine.delete_queue("/", "in")
    await until(lambda: not active.is_served, "suspended subscription")
    await house.engine.declare_queue("/", QueueSpec("in"))
    await house.post("in", "k", b"x")
    assert [one.body for one in await deliveries(callback, 1)] == [b"x"]
    assert active.is_served


MANY = 3 * STEPS_A_SLICE


async def keep_many(house: House) -> list[str]:
    """Subscribes so many queues to `news`; gives their names."""

    async def keep(name: str) -> None:
        await house.engine.declare_queue("/", QueueSpec(name))
        inbox = Resource("/", "q", name)
        token = house.hub.shortcuts.generate_token(inbox, "subscribe")
        target = f"{BASE_URL}/endpoint/q/{name}"
        await house.hub.subscriptions.subscribe(request(NEWS, target, verify_token=token))

    names = [f"in{number}" for number in range(MANY)]
    await asyncio.gather(*map(keep, names))
    return names


async def test_very_many_that_wait_miss_nothing_and_hold_up_nobody(
    house: House, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However seldom the hub looks, and whoever looks at the source meanwhile."""
    await house.restart(source_poll_s=3_600.0)
    names = await keep_many(house)
    count_steps(monkeypatch)
    monkeypatch.setattr(slices, "SLICES_A_TURN", 1)
    vhost = broker.vhosts["/"]
    deleting = asyncio.create_task(house.engine.delete_exchange("/", "news"))
    await asyncio.sleep(0)
    assert vhost.under_way and not deleting.done()
    assert sources_of(house).waiting_count == MANY
    declared = [asyncio.create_task(declare_news(house)) for _ in range(2)]
    await deleting
    bound: list[int] = []
    while not declared[0].done():
        await asyncio.sleep(0)
        bound.append(sum(bool(vhost.queues[name].bound) for name in names))
        assert "news" not in vhost.exchanges or bound[-1] == MANY
    await asyncio.gather(*declared)
    assert any(0 < count < MANY for count in bound)
    waiting: set[int] = set()
    while sources_of(house).waiting_count:
        waiting.add(sources_of(house).waiting_count)
        await asyncio.sleep(0)
    assert len(waiting) > MANY // 2, "others have their turn between two that are served again"
    await house.publish("k", b"first")
    assert [await house.depth(name) for name in names] == [1] * MANY


async def declare_news(house: House) -> None:
    await house.engine.declare_exchange("/", ExchangeSpec("news", "topic"))


async def test_one_that_ends_while_many_are_bound_again_is_not_bound(
    house: House, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.restart(source_poll_s=3_600.0)
    names = await keep_many(house)
    active_subscriptions = {
        active.subscription.sink: active
        for active in house.hub.subscriptions.active_subscriptions()
    }
    await house.engine.delete_exchange("/", "news")
    count_steps(monkeypatch)
    monkeypatch.setattr(slices, "SLICES_A_TURN", 1)
    declaring = asyncio.create_task(declare_news(house))
    await asyncio.sleep(0)
    ended = [active_subscriptions[Resource("/", "q", name)] for name in (names[0], names[-1])]
    await asyncio.gather(*(house.hub.subscriptions.end(active) for active in ended))
    await declaring
    await house.publish("k", b"first")
    depths = [await house.depth(name) for name in names]
    assert depths == [0, *([1] * (MANY - 2)), 0]
