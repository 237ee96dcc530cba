"""Subscribing and being delivered to, end to end within the hub."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.http import Answer, Callback
from warrenmq.hub.errors import (
    BadRequest,
    CallbackRefused,
    NotSubscribed,
    SourceMissing,
    VerificationFailed,
)
from warrenmq.hub.requests import Resource
from warrenmq.hub.service import KEY_NAME, Hub
from warrenmq.hub.settings import HubSettings

from .support import INBOX, NEWS, House, deliveries, request, until


async def test_an_exchange_subscription_gets_what_its_topic_matches(
    house: House, callback: Callback
) -> None:
    result = await house.hub.subscriptions.subscribe(
        request(NEWS, callback.url, "eu.#", lease_seconds="600")
    )
    assert result.verified and result.lease_seconds == 600
    [question] = callback.verifications
    assert question.query["hub.mode"] == "subscribe"
    assert question.query["hub.topic"] == "eu.#"
    assert question.query["hub.lease_seconds"] == "600"
    assert "hub.verify_token" not in question.query

    await house.publish("us.ny", b"no")
    await house.publish("eu.fr", b"bonjour\x00\xff", content_type="application/atom+xml")
    [delivery] = await deliveries(callback, 1)
    assert delivery.method == "POST"
    assert delivery.body == b"bonjour\x00\xff"
    assert delivery.query["hub.topic"] == "eu.fr"
    assert delivery.headers["Content-Type"] == "application/atom+xml"
    assert delivery.headers["X-AMQP-Routing-Key"] == "eu.fr"
    assert delivery.headers["X-AMQP-Exchange"] == "news"
    assert delivery.headers["X-AMQP-Redelivered"] == "false"
    assert "X-AMQP-Queue" not in delivery.headers
    assert "X-Hub-Signature" not in delivery.headers
    assert delivery.headers["webhook-id"] and delivery.headers["webhook-timestamp"].isdigit()


async def test_each_exchange_subscription_gets_a_copy(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url + "?to=evan"))
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url + "?to=anders"))
    await house.publish("tony", b"is at work")
    got = await deliveries(callback, 2)
    assert sorted(one.query["to"] for one in got) == ["anders", "evan"]


async def test_subscribers_of_a_queue_share_its_messages(house: House, callback: Callback) -> None:
    for name in ("evan", "anders"):
        await house.hub.subscriptions.subscribe(request(INBOX, f"{callback.url}?to={name}"))
    for number in range(10):
        await house.post("in", "tony", b"%d" % number)
    got = await deliveries(callback, 10)
    assert sorted(int(one.body) for one in got) == list(range(10))
    assert {one.headers["X-AMQP-Queue"] for one in got} == {"in"}
    assert {one.query["to"] for one in got} == {"evan", "anders"}


async def test_deliveries_come_in_publish_order(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    for number in range(50):
        await house.publish("n", b"%d" % number)
    got = await deliveries(callback, 50)
    assert [int(one.body) for one in got] == list(range(50))


async def test_a_missing_source_is_told_before_any_verification(
    house: House, callback: Callback
) -> None:
    for source in (Resource("/", "x", "none"), Resource("/", "q", "none")):
        with pytest.raises(SourceMissing):
            await house.hub.subscriptions.subscribe(request(source, callback.url))
    assert not callback.requests


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"callback": None}, "hub.callback"),
        ({"topic": None}, "hub.topic"),
        ({"topic": "x" * 256}, "hub.topic"),
        ({"verify": ("carrier pigeon",)}, "hub.verify"),
        ({"secret": "x" * 200}, "hub.secret"),
    ],
)
async def test_a_bad_parameter_is_named(
    house: House, callback: Callback, given: dict[str, str], field: str
) -> None:
    values = {"callback": callback.url, "topic": "#", **given}
    with pytest.raises(BadRequest) as caught:
        await house.hub.subscriptions.subscribe(request(NEWS, **values))
    assert caught.value.field == field
    assert not callback.requests


@pytest.mark.parametrize(
    "refusal", [Answer(404), Answer(200, body=b"another text"), Answer(302), Answer(500)]
)
async def test_a_callback_that_does_not_confirm_is_not_subscribed(
    house: House, callback: Callback, refusal: Answer
) -> None:
    callback.refusal = refusal
    with pytest.raises(VerificationFailed):
        await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    assert house.hub.subscriptions.all() == []
    await house.publish("a", b"x")
    assert callback.deliveries == []


async def test_asynchronous_verification_subscribes_afterwards(
    house: House, callback: Callback
) -> None:
    asked = request(NEWS, callback.url, verify=("async",), verify_token="t=1&2")
    result = await house.hub.subscriptions.subscribe(asked)
    assert not result.verified
    await until(lambda: len(house.hub.subscriptions.all()) == 1, "subscription")
    assert callback.verifications[0].query["hub.verify_token"] == "t=1&2"


async def test_unsubscribing_is_verified_and_takes_the_queue_away(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [subscription] = house.hub.subscriptions.all()
    callback.refusal = Answer(404)
    with pytest.raises(VerificationFailed):
        await house.hub.subscriptions.unsubscribe(request(NEWS, callback.url))
    assert house.hub.subscriptions.all() == [subscription]

    callback.refusal = None
    result = await house.hub.subscriptions.unsubscribe(request(NEWS, callback.url))
    assert result.verified and house.hub.subscriptions.all() == []
    assert callback.verifications[-1].query["hub.mode"] == "unsubscribe"
    assert await house.depth(subscription.queue) is None
    with pytest.raises(NotSubscribed):
        await house.hub.subscriptions.unsubscribe(request(NEWS, callback.url))


async def test_a_removed_subscription_is_over_without_asking(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    await house.hub.subscriptions.remove(INBOX, "#", callback.url)
    assert house.hub.subscriptions.all() == []
    assert len(callback.verifications) == 1
    with pytest.raises(NotSubscribed):
        await house.hub.subscriptions.remove(INBOX, "#", callback.url)
    assert await house.depth("in") == 0


async def test_repeating_a_subscribe_renews_it(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, lease_seconds="60"))
    [before] = house.hub.subscriptions.all()
    renewal = request(NEWS, callback.url, lease_seconds="6000", secret="s3cret")
    await house.hub.subscriptions.subscribe(renewal)
    [after] = house.hub.subscriptions.all()
    assert (after.id, after.lease_seconds, after.keys.secret) == (before.id, 6000, "s3cret")
    await house.publish("a", b"one")
    assert len(await deliveries(callback, 1)) == 1


async def test_a_failed_renewal_leaves_the_subscription_as_it_was(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url, secret="old"))
    before = house.hub.subscriptions.all()
    callback.refusal = Answer(404)
    with pytest.raises(VerificationFailed):
        await house.hub.subscriptions.subscribe(request(NEWS, callback.url, secret="new"))
    assert house.hub.subscriptions.all() == before


async def test_the_hub_itself_is_no_callback(house: House) -> None:
    with pytest.raises(CallbackRefused, match="own address"):
        await house.hub.subscriptions.subscribe(
            request(NEWS, "http://127.0.0.1:15672/endpoint/q/in")
        )
    with pytest.raises(CallbackRefused, match="own address"):
        await house.hub.subscriptions.subscribe(
            request(NEWS, "http://127.0.0.2:15672/endpoint/q/in")
        )


async def test_the_key_of_secrets_may_be_elsewhere(house: House, tmp_path: Path) -> None:
    """A copy of the data directory alone opens none of them."""
    elsewhere = tmp_path / "keys" / "warren.key"
    directory = tmp_path / "other"
    directory.mkdir()
    settings = HubSettings(key_file=str(elsewhere))
    hub = Hub(house.engine, settings, directory)
    hub.internal_headers.message_id(1)
    assert elsewhere.stat().st_mode & 0o777 == 0o600
    assert not (directory / KEY_NAME).exists()
    assert Hub(house.engine, settings, directory).internal_headers.message_id(
        1
    ) == hub.internal_headers.message_id(1)
    assert house.hub.internal_headers.message_id(1) != hub.internal_headers.message_id(1)
