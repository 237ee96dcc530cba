"""Dead letters are found, given back and dropped, and none is lost on the way."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.hub.support import INBOX, NEWS, House, deliveries, request, until
from tests.support.http import Callback
from warrenmq.core.clock import ManualClock
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.model import Table
from warrenmq.hub.deadletter import dead_letters as dead_letters_module
from warrenmq.hub.deadletter.dead_letters import BulkResult, DeadLetters
from warrenmq.hub.deadletter.filter import DeadLetterFilter
from warrenmq.hub.engine.port import QueueSpec
from warrenmq.hub.errors import NoSuchDeadLetter, NotReplayed
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
        one
        for one in house.hub.subscriptions.active_subscriptions()
        if one.subscription.callback == url
    ]
    return active


async def bodies(letters: DeadLetters, **wanted: Any) -> list[bytes]:
    found = await letters.page(["/"], DeadLetterFilter(**wanted), 0, 1000)
    assert found.matching == len(found.dead_letters)
    full = [await letters.get("/", one.id, None) for one in found.dead_letters]
    return [one.message.body for one in full]


async def test_without_any(letters: DeadLetters) -> None:
    found = await letters.page(["/"], DeadLetterFilter(), 0, 10)
    assert (found.dead_letters, found.matching, found.is_complete) == ([], 0, True)
    assert await letters.replay(["/"], DeadLetterFilter()) == BulkResult()
    with pytest.raises(NoSuchDeadLetter):
        await letters.get("/", "1", None)
    with pytest.raises(ChannelError, match="no vhost"):
        await letters.page(["nowhere"], DeadLetterFilter(), 0, 10)


async def test_what_is_told_of_one(
    house: House, letters: DeadLetters, active: ActiveSubscription
) -> None:
    clock = ManualClock()
    await add_dead_letter(house, active.subscription.id, number=7, clock=clock)
    found = await letters.page(["/"], DeadLetterFilter(), 0, 10)
    [listed] = found.dead_letters
    assert listed.message.body == b""
    letter = await letters.get("/", listed.id, None)
    assert letter.message.body == b"bonjour"
    for one in (listed, letter):
        assert (one.vhost, one.subscription_id, one.active) == ("/", active.subscription.id, active)
        assert (one.webhook_id, one.envelope.failures) == ("msg_7", 12)
        assert (one.envelope.exchange, one.envelope.routing_key) == ("news", "eu.fr")
        assert one.reason == "12 attempts, the last: status 503"
        assert one.dead_at == pytest.approx(clock.wall_s(), abs=0.001)
        assert one.size_bytes == 7
    assert await house.depth("hub.dead") == 1


async def test_pages(house: House, letters: DeadLetters) -> None:
    for number in range(7):
        await add_dead_letter(house, OVER, b"%d" % number, key="odd" if number % 2 else "even")
    pages = [await letters.page(["/"], DeadLetterFilter(), first, 3) for first in (0, 3, 6, 9)]
    assert [len(page.dead_letters) for page in pages] == [3, 3, 1, 0]
    ids = [letter.id for page in pages for letter in page.dead_letters]
    assert len(set(ids)) == 7 and ids == sorted(ids)
    page = await letters.page(["/"], DeadLetterFilter(routing_key="odd"), 1, 1)
    assert (page.matching, page.visible) == (3, 7)
    [second] = page.dead_letters
    assert (await letters.get("/", second.id, None)).message.body == b"3"


async def test_filters(
    house: House, letters: DeadLetters, active: ActiveSubscription, callback: Callback
) -> None:
    of_queue = await subscribed(house, INBOX, f"{callback.url}/2", user="other")
    old, new = ManualClock(), ManualClock()
    new.advance(60_000)
    await add_dead_letter(house, active.subscription.id, b"1", number=1, key="a", clock=old)
    await add_dead_letter(house, of_queue.subscription.id, b"2", exchange="", key="in", clock=new)
    await add_dead_letter(
        house, OVER, b"3", number=3, exchange="gone", reason="21 hops: a LOOP", clock=new
    )
    expectations: list[tuple[dict[str, Any], list[bytes]]] = [
        ({"subscription": active.subscription.id}, [b"1"]),
        ({"subscription": OVER}, [b"3"]),
        ({"callback": callback.url}, [b"1"]),
        ({"exchange": "news"}, [b"1"]),
        ({"exchange": "gone"}, [b"3"]),
        ({"queue": "in"}, [b"2"]),
        ({"routing_key": "a"}, [b"1"]),
        ({"webhook_id": "msg_3"}, [b"3"]),
        ({"reason": "loop"}, [b"3"]),
        ({"reason": "status"}, [b"1", b"2"]),
        ({"reason": "status", "queue": "in"}, [b"2"]),
        ({"dead_before": new.wall_s()}, [b"1"]),
        ({"dead_after": new.wall_s()}, [b"2", b"3"]),
        ({"owner": "guest"}, [b"1"]),
        ({"owner": "other"}, [b"2"]),
        ({"owner": "stranger"}, []),
        ({}, [b"1", b"2", b"3"]),
    ]
    for wanted, expected in expectations:
        assert await bodies(letters, **wanted) == expected, wanted
    ids = [one.id for one in (await letters.page(["/"], DeadLetterFilter(), 0, 9)).dead_letters]
    assert await bodies(letters, ids=frozenset(ids[1:])) == [b"2", b"3"]


async def test_one_of_somebody_else_is_not_there(
    house: House, letters: DeadLetters, active: ActiveSubscription
) -> None:
    await add_dead_letter(house, active.subscription.id)
    [letter] = (await letters.page(["/"], DeadLetterFilter(), 0, 9)).dead_letters
    assert (await letters.get("/", letter.id, "guest")).id == letter.id
    for call in (letters.get, letters.replay_one, letters.drop_one):
        with pytest.raises(NoSuchDeadLetter):
            await call("/", letter.id, "other")
    assert (await letters.drop(["/"], DeadLetterFilter(owner="other"))) == BulkResult()
    assert await house.depth("hub.dead") == 1


async def test_a_replayed_one_is_delivered_as_at_first(
    house: House, letters: DeadLetters, active: ActiveSubscription, callback: Callback
) -> None:
    await add_dead_letter(house, active.subscription.id, number=7, headers={"x-hub-hops": 21})
    [letter] = (await letters.page(["/"], DeadLetterFilter(), 0, 9)).dead_letters
    await letters.replay_one("/", letter.id, "guest")
    [got] = await deliveries(callback, 1)
    assert (got.body, got.headers["webhook-id"]) == (b"bonjour", "msg_7")
    assert got.headers["X-AMQP-Routing-Key"] == "eu.fr"
    assert got.headers["X-AMQP-Exchange"] == "news"
    assert got.headers["X-AMQP-Redelivered"] == "false"
    assert await house.depth("hub.dead") == 0
    with pytest.raises(NoSuchDeadLetter):
        await letters.replay_one("/", letter.id, None)


async def test_a_replayed_one_has_all_its_attempts_before_it(
    house: House, letters: DeadLetters, active: ActiveSubscription, callback: Callback
) -> None:
    await house.hub.subscriptions.pause(active, "")
    await add_dead_letter(house, active.subscription.id, headers={"x-hub-hops": 21})
    await house.hub.subscriptions.resume(active)
    await active.cancel()
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


async def test_a_replay_by_filter_leaves_the_rest(
    house: House, letters: DeadLetters, active: ActiveSubscription, callback: Callback
) -> None:
    for number, whose in enumerate([active.subscription.id, OVER, active.subscription.id, OVER]):
        await add_dead_letter(house, whose, b"%d" % number, key="a" if number < 3 else "b")
    done = await letters.replay(["/"], DeadLetterFilter(routing_key="a"))
    assert done == BulkResult(done=2, skipped=1, left=2)
    got = await deliveries(callback, 2)
    assert [one.body for one in got] == [b"0", b"2"]
    assert await bodies(letters) == [b"1", b"3"]


async def test_what_can_not_be_replayed_stays(
    house: House, letters: DeadLetters, active: ActiveSubscription, callback: Callback
) -> None:
    of_queue = await subscribed(house, INBOX, f"{callback.url}/2")
    await house.hub.subscriptions.pause(active, "")
    for whose in (OVER, active.subscription.id, of_queue.subscription.id):
        await add_dead_letter(house, whose)
    await house.engine.delete_queue("/", "in")
    found = (await letters.page(["/"], DeadLetterFilter(), 0, 9)).dead_letters
    reasons = ["its subscription is over", "paused, resume it first", "no queue 'in'"]
    for letter, reason in zip(found, reasons, strict=True):
        with pytest.raises(NotReplayed, match=reason) as caught:
            await letters.replay_one("/", letter.id, None)
        assert caught.value.status == 409
    assert await letters.replay(["/"], DeadLetterFilter()) == BulkResult(skipped=3, left=3)
    assert await house.depth("hub.dead") == 3
    await house.hub.subscriptions.resume(active)
    assert await letters.replay(["/"], DeadLetterFilter()) == BulkResult(done=1, skipped=2, left=2)
    await deliveries(callback, 1)


async def test_a_queue_that_rejects(house: House, letters: DeadLetters, callback: Callback) -> None:
    full: Table = {"x-max-length": 0, "x-overflow": "reject-publish"}
    await house.engine.declare_queue("/", QueueSpec("full", arguments=full))
    active = await subscribed(house, Resource("/", "q", "full"), callback.url)
    await active.cancel()
    await add_dead_letter(house, active.subscription.id)
    [letter] = (await letters.page(["/"], DeadLetterFilter(), 0, 9)).dead_letters
    with pytest.raises(NotReplayed, match="queue 'full' did not take it: rejected"):
        await letters.replay_one("/", letter.id, None)
    assert await bodies(letters) == [b"bonjour"]


async def test_dropping(house: House, letters: DeadLetters) -> None:
    for number in range(5):
        await add_dead_letter(house, OVER, b"%d" % number, key="a" if number < 3 else "b")
    [first, *_] = (await letters.page(["/"], DeadLetterFilter(), 0, 9)).dead_letters
    await letters.drop_one("/", first.id, None)
    with pytest.raises(NoSuchDeadLetter):
        await letters.drop_one("/", first.id, None)
    assert await letters.drop(["/"], DeadLetterFilter(routing_key="a")) == BulkResult(
        done=2, left=2
    )
    assert await bodies(letters) == [b"3", b"4"]


async def test_more_than_is_looked_at(
    house: House, letters: DeadLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters_module, "SCAN_LIMIT", 3)
    for number in range(4):
        await add_dead_letter(house, OVER, b"%d" % number)
    found = await letters.page(["/"], DeadLetterFilter(), 0, 9)
    assert (found.matching, found.is_complete) == (3, False)
    assert await letters.drop(["/"], DeadLetterFilter()) == BulkResult(done=3, is_complete=False)
    assert await letters.drop(["/"], DeadLetterFilter()) == BulkResult(done=1)


async def test_lists_and_replays_at_the_same_time(
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


async def test_one_that_fails_again_is_a_letter_again(house: House, callback: Callback) -> None:
    await house.restart(max_attempts=1)
    active = await subscribed(house, NEWS, callback.url)
    letters = house.hub.dead_letters
    callback.script(500, 500)
    await house.publish("eu.fr", b"bonjour")
    seen = set()
    for _ in range(2):
        await until(lambda: _is_dead(house), "dead letter")
        [letter] = (await letters.page(["/"], DeadLetterFilter(), 0, 9)).dead_letters
        seen.add((letter.id, letter.webhook_id, letter.envelope.failures))
        await house.hub.subscriptions.resume(active)
        await letters.replay_one("/", letter.id, None)
    got = await deliveries(callback, 3)
    assert {one.headers["webhook-id"] for one in got} == {webhook_id for _, webhook_id, _ in seen}
    assert len(seen) == 2 and {failures for _, _, failures in seen} == {1}


async def _is_dead(house: House) -> bool:
    return await house.depth("hub.dead") == 1
