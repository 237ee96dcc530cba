"""/api/hub/attempts: filters, pages, and whose attempts are shown to whom."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.routes.api.support import get, refused, tagged
from tests.app.routes.subscribing import entry
from tests.hub.attempts.support import attempt
from tests.support.http import Callback
from warrenmq.app.routes.api import attempt_filter
from warrenmq.hub.attempts.attempt import AttemptOutcome
from warrenmq.hub.delivery.breaker import BreakerState
from warrenmq.hub.service import Hub

PATH = "/hub/attempts"
OVER = "f" * 32


@pytest.fixture
async def own(hub: Hub, world: World, callback: Callback) -> list[str]:
    """The ids of a subscription of `guest` and of one of `someone`."""
    await world.queue("in")
    for user in ("guest", "someone"):
        wish = replace(entry("in", user, callback=callback.url), user=user)
        await hub.subscriptions.subscribe(wish)
    return [active.subscription.id for active in hub.subscription_store.all()]


@pytest.fixture(autouse=True)
async def _attempts(hub: Hub, own: list[str]) -> None:
    """Six, by turns of `guest`, of `someone`, and of a subscription that is over."""
    written = asyncio.Event()
    outcomes = [AttemptOutcome.DELIVERED, AttemptOutcome.RETRIED, AttemptOutcome.DEAD] * 2
    for number, (whose, outcome) in enumerate(zip([*own, OVER] * 2, outcomes, strict=True)):
        one = attempt(
            subscription_id=whose, webhook_id=f"msg_{number // 3}", outcome=outcome,
            next_at=1_800_000_003.25,
        )  # fmt: skip
        hub.attempts.record(one, lambda numbers: written.set() if 5 in numbers else None, number)
    await written.wait()


async def ids(http: AsyncClient, query: str = "", path: str = PATH) -> list[int]:
    return [one["id"] for one in (await get(http, path + query))["attempts"]]


async def test_fields_of_an_attempt(http: AsyncClient, own: list[str]) -> None:
    found = await get(http, f"{PATH}?limit=1&before=2")
    assert found == {
        "attempts": [
            {
                "id": 1, "subscription": own[0], "webhook_id": "msg_0", "number": 1,
                "at": "2027-01-15T08:00:00.250Z", "latency_ms": 12, "status": 200,
                "outcome": "delivered", "response": "HTTP/1.1 200 OK",
                "callback": "http://a.b/", "response_body": "ok",
                "source": {"vhost": "/", "resource_type": "queue", "resource_name": "in"},
                "topic": "guest",
            }
        ],
        "next_before": 1,
    }  # fmt: skip


async def test_the_next_attempt_waits_for_an_open_breaker(
    hub: Hub, http: AsyncClient, own: list[str]
) -> None:
    active = hub.subscription_store.by_id(own[1])
    assert active is not None
    rests = active.failed("no", 1_900_000_000.0)
    rests.rests_until = 1_900_000_010.0
    for state, expected in {
        BreakerState.OPEN: ("open", "2030-03-17T17:46:50.000Z"),
        BreakerState.HALF_OPEN: ("failing", "2027-01-15T08:00:03.250Z"),
    }.items():
        rests.breaker.state = state
        found = await get(http, f"{PATH}/2")
        assert (found["condition"], found["next_attempt_at"]) == expected


async def test_filters_and_pages(http: AsyncClient, own: list[str]) -> None:
    for query, expected in {
        "": [6, 5, 4, 3, 2, 1],
        f"?subscription={own[1]}": [5, 2],
        f"?subscription={OVER}": [6, 3],
        "?subscription=unknown": [],
        "?webhook_id=msg_0": [3, 2, 1],
        "?outcome=dead": [6, 3],
        "?outcome=dead&webhook_id=msg_1": [6],
        "?status=2xx": [6, 5, 4, 3, 2, 1],
        "?status=200&limit=1": [6],
        "?status=5xx": [],
        "?status=none": [],
        "?since=2027-01-15T08:00:00Z": [6, 5, 4, 3, 2, 1],
        "?since=2027-01-15T08:00:01Z": [],
        "?until=2027-01-15T08:00:00Z": [],
        "?source=in": [5, 4, 2, 1],
        f"?source=in&subscription={own[1]}": [5, 2],
        "?source=out": [],
        "?topic=guest": [4, 1],
        "?source=in&topic=nobody": [],
        "?callback=callback&vhost=%2F": [5, 4, 2, 1],
        "?vhost=other": [],
        "?limit=4": [6, 5, 4, 3],
        "?limit=4&before=3": [2, 1],
    }.items():
        assert await ids(http, query) == expected, query
    assert await ids(http, "?outcome=retried", f"/hub/subscriptions/{own[1]}/attempts") == [5, 2]
    first = await get(http, f"{PATH}?limit=6")
    assert first["next_before"] == 1
    last = await get(http, f"{PATH}?limit=6&before=1")
    assert last == {"attempts": [], "next_before": None}


async def test_attempts_are_counted_by_outcome_and_status(
    world: World, http: AsyncClient, own: list[str]
) -> None:
    words = ("delivered", "retried", "dead")
    twice = [{"outcome": word, "status": "2xx", "attempts": 2} for word in sorted(words)]
    found = await get(http, f"{PATH}/counts")
    found["counts"].sort(key=lambda one: one["outcome"])
    assert found == {"counts": twice, "total": 6, "is_complete": True}
    assert (await get(http, f"{PATH}/counts?status=none"))["counts"] == []
    async with world.client(auth=tagged(world, "management")) as someone:
        assert (await get(someone, f"{PATH}/counts"))["counts"] == [twice[2]]


@pytest.mark.parametrize("tag", ["management", "monitoring", "policymaker"])
async def test_owners_see_only_their_attempts(world: World, own: list[str], tag: str) -> None:
    async with world.client(auth=tagged(world, tag)) as http:
        assert await ids(http) == [5, 2]
        assert await ids(http, f"?subscription={own[1]}") == [5, 2]
        assert await ids(http, "?outcome=dead") == []
        assert await ids(http, path=f"/hub/subscriptions/{own[1]}/attempts") == [5, 2]
        for whose in (own[0], OVER):
            for path in (f"{PATH}?subscription={whose}", f"/hub/subscriptions/{whose}/attempts"):
                reason = refused(await http.get(f"/api{path}"), 404)
                assert reason == f"no subscription '{whose}'"


async def test_an_owner_of_very_many_names_one(
    world: World, own: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_filter, "SUBSCRIPTIONS_MAX", 0)
    async with world.client(auth=tagged(world, "management")) as http:
        assert "this is about 1 subscriptions" in refused(await http.get(f"/api{PATH}"), 400)
        assert await ids(http, f"?subscription={own[1]}") == [5, 2]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("limit=0", "'limit' is 0, it has to be a number from 1 to 1000"),
        ("limit=1001", "'limit' is 1001, it has to be"),
        ("limit=many", "'limit' is 'many', it has to be"),
        ("before=-1", "'before' is '-1', it has to be"),
        ("before=99999999999999999999", "'before' is 99999999999999999999, it has to be"),
        ("outcome=lost", "'outcome' is 'lost', it has to be one of delivered, retried, dead, gone"),
        ("colour=red", "unknown filter 'colour'; known: subscription, webhook_id, outcome"),
        ("since=yesterday", "'since' is 'yesterday', it has to be a time with its zone"),
        ("until=2026-11-22T20:14:34", "'until' is"),
        ("status=6xx", "'status' is '6xx', it has to be one of 1xx, 2xx, 3xx, 4xx, 5xx, none, or"),
    ],
)
async def test_bad_queries_are_refused(http: AsyncClient, query: str, reason: str) -> None:
    assert refused(await http.get(f"/api{PATH}?{query}"), 400).startswith(reason)


async def test_credentials_and_tag_are_needed(world: World) -> None:
    for credentials in (None, tagged(world, "impersonator")):
        async with world.client(auth=credentials) as http:
            for path in (PATH, f"/hub/subscriptions/{OVER}/attempts"):
                response: Any = await http.get(f"/api{path}")
                refused(response, 401 if credentials is None else 403)
