"""Subscriptions that end by themselves: their lease, their owner's rights, their vhost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.http import Callback
from warrenmq.core.clock import ManualClock
from warrenmq.hub.errors import StorageFailed
from warrenmq.hub.owner_rights import AllowAll, refusal
from warrenmq.hub.requests import Resource
from warrenmq.hub.subscriptions import expiry
from warrenmq.hub.subscriptions.repository import Repository

from ..support import BASE_URL, INBOX, NEWS, House, request, until


class Changing(AllowAll):
    """Rights that a test takes away; tells those who watch."""

    def __init__(self) -> None:
        self.refused: dict[tuple[str, Resource], str] = {}
        self.watched: dict[str, Callable[[str], None]] = {}

    def read_refusal(self, owner: str, resource: Resource, routing_key: str) -> str | None:
        return self.refused.get((owner, resource))

    def write_refusal(self, owner: str, resource: Resource, routing_key: str | None) -> str | None:
        return self.refused.get((owner, resource))

    def watch(self, owner: str, changed: Callable[[str], None]) -> None:
        self.watched[owner] = changed

    def unwatch(self, owner: str, changed: Callable[[str], None]) -> None:
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
    repository = await house.hub.storage.repository()

    async def is_left() -> bool:
        return len(await repository.all()) == left

    await until(is_left, f"{left} subscriptions left")


def reasons(callback: Callback) -> list[str]:
    return [one.query["hub.reason"] for one in callback.denials]


async def test_the_permission_on_the_sink_counts(house: House, rights: Changing) -> None:
    token = house.hub.shortcuts.generate_token(INBOX, "subscribe")
    bound = request(NEWS, f"{BASE_URL}/endpoint/q/in", verify_token=token)
    await house.hub.subscriptions.subscribe(bound)
    rights.take("guest", INBOX)
    await ended(house, 0)
    await house.publish("k", b"x")
    assert await house.depth("in") == 0


async def test_subscriptions_end_if_permissions_were_lost_while_the_hub_was_down(
    house: House, rights: Changing, callback: Callback
) -> None:
    for source in (NEWS, INBOX):
        await house.subscribe(source, callback)
    await house.stop()
    rights.refused["guest", NEWS] = "not any more"
    await house.publish("k", b"not for them")
    house.hub = house.make_hub()
    await house.start()
    await ended(house, 1)
    assert reasons(callback) == ["not any more"] and callback.deliveries == []


async def test_a_new_owner_is_watched(house: House, rights: Changing, callback: Callback) -> None:
    active = await house.subscribe(NEWS, callback)
    await house.hub.subscription_store.put(replace(active.subscription, owner="bob"))
    assert list(rights.watched) == ["bob"]
    rights.refused["guest", NEWS] = "not any more"
    await house.hub.expiry.recheck(["guest"])
    assert house.hub.subscription_store.all() == [active]
    rights.take("bob", NEWS)
    await ended(house, 0)
    assert rights.watched == {}


async def test_a_lease_ends_while_the_hub_is_down(house: House, callback: Callback) -> None:
    house.clock = ManualClock()
    await house.restart()
    await house.subscribe(NEWS, callback, lease_seconds="60")
    await house.stop()
    house.clock.advance(60_000)
    house.hub = house.make_hub()
    await house.start()
    await ended(house, 0)
    assert reasons(callback) == ["the lease has ended"]


@pytest.mark.parametrize("ending", ["lease", "right", "vhost"])
async def test_a_failed_end_is_tried_again(
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


async def test_topics_of_others_need_no_permission(
    house: House, rights: Changing, callback: Callback
) -> None:
    topics = Resource("/", "x", "hub.topics")
    rights.refused["guest", topics] = "not for users"
    one = (await house.subscribe(NEWS, callback)).subscription
    feed = replace(one, source=topics, topic_url="https://a.b/feed")
    assert refusal(rights, feed) is None
    assert refusal(rights, replace(feed, topic_url="")) == "not for users"
