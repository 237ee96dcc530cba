"""Misspelt parameters are refused on every door, with the name that was meant."""

from __future__ import annotations

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.support import problem
from warrenmq.app.requests.parameters import refuse_misspelt, refuse_unknown
from warrenmq.app.responses.facets import HUB_NAMES, SUBSCRIBE_NAMES
from warrenmq.hub.subscriptions.options import PARAMETERS

CALLBACK = {"hub.mode": "subscribe", "hub.callback": "http://a.b/", "hub.topic": "#"}


@pytest.mark.parametrize(
    ("method", "path", "misspelt", "meant"),
    [
        ("POST", "/endpoint/x/news", "hub.topc", "hub.topic"),
        ("POST", "/endpoint/q/in", "amqp.correlationid", "amqp.correlation_id"),
        ("POST", "/endpoint/q/in", "amqp.mandatry", "amqp.mandatory"),
        ("PUT", "/endpoint/x/new", "amqp.exchangetype", "amqp.exchange_type"),
        ("DELETE", "/endpoint/q/in", "if_empty", "if-empty"),
        ("GET", "/endpoint/x/news?hub.mode=generate_token", "hub.intendeduse", "hub.intended_use"),
        ("GET", "/subscriptions/x/news", "hub.calback", "hub.callback"),
        ("DELETE", "/subscribe/x/news?hub.callback=http://a.b/", "hub.topik", "hub.topic"),
    ],
)
async def test_misspelt_parameters_in_the_query_are_refused(
    world: World, http: AsyncClient, method: str, path: str, misspelt: str, meant: str
) -> None:
    await world.exchange("news")
    await world.queue("in")
    separator = "&" if "?" in path else "?"
    response = await http.request(method, f"{path}{separator}{misspelt}=b")
    assert problem(response, 400) == f"unknown parameter {misspelt}; did you mean {meant}?"
    assert await world.messages("in") == []


async def test_misspelt_parameters_of_a_subscribe_are_refused(
    world: World, http: AsyncClient
) -> None:
    await world.exchange("news")
    form = {**CALLBACK, "hub.secrt": "1"}
    refused = "unknown parameter hub.secrt; did you mean hub.secret?"
    json = {"hub": {name.removeprefix("hub."): value for name, value in form.items()}}
    for response in (
        await http.post("/subscribe/x/news", data=form),
        await http.post("/subscribe/x/news", params=form),
        await http.post("/subscribe/x/news", json=json),
    ):
        assert problem(response, 400) == refused
    response = await http.post("/hub", data=form)
    assert (response.status_code, response.text) == (400, refused + "\n")
    assert world.hub.asked == []


async def test_parameters_without_a_known_prefix_are_ignored(
    world: World, http: AsyncClient
) -> None:
    await world.exchange("news")
    await world.queue("in")
    own = {"hubtopic": "1", "secrt": "2", "": "3"}
    assert (await http.post("/endpoint/q/in", params=own)).status_code == 202
    assert (await http.post("/subscribe/x/news", data={**CALLBACK, **own})).is_success
    assert len(world.hub.asked) == 1


@pytest.mark.parametrize("name", sorted(HUB_NAMES | set(PARAMETERS)))
def test_known_parameters_are_accepted(name: str) -> None:
    refuse_misspelt([name], HUB_NAMES)
    if name in SUBSCRIBE_NAMES:
        refuse_unknown([name], SUBSCRIBE_NAMES)
