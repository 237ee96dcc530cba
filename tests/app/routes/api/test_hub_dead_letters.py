"""/api/hub/dead-letters: listed, looked at, replayed and deleted, by administrators and owners."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.routes.api.support import get, refused, tagged
from tests.app.routes.subscribing import entry
from tests.support.http import Callback
from tests.support.times import seconds
from warrenmq.core.clock import ManualClock, SystemClock
from warrenmq.core.message.model import Message, Properties
from warrenmq.hub.delivery.envelope import Envelope
from warrenmq.hub.delivery.retry_queues import RetryQueues
from warrenmq.hub.service import Hub
from warrenmq.hub.subscriptions.active import ActiveSubscription

PATH = "/hub/dead-letters"
OVER = "f" * 32


@pytest.fixture(autouse=True)
async def own(hub: Hub, world: World, callback: Callback) -> list[ActiveSubscription]:
    """A subscription of `guest` to the exchange `news`, and one of `someone` to the queue `in`."""
    await world.exchange("news")
    await world.queue("in")
    for user, kind, name in (("guest", "x", "news"), ("someone", "q", "in")):
        url = f"{callback.url}/{user}"
        wish = entry(name, "#", kind=kind, callback=url)  # type: ignore[arg-type]
        await hub.subscriptions.subscribe(replace(wish, user=user))
    return hub.subscription_store.all()


async def add_dead_letter(
    world: World,
    subscription_id: str,
    body: bytes = b"bonjour",
    *,
    key: str = "eu.fr",
    exchange: str = "news",
    vhost: str = "/",
    reason: str = "12 attempts, the last: status 503",
    age_s: int = 0,
) -> None:
    clock = SystemClock() if not age_s else ManualClock(0, SystemClock().wall_s() - age_s)
    properties = Properties(
        content_type="text/plain", headers={"mine": 1}, delivery_mode=2, message_id="m"
    )
    message, envelope = Message(exchange, key, properties, body), Envelope("msg_1", exchange, key)
    retry_queues = RetryQueues(world.engine, clock, world.context.hub.internal_headers)
    await retry_queues.add_dead_letter(
        vhost, message, replace(envelope, failures=12), subscription_id, reason
    )


async def letters(http: AsyncClient, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await get(http, PATH + query))["dead_letters"]
    return found


async def bodies(http: AsyncClient, query: str = "") -> list[str]:
    full = [await get(http, f"{PATH}/%2F/{one['id']}") for one in await letters(http, query)]
    return [one["payload"] for one in full]


async def post(http: AsyncClient, path: str, **body: Any) -> Any:
    response = await http.post(f"/api{PATH}/{path}", json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def depth(world: World, queue: str, vhost: str = "/") -> int:
    info = await world.engine.queue(vhost, queue)
    return 0 if info is None else info.messages_ready


async def test_lists_and_counts_are_empty_without_dead_letters(http: AsyncClient) -> None:
    assert await get(http, PATH) == {
        "dead_letters": [], "page": 1, "page_size": 100, "page_count": 0, "filtered_count": 0,
        "total_count": 0, "is_complete": True, "reasons": [], "oldest_at": None,
    }  # fmt: skip
    assert await post(http, "replay") == {
        "replayed": 0, "skipped": 0, "left": 0, "is_complete": True,
    }  # fmt: skip


async def test_fields_of_a_dead_letter(
    world: World, http: AsyncClient, own: list[ActiveSubscription], callback: Callback
) -> None:
    whose = own[0].subscription.id
    await add_dead_letter(world, whose, age_s=60)
    [listed] = await letters(http)
    assert seconds(listed.pop("dead_at")) == pytest.approx(SystemClock().wall_s() - 60, abs=30)
    expected = {
        "id": listed["id"], "vhost": "/", "webhook_id": "msg_1", "subscription": whose,
        "callback": f"{callback.url}/guest",
        "source": {"vhost": "/", "resource_type": "exchange", "resource_name": "news"},
        "exchange": "news", "routing_key": "eu.fr", "attempts": 12, "size": 7,
        "reason": "12 attempts, the last: status 503", "content_type": "text/plain",
        "headers": {"mine": 1}, "properties": {"delivery_mode": 2, "message_id": "m"},
    }  # fmt: skip
    assert listed == expected
    found = await get(http, f"{PATH}/%2F/{listed['id']}")
    del found["dead_at"]
    assert found == {**expected, "payload": "bonjour", "payload_encoding": "string"}


async def test_a_binary_payload_is_base64(world: World, http: AsyncClient) -> None:
    await add_dead_letter(world, OVER, b"\xff", key="café")
    [listed] = await letters(http)
    assert (listed["routing_key"], listed["callback"], listed["source"]) == ("café", None, None)
    found = await get(http, f"{PATH}/%2F/{listed['id']}")
    assert (found["payload"], found["payload_encoding"]) == ("/w==", "base64")


async def test_filters_and_pages(
    world: World, http: AsyncClient, own: list[ActiveSubscription], callback: Callback
) -> None:
    first, second = (active.subscription.id for active in own)
    await add_dead_letter(world, first, b"1", key="a", age_s=1000)
    await add_dead_letter(world, second, b"2", exchange="", key="in", age_s=100)
    await add_dead_letter(world, OVER, b"3", exchange="gone", reason="21 hops: a loop")
    for query, expected in {
        "": ["1", "2", "3"],
        "?vhost=%2F": ["1", "2", "3"],
        "?vhost=closed": [],
        f"?subscription={first}": ["1"],
        f"?callback={callback.url}/someone": ["2"],
        "?exchange=news": ["1"],
        "?queue=in": ["2"],
        "?routing_key=a": ["1"],
        "?webhook_id=msg_1": ["1", "2", "3"],
        "?reason=LOOP": ["3"],
        "?min_age_s=500": ["1"],
        "?max_age_s=500": ["2", "3"],
        "?min_age_s=50&max_age_s=500.5": ["2"],
        "?page_size=2": ["1", "2"],
        "?page_size=2&page=2": ["3"],
        "?page_size=2&page=3": [],
    }.items():
        assert await bodies(http, query) == expected, query
    page = await get(http, f"{PATH}?page_size=1&reason=status")
    facts = {key: page[key] for key in ("page_count", "filtered_count", "total_count")}
    assert facts == {"page_count": 2, "filtered_count": 2, "total_count": 3}


async def test_reasons_are_counted_whichever_is_asked_for(
    own: list[ActiveSubscription], world: World, http: AsyncClient
) -> None:
    for reason in ("12 attempts, the last: status 503", "1 attempt, the last: status 503", "loop"):
        await add_dead_letter(world, own[0].subscription.id, reason=reason)
    counted = [{"reason": "status 503", "dead_letters": 2}, {"reason": "loop", "dead_letters": 1}]
    for query, oldest in (("", 0), ("?reason=loop", 2)):
        found = await get(http, PATH + query)
        assert found["reasons"] == counted
        assert found["oldest_at"] == (await letters(http))[oldest]["dead_at"]


async def test_replay_without_subscription_is_refused(world: World, http: AsyncClient) -> None:
    await add_dead_letter(world, OVER)
    [letter] = await letters(http)
    response = await http.post(f"/api{PATH}/%2F/{letter['id']}/replay")
    assert refused(response, 409) == "id: its subscription is over"
    assert await depth(world, "hub.dead") == 1


async def test_replaying_by_filter_and_by_ids(
    world: World, http: AsyncClient, own: list[ActiveSubscription]
) -> None:
    for number, whose in enumerate([own[0].subscription.id, OVER, own[0].subscription.id] * 2):
        await add_dead_letter(world, whose, b"%d" % number, key="a" if number < 3 else "b")
    assert await post(http, "replay", routing_key="a") == {
        "replayed": 2, "skipped": 1, "left": 4, "is_complete": True,
    }  # fmt: skip
    chosen = [one["id"] for one in await letters(http)][:2]
    assert await post(http, "replay", ids=chosen) == {
        "replayed": 1, "skipped": 1, "left": 3, "is_complete": True,
    }  # fmt: skip
    assert await bodies(http) == ["1", "4", "5"]
    assert await depth(world, own[0].subscription.queue) == 3


async def test_deleting_without_a_filter_needs_all_true(world: World, http: AsyncClient) -> None:
    await add_dead_letter(world, OVER)
    for body in ({}, {"all": False}, {"all": "true"}, {"subscription": None}):
        response = await http.post(f"/api{PATH}/delete", json=body)
        assert 'or "all": true' in refused(response, 400)
    assert await post(http, "delete", all=True) == {"deleted": 1, "left": 0, "is_complete": True}


async def test_other_vhosts(world: World, http: AsyncClient) -> None:
    await add_dead_letter(world, OVER)
    await add_dead_letter(world, OVER, vhost="other/one")
    assert [one["vhost"] for one in await letters(http)] == ["/", "other/one"]
    [there] = await letters(http, "?vhost=other%2Fone")
    found = await get(http, f"{PATH}/other%2Fone/{there['id']}")
    assert found["payload"] == "bonjour"
    assert refused(await http.get(f"/api{PATH}/%2F/{there['id']}"), 404)
    assert refused(await http.get(f"/api{PATH}/nowhere/1"), 404)
    assert refused(await http.get(f"/api{PATH}?vhost=nowhere"), 404)
    assert (await post(http, "delete", vhost="other/one"))["deleted"] == 1
    assert await depth(world, "hub.dead") == 1


@pytest.mark.parametrize("tag", ["management", "monitoring", "policymaker"])
async def test_owners_see_only_their_dead_letters(
    world: World, own: list[ActiveSubscription], tag: str
) -> None:
    await add_dead_letter(world, own[0].subscription.id, b"guest's")
    await add_dead_letter(world, own[1].subscription.id, b"mine")
    await add_dead_letter(world, OVER, b"nobody's")
    async with world.client() as http:
        foreign = [one["id"] for one in await letters(http) if one["routing_key"] == "eu.fr"]
        foreign = [foreign[0], foreign[2]]
    async with world.client(auth=tagged(world, tag)) as http:
        assert await bodies(http) == ["mine"]
        assert (await get(http, PATH))["total_count"] == 1
        for one in foreign:
            path = f"/api{PATH}/%2F/{one}"
            assert refused(await http.get(path), 404)
            assert refused(await http.delete(path), 404)
            assert refused(await http.post(f"{path}/replay"), 404)
        none = {"left": 1, "is_complete": True}
        assert await post(http, "delete", ids=foreign) == {"deleted": 0, **none}
        assert await post(http, "replay", ids=foreign) == {"replayed": 0, "skipped": 0, **none}
        done = {"left": 0, "is_complete": True}
        assert await post(http, "replay") == {"replayed": 1, "skipped": 0, **done}
        assert await post(http, "delete", all=True) == {"deleted": 0, **done}
    assert (await depth(world, "in"), await depth(world, "hub.dead")) == (1, 2)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"subscripton": "1"}, "unknown filter 'subscripton'; known: subscription, "),
        ({"reason": 5}, "'reason' is 5, it has to be a string"),
        ({"ids": "1"}, "'ids' is '1', it has to be a list of strings"),
        ({"ids": [1]}, "'ids' is [1], it has to be a list of strings"),
        ({"min_age_s": -1}, "'min_age_s' is -1, it has to be a number of seconds"),
        ({"min_age_s": "old"}, "'min_age_s' is 'old', it has to be"),
        ({"max_age_s": True}, "'max_age_s' is True, it has to be"),
        ({"max_age_s": "inf"}, "'max_age_s' is 'inf', it has to be"),
        ({"max_age_s": 10**19}, ""),
    ],
)
async def test_bad_filters_are_refused(
    world: World, http: AsyncClient, given: Any, reason: str
) -> None:
    await add_dead_letter(world, OVER)
    for path in ("replay", "delete"):
        response = await http.post(f"/api{PATH}/{path}", content=json.dumps(given).encode())
        if reason:
            assert refused(response, 400).startswith(reason)
        else:
            assert response.status_code == 200
            return
    assert await depth(world, "hub.dead") == 1


@pytest.mark.parametrize(
    "query", ["page=0", "page_size=501", "page_size=1000000000", "ids=1", "min_age_s=x", "x=1"]
)
async def test_bad_queries_are_refused(http: AsyncClient, query: str) -> None:
    refused(await http.get(f"/api{PATH}?{query}"), 400)


@pytest.mark.parametrize("tag", [None, "impersonator"])
async def test_credentials_and_tag_are_needed(world: World, tag: str | None) -> None:
    credentials = None if tag is None else tagged(world, tag)
    async with world.client(auth=credentials) as http:
        for method, path in [
            ("GET", ""), ("POST", "/replay"), ("POST", "/delete"), ("GET", "/%2F/1"),
            ("DELETE", "/%2F/1"), ("POST", "/%2F/1/replay"),
        ]:  # fmt: skip
            response = await http.request(method, f"/api{PATH}{path}")
            refused(response, 401 if tag is None else 403)
