"""What a verified request changes: keys, lease, owner; and what denies it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.hub.support import subscriptions_of
from tests.support.http import Answer, Callback
from warrenmq.hub.errors import NotOwner, NotSubscribed
from warrenmq.hub.owner_rights import AllowAll
from warrenmq.hub.subscriptions.subscription import Subscription

from ..support import NEWS, House, deliveries, request, text, topic_request, until

DAY_S = 86_400


async def test_the_previous_secret_is_kept_for_a_day(house: House, callback: Callback) -> None:
    subscription = (await house.subscribe(NEWS, callback, secret="first")).subscription
    assert (subscription.keys.secret, subscription.keys.previous) == ("first", None)

    subscription = (await house.subscribe(NEWS, callback, secret="second")).subscription
    assert (subscription.keys.secret, subscription.keys.previous) == ("second", "first")
    left_s = subscription.keys.previous_until - subscription.expires_at
    assert left_s == pytest.approx(DAY_S - subscription.lease_seconds, abs=60)

    until_s = subscription.keys.previous_until
    subscription = (await house.subscribe(NEWS, callback, secret="second")).subscription
    assert (subscription.keys.previous, subscription.keys.previous_until) == ("first", until_s)

    subscription = (await house.subscribe(NEWS, callback)).subscription
    assert (subscription.keys.secret, subscription.keys.previous) == (None, None)


async def test_without_an_overlap_it_is_not_kept(house: House, callback: Callback) -> None:
    await house.restart(secret_overlap_s=0)
    for secret in ("first", "second"):
        subscription = (await house.subscribe(NEWS, callback, secret=secret)).subscription
    assert (subscription.keys.secret, subscription.keys.previous) == ("second", None)


@pytest.mark.parametrize("verify", ["sync", "async"])
async def test_only_owners_and_administrators_change_a_subscription(
    house: House, callback: Callback, verify: str
) -> None:
    await house.subscribe(NEWS, callback)
    other = replace(request(NEWS, callback.url, verify=(verify,)), user="tony")
    for ask in (house.hub.subscriptions.subscribe, house.hub.subscriptions.unsubscribe):
        with pytest.raises(NotOwner) as caught:
            await ask(other)
        assert caught.value.status == 403 and "guest" not in str(caught.value)
    assert len(callback.verifications) == 1
    await house.hub.subscriptions.unsubscribe(replace(other, is_administrator=True))
    await until(lambda: subscriptions_of(house.hub) == [], "end")


async def test_the_first_subscriber_is_the_owner(house: House, callback: Callback) -> None:
    """Both are asked for before either is verified."""
    callback.refusal = Answer(hang=True)
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, verify=("async",)))
    late = replace(request(NEWS, callback.url, verify=("async",)), user="tony")
    await house.hub.subscriptions.subscribe(late)
    await until(lambda: len(callback.verifications) == 1, "question")
    await house.hub.stop()
    callback.refusal = None
    house.hub = house.make_hub()
    await house.hub.start()
    await until(lambda: len(callback.verifications) == 3, "questions")
    await until(lambda: len(subscriptions_of(house.hub)) == 1, "subscription")
    assert subscriptions_of(house.hub)[0].owner == "guest"


async def test_a_pending_subscribe_can_be_unsubscribed(house: House, callback: Callback) -> None:
    asked = request(NEWS, callback.url, verify=("async",))
    await house.hub.subscriptions.subscribe(asked)
    await house.hub.subscriptions.unsubscribe(asked)
    await until(lambda: len(callback.verifications) == 2, "questions")

    async def is_unknown() -> bool:
        try:
            await house.hub.subscriptions.unsubscribe(asked)
        except NotSubscribed:
            return True
        return False

    await until(is_unknown, "end")
    assert subscriptions_of(house.hub) == []


@pytest.mark.parametrize("is_pinged", [False, True])
async def test_a_change_during_verification_is_sent(
    house: House, callback: Callback, publisher: Callback, is_pinged: bool
) -> None:
    verified = asyncio.Event()
    store_put = house.hub.subscription_store.put

    async def put_late(requested: Subscription) -> None:
        verified.set()
        await changed.wait()
        await store_put(requested)

    changed = asyncio.Event()
    house.hub.subscription_store.put = put_late  # type: ignore[method-assign]
    await house.hub.subscriptions.subscribe(topic_request(publisher, callback))
    await verified.wait()
    publisher.default = text("two")
    if is_pinged:
        await house.hub.topics.ping([publisher.url])  # nobody is bound yet
    changed.set()
    [delivery] = await deliveries(callback, 1)
    assert delivery.body == b"two"


async def test_a_denied_renewal_changes_nothing(
    house: House, callback: Callback, publisher: Callback
) -> None:
    await house.restart(hub_check_topics=True)
    await house.hub.subscriptions.subscribe(topic_request(publisher, callback))
    await until(lambda: len(subscriptions_of(house.hub)) == 1, "subscription")
    before = subscriptions_of(house.hub)
    await deliveries(callback, 1)
    fetches = len(publisher.requests)
    publisher.default = Answer(404)
    renewal = topic_request(publisher, callback, lease_seconds="60")
    await house.hub.subscriptions.subscribe(renewal)
    await until(lambda: len(publisher.requests) > fetches, "check of the renewal")
    # One that is told of its denial after that of the renewal would be.
    new = replace(renewal, callback=callback.url + "/new")
    await house.hub.subscriptions.subscribe(new)
    await until(lambda: len(callback.denials) > 0, "denial")
    assert [one.path for one in callback.denials] == ["/callback/new"]
    await house.restart(hub_check_topics=True)  # it may check a renewal again that was not over
    assert subscriptions_of(house.hub) == before


class NobodyMay(AllowAll):
    def owner_refusal(self, owner: str) -> str | None:
        return "nobody may"


async def test_a_refused_owner_is_announced(
    house: House, callback: Callback, publisher: Callback
) -> None:
    house.rights = NobodyMay()
    await house.restart()
    await house.hub.subscriptions.subscribe(topic_request(publisher, callback))
    await until(lambda: len(callback.denials) == 1, "denial")
    query = callback.denials[0].query
    assert query["hub.topic"] == publisher.url and "nobody may" in query["hub.reason"]
    assert len(callback.verifications) == 1 and subscriptions_of(house.hub) == []
