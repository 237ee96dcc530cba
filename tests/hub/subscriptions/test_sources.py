"""What becomes of subscriptions whose source or sink is deleted, and declared again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.support.http import Callback
from tests.support.steps import STEPS_A_SLICE, count_steps
from warrenmq.core import slices
from warrenmq.core.broker import Broker
from warrenmq.hub.engine.port import ExchangeSpec, QueueSpec
from warrenmq.hub.requests import Resource
from warrenmq.hub.subscriptions.expiry import REMOVED
from warrenmq.hub.subscriptions.sources import MissingSources

from ..support import BASE_URL, INBOX, NEWS, House, deliveries, request, until


def sources_of(house: House) -> MissingSources:
    return house.hub.attacher.sources


@pytest.mark.parametrize("gone", ["news", "in"])
async def test_a_binding_is_made_again(house: House, gone: str) -> None:
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


async def test_an_ended_subscription_does_not_wait(house: House, callback: Callback) -> None:
    await house.subscribe(NEWS, callback)
    await house.hub.subscriptions.unsubscribe(request(NEWS, callback.url))
    await house.engine.delete_exchange("/", "news")
    assert sources_of(house).waiting_count == 0 and sources_of(house).bound_count == 0


async def test_the_deletion_of_a_former_source_has_no_effect(
    house: House, callback: Callback
) -> None:
    active = await house.subscribe(NEWS, callback)
    await house.engine.declare_exchange("/", ExchangeSpec("other", "topic"))
    other = replace(active.subscription, source=Resource("/", "x", "other"))
    active.change(other)
    await house.hub.attacher.attach(active)
    await house.hub.attacher.leave(active, "news")
    await house.publish("k", b"to the one before")
    assert await house.depth(other.queue) == 0 and callback.deliveries == []
    await house.engine.delete_exchange("/", "news")
    assert sources_of(house).waiting_count == 0
    await house.engine.delete_exchange("/", "other")
    assert sources_of(house).waiting_count == 1


@pytest.mark.parametrize("kind", ["topic", "x-recent-history"])
async def test_messages_right_after_the_declaration(
    house: House, callback: Callback, kind: str
) -> None:
    """However seldom the hub looks."""
    await house.restart(source_poll_s=3_600.0)
    active = await house.subscribe(NEWS, callback, "")
    await house.engine.delete_exchange("/", "news")
    assert (
        not active.is_served
        and active.state.missing_source == "exchange 'news' in vhost '/' was deleted"
    )
    for number in range(2):
        await house.engine.declare_exchange("/", ExchangeSpec("news", kind))
        await house.publish("", b"%d" % number)
        await house.engine.delete_exchange("/", "news")
    assert [one.body for one in await deliveries(callback, 2)] == [b"0", b"1"]
    await house.engine.declare_exchange("/", ExchangeSpec("news", kind))
    await until(lambda: active.is_served, "subscription that is served")
    assert sources_of(house).waiting_count == 0


async def test_a_source_declared_after_the_start(house: House, callback: Callback) -> None:
    await house.subscribe(NEWS, callback)
    await house.engine.delete_exchange("/", "news")
    await house.restart(source_poll_s=3_600.0)
    [active] = house.hub.subscription_store.all()
    assert active.state.missing_source == "no exchange 'news' in vhost '/'"
    await house.engine.declare_exchange("/", ExchangeSpec("news", "topic"))
    await house.publish("k", b"first")
    assert [one.body for one in await deliveries(callback, 1)] == [b"first"]


async def test_a_binding_that_fails_has_a_reason(house: House, callback: Callback) -> None:
    active = await house.subscribe(NEWS, callback, "eu.#")
    await house.engine.delete_exchange("/", "news")
    await house.engine.declare_exchange("/", ExchangeSpec("news", "x-consistent-hash"))
    await until(lambda: "must be an integer" in active.state.missing_source, "reason")
    assert not active.is_served
    await house.engine.delete_exchange("/", "news")
    await house.engine.declare_exchange("/", ExchangeSpec("news", "topic"))
    await until(lambda: active.is_served, "subscription that is served")


MANY = 3 * STEPS_A_SLICE


async def keep_many(house: House) -> list[str]:
    """Subscribes so many queues to `news`; gives their names."""

    async def keep(name: str) -> None:
        await house.engine.declare_queue("/", QueueSpec(name))
        inbox = Resource("/", "q", name)
        token = house.hub.shortcuts.generate_token(inbox, "subscribe")
        target = f"{BASE_URL}/endpoint/q/{name}"
        await house.subscribe(NEWS, target, verify_token=token)

    names = [f"in{number}" for number in range(MANY)]
    await asyncio.gather(*map(keep, names))
    return names


async def test_many_are_bound_again_in_slices(
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
    assert vhost.busy_names and not deleting.done()
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


async def test_an_end_during_the_slices(
    house: House, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.restart(source_poll_s=3_600.0)
    names = await keep_many(house)
    active_subscriptions = {
        active.subscription.sink: active for active in house.hub.subscription_store.all()
    }
    await house.engine.delete_exchange("/", "news")
    count_steps(monkeypatch)
    monkeypatch.setattr(slices, "SLICES_A_TURN", 1)
    declaring = asyncio.create_task(declare_news(house))
    await asyncio.sleep(0)
    ended = [active_subscriptions[Resource("/", "q", name)] for name in (names[0], names[-1])]
    await asyncio.gather(*(house.hub.subscription_store.end(active, REMOVED) for active in ended))
    await declaring
    await house.publish("k", b"first")
    depths = [await house.depth(name) for name in names]
    assert depths == [0, *([1] * (MANY - 2)), 0]
