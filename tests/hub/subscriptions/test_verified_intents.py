"""What a verified request changes: keys, lease, owner; and what denies it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.support.http import Answer, Callback
from warrenmq.hub.errors import NotOwner, NotSubscribed, VerificationFailed
from warrenmq.hub.owner_rights import EverybodyMay
from warrenmq.hub.subscriptions.subscription import Subscription

from ..support import NEWS, House, deliveries, request, text, topic_request, until

DAY_S = 86_400


async def test_a_new_secret_leaves_the_old_one_for_a_day(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, secret="first"))
    [subscription] = house.hub.subscriptions.all()
    assert (subscription.keys.secret, subscription.keys.previous) == ("first", None)

    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, secret="second"))
    [subscription] = house.hub.subscriptions.all()
    assert (subscription.keys.secret, subscription.keys.previous) == ("second", "first")
    left_s = subscription.keys.previous_until - subscription.expires_at
    assert left_s == pytest.approx(DAY_S - subscription.lease_seconds, abs=60)

    until_s = subscription.keys.previous_until
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, secret="second"))
    [subscription] = house.hub.subscriptions.all()
    assert (subscription.keys.previous, subscription.keys.previous_until) == ("first", until_s)

    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [subscription] = house.hub.subscriptions.all()
    assert (subscription.keys.secret, subscription.keys.previous) == (None, None)


async def test_without_an_overlap_the_old_secret_is_gone(house: House, callback: Callback) -> None:
    await house.restart(secret_overlap_s=0)
    for secret in ("first", "second"):
        await house.hub.subscriptions.subscribe(request(NEWS, callback.url, secret=secret))
    [subscription] = house.hub.subscriptions.all()
    assert (subscription.keys.secret, subscription.keys.previous) == ("second", None)


@pytest.mark.parametrize("verify", ["sync", "async"])
async def test_only_owner_and_administrators_change_a_subscription(
    house: House, callback: Callback, verify: str
) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    other = replace(request(NEWS, callback.url, verify=(verify,)), user="tony")
    for ask in (house.hub.subscriptions.subscribe, house.hub.subscriptions.unsubscribe):
        with pytest.raises(NotOwner) as caught:
            await ask(other)
        assert caught.value.status == 403 and "guest" not in str(caught.value)
    assert len(callback.verifications) == 1
    await house.hub.subscriptions.unsubscribe(replace(other, is_administrator=True))
    await until(lambda: house.hub.subscriptions.all() == [], "end")


async def test_a_renewal_by_another_leaves_the_owner(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, lease_seconds="60"))
    other = replace(request(NEWS, callback.url), user="root", is_administrator=True)
    await house.hub.subscriptions.subscribe(other)
    [subscription] = house.hub.subscriptions.all()
    assert (subscription.owner, subscription.lease_seconds) == ("guest", 30 * DAY_S)


async def test_who_was_faster_is_the_owner(house: House, callback: Callback) -> None:
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
    await until(lambda: len(house.hub.subscriptions.all()) == 1, "subscription")
    assert house.hub.subscriptions.all()[0].owner == "guest"


async def test_what_is_pending_can_be_unsubscribed(house: House, callback: Callback) -> None:
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
    assert house.hub.subscriptions.all() == []


async def test_credentials_for_the_callback(house: House, callback: Callback) -> None:
    given = {"hub.basic_auth": "bWU6eW91"}
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, given=given))
    assert callback.verifications[0].headers["Authorization"] == "Basic bWU6eW91"
    [subscription] = house.hub.subscriptions.all()
    assert subscription.keys.basic_auth == "bWU6eW91"


async def test_a_failed_renewal_leaves_everything_as_it_was(
    house: House, callback: Callback
) -> None:
    given = {"hub.format": "cloudevents-binary", "hub.basic_auth": "bWU6eW91"}
    asked = request(NEWS, callback.url, secret="old", given=given, lease_seconds="600")
    await house.hub.subscriptions.subscribe(asked)
    before = house.hub.subscriptions.all()
    callback.refusal = Answer(404)
    with pytest.raises(VerificationFailed):
        await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    await house.restart()
    assert house.hub.subscriptions.all() == before


async def test_a_topic_of_others_is_followed(
    house: House, callback: Callback, publisher: Callback
) -> None:
    await house.hub.subscriptions.subscribe(topic_request(publisher, callback))
    await deliveries(callback, 1)
    publisher.default = text("two")
    await house.hub.topics.ping([publisher.url])
    assert [one.body for one in await deliveries(callback, 2)] == [b"one", b"two"]


@pytest.mark.parametrize("is_pinged", [False, True])
async def test_what_changes_while_the_callback_is_asked_is_delivered(
    house: House, callback: Callback, publisher: Callback, is_pinged: bool
) -> None:
    verified = asyncio.Event()
    store_put = house.hub.subscriptions._store.put

    async def put_late(requested: Subscription) -> None:
        verified.set()
        await changed.wait()
        await store_put(requested)

    changed = asyncio.Event()
    house.hub.subscriptions._store.put = put_late  # type: ignore[method-assign]
    await house.hub.subscriptions.subscribe(topic_request(publisher, callback))
    await verified.wait()
    publisher.default = text("two")
    if is_pinged:
        await house.hub.topics.ping([publisher.url])  # nobody is bound yet
    changed.set()
    [delivery] = await deliveries(callback, 1)
    assert delivery.body == b"two"


async def test_a_denied_topic_is_told_to_its_callback(
    house: House, callback: Callback, publisher: Callback
) -> None:
    await house.restart(hub_check_topics=True)
    publisher.default = Answer(404)
    await house.hub.subscriptions.subscribe(topic_request(publisher, callback))
    await until(lambda: len(callback.denials) == 1, "denial")
    query = callback.denials[0].query
    assert query["hub.topic"] == publisher.url and "404" in query["hub.reason"]
    await house.restart(hub_check_topics=True)
    assert len(callback.verifications) == 1 and house.hub.subscriptions.all() == []


async def test_a_renewal_that_would_be_denied_changes_nothing(
    house: House, callback: Callback, publisher: Callback
) -> None:
    await house.restart(hub_check_topics=True)
    await house.hub.subscriptions.subscribe(topic_request(publisher, callback))
    await until(lambda: len(house.hub.subscriptions.all()) == 1, "subscription")
    before = house.hub.subscriptions.all()
    publisher.default = Answer(404)
    renewal = topic_request(publisher, callback, lease_seconds="60")
    await house.hub.subscriptions.subscribe(renewal)
    # One that is told of its denial after that of the renewal would be.
    new = replace(renewal, callback=callback.url + "/new")
    await house.hub.subscriptions.subscribe(new)
    await until(lambda: len(callback.denials) > 0, "denial")
    assert [one.path for one in callback.denials] == ["/callback/new"]
    await house.restart()
    assert house.hub.subscriptions.all() == before


class NobodyMay(EverybodyMay):
    def refuse_owner(self, owner: str) -> str | None:
        return "nobody may"


async def test_who_has_agreed_in_vain_is_told(
    house: House, callback: Callback, publisher: Callback
) -> None:
    house.rights = NobodyMay()
    await house.restart()
    await house.hub.subscriptions.subscribe(topic_request(publisher, callback))
    await until(lambda: len(callback.denials) == 1, "denial")
    query = callback.denials[0].query
    assert query["hub.topic"] == publisher.url and "nobody may" in query["hub.reason"]
    assert len(callback.verifications) == 1 and house.hub.subscriptions.all() == []
