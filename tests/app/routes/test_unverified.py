"""Callbacks that nobody asks: `hub.verify=none`, by users who vouch for them."""

from __future__ import annotations

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.support import problem
from tests.hub.support import until
from tests.support.http import Answer, Callback
from tests.support.times import seconds
from warrenmq.hub.service import Hub

from .subscribing import listed

FORM = {"hub.mode": "subscribe", "hub.topic": "eu.#", "hub.verify": "none"}


@pytest.fixture
async def mute(world: World, hub: Hub, callback: Callback) -> Callback:
    """One that answers no challenge, as the incoming webhook of a chat."""
    await world.exchange("news")
    callback.refusal = Answer(400, body=b"no_text")
    return callback


def trust(world: World, *tags: str) -> tuple[str, str]:
    world.users.set_tags("tony", tags)
    world.users.set_permissions("tony", "/", ".*", ".*", ".*")
    return "tony", "secret"


@pytest.mark.parametrize("tag", ["administrator", "hub-trusted"])
async def test_trusted_users_subscribe_without_verification(
    world: World, mute: Callback, tag: str
) -> None:
    form = {**FORM, "hub.callback": mute.url}
    async with world.client(auth=trust(world, tag)) as http:
        assert (await http.post("/subscribe/x/news", data=form)).status_code == 204
        assert mute.verifications == []
        await http.post("/endpoint/x/news?hub.topic=eu.fr", content=b"bonjour")

        def has_arrived() -> bool:
            world.broker.turn()  # no listener does
            return [one.body for one in mute.deliveries] == [b"bonjour"]

        await until(has_arrived, "delivery")
        assert (await http.post("/subscribe/x/news", data=form)).status_code == 204  # a renewal
        form["hub.mode"] = "unsubscribe"
        assert (await http.post("/subscribe/x/news", data=form)).status_code == 204
    assert mute.verifications == []


@pytest.mark.parametrize("tag", [None, "management", "monitoring", "impersonator"])
@pytest.mark.parametrize("mode", ["subscribe", "unsubscribe"])
async def test_others_may_not(
    world: World, mute: Callback, http: AsyncClient, tag: str | None, mode: str
) -> None:
    owned = {**FORM, "hub.callback": mute.url}
    async with world.client(auth=trust(world, "hub-trusted")) as trusted:
        assert (await trusted.post("/subscribe/x/news", data=owned)).is_success
    form = {**owned, "hub.mode": mode, "hub.topic": "eu.#" if mode == "unsubscribe" else "us"}
    async with world.client(auth=trust(world, *filter(None, [tag]))) as other:
        detail = problem(await other.post("/subscribe/x/news", data=form), 403)
        assert "hub-trusted" in detail
        form["hub.verify"] = "none, sync"  # the first that may be
        problem(await other.post("/subscribe/x/news", data=form), 400)
    assert len(mute.verifications) == 1
    assert len(await listed(http)) == 1


async def test_an_unverified_subscription_is_listed_and_imported(
    world: World, mute: Callback, http: AsyncClient
) -> None:
    form = {**FORM, "hub.callback": mute.url, "hub.lease_seconds": "600"}
    assert (await http.post("/subscribe/x/news", data=form)).status_code == 204
    [exported] = await listed(http)
    assert exported["verification"] == "none"
    assert seconds(exported["expires_at"]) == exported["lease_expiry_time_microsec"] // 1000 / 1000
    removed = await http.delete(
        "/subscribe/x/news", params={"hub.callback": mute.url, "hub.topic": "eu.#"}
    )
    assert removed.is_success
    answer = await http.post("/subscriptions", json={"subscriptions": [exported]})
    assert answer.is_success
    [again] = await listed(http)
    assert again["verification"] == "none"
    mute.refusal = None
    assert (await http.post("/subscribe/x/news", data={**form, "hub.verify": "sync"})).is_success
    [verified] = await listed(http)
    assert verified["verification"] == "callback"
    assert len(mute.verifications) == 1


async def test_a_refused_address_is_refused_unverified_too(
    world: World, mute: Callback, http: AsyncClient
) -> None:
    form = {**FORM, "hub.callback": "http://10.0.0.1/"}
    assert "10.0.0.1" in problem(await http.post("/subscribe/x/news", data=form), 422)
    assert await listed(http) == []
