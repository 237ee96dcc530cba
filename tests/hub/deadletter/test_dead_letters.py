"""Dead letters are found, given back and dropped, and none is lost on the way."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.hub.support import INBOX, NEWS, House, deliveries, request
from tests.support.http import Callback
from warrenmq.core.message.model import Table
from warrenmq.hub.deadletter import dead_letters as dead_letters_module
from warrenmq.hub.deadletter.dead_letter import DeadLetter
from warrenmq.hub.deadletter.dead_letters import BulkResult, DeadLetters
from warrenmq.hub.deadletter.filter import DeadLetterFilter
from warrenmq.hub.engine.port import QueueSpec
from warrenmq.hub.errors import NotReplayed
from warrenmq.hub.requests import Resource
from warrenmq.hub.subscriptions.active import ActiveSubscription

from .support import add_dead_letter

OVER = "0" * 32


@pytest.fixture
async def active(house: House, callback: Callback) -> ActiveSubscription:
    """The subscription to `news` that the letters are of."""
    return await subscribed(house, NEWS, callback.url)


@pytest.fixture
def letters(house: House) -> DeadLetters:
    return house.hub.dead_letters


async def subscribed(
    house: House, source: Resource, url: str, user: str = "guest"
) -> ActiveSubscription:
    await house.hub.subscriptions.subscribe(replace(request(source, url), user=user))
    [active] = [
        one for one in house.hub.subscription_store.all() if one.subscription.callback == url
    ]
    return active


async def listed(letters: DeadLetters) -> list[DeadLetter]:
    return (await letters.page(["/"], DeadLetterFilter(), 0, 9)).dead_letters


async def bodies(letters: DeadLetters, **wanted: Any) -> list[bytes]:
    found = await letters.page(["/"], DeadLetterFilter(**wanted), 0, 1000)
    assert found.matching == len(found.dead_letters)
    full = [await letters.get("/", one.id, None) for one in found.dead_letters]
    return [one.message.body for one in full]


async def test_the_headers_of_a_replay(
    house: House, letters: DeadLetters, active: ActiveSubscription, callback: Callback
) -> None:
    await house.hub.subscription_store.pause(active, "")
    await add_dead_letter(house, active.subscription.id, headers={"x-hub-hops": 21})
    await house.hub.subscription_store.resume(active)
    await active.state.cancel()
    await letters.replay(["/"], DeadLetterFilter())
    [back] = await house.take(active.subscription.queue, 1)
    headers = {**(back.message.properties.headers or {})}
    assert isinstance(headers.pop("x-hub-seal"), str)
    assert headers == {
        "x-mine": 1, "x-hub-id": "msg_1", "x-hub-topic": "eu.fr", "x-hub-exchange": "news",
    }  # fmt: skip
    assert back.message.properties.delivery_mode == 2


async def test_replays_keep_the_order(
    house: House, letters: DeadLetters, active: ActiveSubscription, callback: Callback
) -> None:
    for number in range(250):
        await add_dead_letter(house, active.subscription.id, b"%d" % number, number=number)
    [oldest] = (await letters.page(["/"], DeadLetterFilter(), 0, 1)).dead_letters
    assert (await letters.get("/", oldest.id, None)).message.body == b"0"
    assert await letters.replay(["/"], DeadLetterFilter()) == BulkResult(done=250)
    got = await deliveries(callback, 250)
    assert [int(one.body) for one in got] == list(range(250))


async def test_dead_letters_that_can_not_be_replayed_stay(
    house: House, letters: DeadLetters, active: ActiveSubscription, callback: Callback
) -> None:
    of_queue = await subscribed(house, INBOX, f"{callback.url}/2")
    await house.hub.subscription_store.pause(active, "")
    for whose in (OVER, active.subscription.id, of_queue.subscription.id):
        await add_dead_letter(house, whose)
    await house.engine.delete_queue("/", "in")
    found = await listed(letters)
    reasons = ["its subscription is over", "paused, resume it first", "no queue 'in'"]
    for letter, reason in zip(found, reasons, strict=True):
        with pytest.raises(NotReplayed, match=reason) as caught:
            await letters.replay_one("/", letter.id, None)
        assert caught.value.status == 409
    assert await letters.replay(["/"], DeadLetterFilter()) == BulkResult(skipped=3, left=3)
    assert await house.depth("hub.dead") == 3
    await house.hub.subscription_store.resume(active)
    assert await letters.replay(["/"], DeadLetterFilter()) == BulkResult(done=1, skipped=2, left=2)
    await deliveries(callback, 1)


async def test_a_queue_that_rejects(house: House, letters: DeadLetters, callback: Callback) -> None:
    full: Table = {"x-max-length": 0, "x-overflow": "reject-publish"}
    await house.engine.declare_queue("/", QueueSpec("full", arguments=full))
    active = await subscribed(house, Resource("/", "q", "full"), callback.url)
    await active.state.cancel()
    await add_dead_letter(house, active.subscription.id)
    [letter] = await listed(letters)
    with pytest.raises(NotReplayed, match="queue 'full' did not take it: rejected"):
        await letters.replay_one("/", letter.id, None)
    assert await bodies(letters) == [b"bonjour"]


async def test_the_scan_limit(
    house: House, letters: DeadLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters_module, "SCAN_LIMIT", 3)
    for number in range(4):
        await add_dead_letter(house, OVER, b"%d" % number)
    found = await letters.page(["/"], DeadLetterFilter(), 0, 9)
    assert (found.matching, found.is_complete) == (3, False)
    assert await letters.drop(["/"], DeadLetterFilter()) == BulkResult(done=3, is_complete=False)
    assert await letters.drop(["/"], DeadLetterFilter()) == BulkResult(done=1)


async def test_concurrent_lists_and_replays(
    house: House, letters: DeadLetters, active: ActiveSubscription, callback: Callback
) -> None:
    for number in range(300):
        await add_dead_letter(house, active.subscription.id, b"%d" % number)
    page, done, again = await asyncio.gather(
        letters.page(["/"], DeadLetterFilter(), 0, 1000),
        letters.replay(["/"], DeadLetterFilter()),
        letters.replay(["/"], DeadLetterFilter()),
    )
    assert (page.matching, done.done, again.done) == (300, 300, 0)
    await deliveries(callback, 300)
