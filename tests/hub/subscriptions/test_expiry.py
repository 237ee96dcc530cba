"""Subscriptions that end by themselves: their lease, their owner's rights, their vhost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.http import Callback
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.vhosts import delete_vhost
from warrenmq.hub.engine.port import QueueSpec
from warrenmq.hub.errors import StorageFailed
from warrenmq.hub.owner_rights import EverybodyMay, refusal
from warrenmq.hub.requests import Resource
from warrenmq.hub.subscriptions import expiry
from warrenmq.hub.subscriptions.repository import Repository

from ..support import BASE_URL, INBOX, NEWS, House, deliveries, request, until


class Changing(EverybodyMay):
    """Rights that a test takes away; tells those who watch."""

    def __init__(self) -> None:
        self.refused: dict[tuple[str, Resource], str] = {}
        self.watched: dict[str, Callable[[str], None]] = {}

    def refuse_read(self, owner: str, resource: Resource, routing_key: str) -> str | None:
        return self.refused.get((owner, resource))

    def refuse_write(self, owner: str, resource: Resource, routing_key: str | None) -> str | None:
        return self.refused.get((owner, resource))

    def watch(self, owner: str, changed: Callable[[str], None]) -> None:
        self.watched[owner] = changed

    def unwatch(self, owner: str) -> None:
        del self.watched[owner]

    def take(self, owner: str, resource: Resource) -> None:
        self.refused[owner, resource] = f"no {resource}"
        self.watched[owner](owner)


@pytest.fixture
async def rights(house: House) -> Changing:
    house.rights = rights = Changing()
    await house.restart()
    return rights


async def ended(house: House, left: int) -> None:
    """Rows stay until their callbacks have been told."""
    repository = await house.hub._storage.repository()

    async def is_left() -> bool:
        return len(await repository.all()) == left

    await until(is_left, f"{left} subscriptions left")


def reasons(callback: Callback) -> list[str]:
    return [one.query["hub.reason"] for one in callback.denials]


async def test_a_lost_right_ends_what_it_was_needed_for(
    house: House, rights: Changing, callback: Callback
) -> None:
    for source in (NEWS, INBOX):
        await house.hub.subscriptions.subscribe(request(source, callback.url))
    of_bob = replace(request(NEWS, callback.url, "of.bob"), user="bob")
    await house.hub.subscriptions.subscribe(of_bob)
    rights.take("guest", NEWS)
    await ended(house, 2)
    assert reasons(callback) == [f"no {NEWS}"]
    await house.publish("of.bob", b"goes on")
    assert [one.body for one in await deliveries(callback, 1)] == [b"goes on"]


async def test_a_paused_one_ends_with_its_right(
    house: House, rights: Changing, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    await house.hub.subscriptions.pause(active, "for now")
    rights.take("guest", NEWS)
    await ended(house, 0)
    assert reasons(callback) == [f"no {NEWS}"]
    assert await house.depth(active.subscription.queue) is None


async def test_a_right_on_the_sink_counts_too(house: House, rights: Changing) -> None:
    token = house.hub.shortcuts.generate_token(INBOX, "subscribe")
    bound = request(NEWS, f"{BASE_URL}/endpoint/q/in", verify_token=token)
    await house.hub.subscriptions.subscribe(bound)
    rights.take("guest", INBOX)
    await ended(house, 0)
    await house.publish("k", b"x")
    assert await house.depth("in") == 0


async def test_rights_that_were_lost_while_the_hub_was_down(
    house: House, rights: Changing, callback: Callback
) -> None:
    for source in (NEWS, INBOX):
        await house.hub.subscriptions.subscribe(request(source, callback.url))
    await house.stop()
    rights.refused["guest", NEWS] = "not any more"
    await house.publish("k", b"not for them")
    house.hub = house.make_hub()
    await house.start()
    await ended(house, 1)
    assert reasons(callback) == ["not any more"] and callback.deliveries == []


async def test_another_owner_is_watched_from_then_on(
    house: House, rights: Changing, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    await house.hub._store.put(replace(active.subscription, owner="bob"))
    assert list(rights.watched) == ["bob"]
    rights.refused["guest", NEWS] = "not any more"
    await house.hub._expiry.recheck(["guest"])
    assert house.hub.subscriptions.active_subscriptions() == [active]
    rights.take("bob", NEWS)
    await ended(house, 0)
    assert rights.watched == {}


async def test_a_lease_that_ends_is_told(house: House, callback: Callback) -> None:
    house.clock = ManualClock()
    await house.restart()
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, lease_seconds="60"))
    house.clock.advance(60_000)
    await house.hub._expiry.expire()
    await ended(house, 0)
    assert reasons(callback) == ["the lease has ended"]


async def test_a_lease_that_ended_while_the_hub_was_down_is_told(
    house: House, callback: Callback
) -> None:
    house.clock = ManualClock()
    await house.restart()
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, lease_seconds="60"))
    await house.stop()
    house.clock.advance(60_000)
    house.hub = house.make_hub()
    await house.start()
    await ended(house, 0)
    assert reasons(callback) == ["the lease has ended"]


async def test_a_vhost_that_is_deleted_is_told(
    house: House, broker: Broker, callback: Callback
) -> None:
    broker.on_vhost_deleted = house.hub.subscriptions.forget_vhost
    broker.add_vhost("mine")
    await house.engine.declare_queue("mine", QueueSpec("in"))
    inbox = Resource("mine", "q", "in")
    await house.hub.subscriptions.subscribe(request(inbox, callback.url))
    delete_vhost(broker, "mine")
    await ended(house, 0)
    assert reasons(callback) == ["the virtual host 'mine' was deleted"]


@pytest.mark.parametrize("ending", ["lease", "right", "vhost"])
async def test_an_end_that_the_database_failed_is_tried_again(
    house: House,
    rights: Changing,
    callback: Callback,
    monkeypatch: pytest.MonkeyPatch,
    ending: str,
) -> None:
    monkeypatch.setattr(expiry, "END_AGAIN_S", 0.01)
    failures = [StorageFailed("is gone", field="database")] * 3
    mark = Repository.mark

    async def fail_at_first(*given: Any) -> None:
        if failures:
            raise failures.pop()
        await mark(*given)

    asked = request(NEWS, callback.url, lease_seconds="3" if ending == "lease" else None)
    await house.hub.subscriptions.subscribe(asked)
    monkeypatch.setattr(Repository, "mark", fail_at_first)
    if ending == "right":
        rights.take("guest", NEWS)
    elif ending == "vhost":
        house.hub.subscriptions.forget_vhost("/")
    await ended(house, 0)
    assert not failures and len(callback.denials) == 1


async def test_external_topics_are_everybodys(
    house: House, rights: Changing, callback: Callback
) -> None:
    topics = Resource("/", "x", "hub.topics")
    rights.refused["guest", topics] = "not for users"
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [one] = house.hub.subscriptions.all()
    feed = replace(one, source=topics, topic_url="https://a.b/feed")
    assert refusal(rights, feed) is None
    assert refusal(rights, replace(feed, topic_url="")) == "not for users"
