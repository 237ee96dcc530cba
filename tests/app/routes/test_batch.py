"""POST /endpoint with `hub.mode=batch`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.support import problem
from warrenmq.app.routes import batch

NDJSON = {"Content-Type": "application/x-ndjson"}
EVENTS = {"Content-Type": "application/cloudevents-batch+json; charset=utf-8"}
URL = "/endpoint/x/news?hub.mode=batch"


@pytest.fixture(autouse=True)
async def _resources(world: World) -> None:
    await world.exchange("news")
    await world.queue("in")
    await world.bind("news", "in")


def event(number: int, **changed: Any) -> dict[str, Any]:
    own = {"specversion": "1.0", "id": str(number), "source": "/tests", "type": "made"}
    return {**own, "data": {"n": number}, **changed}


async def test_each_line_is_a_message(world: World, http: AsyncClient) -> None:
    lines = b'{"n":1}\n\n[2, "two"]\r\n"\xc3\xa9"\n 4 '
    answer = await http.post(
        f"{URL}&hub.topic=eu.fr&amqp.priority=3", content=lines, headers=NDJSON
    )
    assert (answer.status_code, answer.json()) == (202, {"published": 4, "unrouted": 0})
    found = await world.messages("in")
    assert [one.body for one in found] == [b'{"n":1}', b'[2, "two"]', b'"\xc3\xa9"', b"4"]
    assert {one.routing_key for one in found} == {"eu.fr"}
    [properties] = {repr(one.properties): one.properties for one in found}.values()
    assert properties.content_type == "application/json"
    assert (properties.priority, properties.delivery_mode) == (3, 2)


async def test_each_event_is_a_message_in_structured_form(world: World, http: AsyncClient) -> None:
    events = [event(1), event(2, type="other", extension="é"), event(3)]
    answer = await http.post(URL, content=json.dumps(events).encode(), headers=EVENTS)
    assert (answer.status_code, answer.json()) == (202, {"published": 3, "unrouted": 0})
    found = await world.messages("in")
    assert [json.loads(one.body) for one in found] == events
    assert [one.routing_key for one in found] == ["made", "other", "made"]
    assert {one.properties.content_type for one in found} == {"application/cloudevents+json"}


async def test_a_topic_is_the_key_of_all_events(world: World, http: AsyncClient) -> None:
    events = json.dumps([event(1), event(2, type="other")]).encode()
    assert (await http.post(f"{URL}&hub.topic=k", content=events, headers=EVENTS)).is_success
    assert [one.routing_key for one in await world.messages("in")] == ["k", "k"]


async def test_batch_to_a_queue(world: World, http: AsyncClient) -> None:
    url = "/endpoint/q/in?hub.mode=batch&hub.topic=label"
    assert (await http.post(url, content=b"1\n2", headers=NDJSON)).status_code == 202
    assert [(m.exchange, m.routing_key, m.body) for m in await world.messages("in")] == [
        ("", "label", b"1"),
        ("", "label", b"2"),
    ]


BAD = {
    "no JSON": (NDJSON, b"1\n{bad}\n"),
    "cut": (NDJSON, b'1\n{"a":'),
    "deep": (NDJSON, b"[" * 15_000),
    "no UTF-8": (NDJSON, b'"\xff"'),
    "no array": (EVENTS, b'{"a": 1}'),
    "no id": (EVENTS, json.dumps([event(1), {"type": "t", "specversion": "1.0"}]).encode()),
    "old": (EVENTS, json.dumps([event(1, specversion="0.3")]).encode()),
    "no object": (EVENTS, b"[1,1]"),
    "no type": (EVENTS, json.dumps([event(1, type="")]).encode()),
}


@pytest.mark.parametrize("name", BAD)
async def test_nothing_is_published_of_a_bad_batch(
    world: World, http: AsyncClient, name: str
) -> None:
    headers, body = BAD[name]
    assert problem(await http.post(URL, content=body, headers=headers), 400)
    assert await world.messages("in") == []


async def test_another_content_type_and_too_many_are_refused(
    world: World, http: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = await http.post(URL, content=b"1", headers={"Content-Type": "text/plain"})
    assert "application/x-ndjson" in problem(wrong, 415)
    assert problem(await http.post(URL, content=b"1"), 415)
    monkeypatch.setattr(batch, "MAX_MESSAGES", 2)
    assert (await http.post(URL, content=b"1\n2", headers=NDJSON)).status_code == 202
    many = problem(await http.post(URL, content=b"1\n2\n3", headers=NDJSON), 413)
    assert "3 messages, at most 2" in many
    blank = problem(await http.post(URL, content=b"\n" * 9, headers=NDJSON), 413)
    assert "9 lines, at most 8" in blank
    # Millions of what is no event need not be counted.
    assert problem(await http.post(URL, content=b"[1,1,1]", headers=EVENTS), 400)
    three = json.dumps([event(1), event(2), event(3)]).encode()
    assert "3 messages, at most 2" in problem(
        await http.post(URL, content=three, headers=EVENTS), 413
    )
    assert len(await world.messages("in")) == 2


async def test_an_empty_batch_publishes_nothing(world: World, http: AsyncClient) -> None:
    for headers, body in ((NDJSON, b"\n"), (EVENTS, b"[]")):
        answer = await http.post(URL, content=body, headers=headers)
        assert (answer.status_code, answer.json()["published"]) == (202, 0)
    assert await world.messages("in") == []


async def test_unrouted_messages_are_counted(world: World, http: AsyncClient) -> None:
    await world.exchange("alone", "direct")
    url = "/endpoint/x/alone?hub.mode=batch"
    answer = await http.post(url, content=b"1\n2", headers=NDJSON)
    assert (answer.status_code, answer.json()) == (202, {"published": 2, "unrouted": 2})
    refused = await http.post(f"{url}&amqp.mandatory=true", content=b"1\n2", headers=NDJSON)
    assert "2 of the 2" in problem(refused, 404)


async def test_messages_refused_by_a_full_queue_are_counted(
    world: World, http: AsyncClient
) -> None:
    await world.queue("small", max_length=2, overflow="reject-publish")
    url = "/endpoint/q/small?hub.mode=batch"
    refused = await http.post(url, content=b"1\n2\n3\n4\n5", headers=NDJSON)
    assert "refused 3 messages" in problem(refused, 503)
    assert refused.headers["Retry-After"]
    assert [one.body for one in await world.messages("small")] == [b"1", b"2"]


async def test_keys_of_events_need_the_topic_permission(world: World) -> None:
    world.users.set_permissions("tony", "/", ".*", ".*", ".*")
    world.users.set_topic_permission("tony", "/", "news", "^made$", ".*")
    events = json.dumps([event(1), event(2, type="secret")]).encode()
    async with world.client(auth=("tony", "secret")) as tony:
        refused = problem(await tony.post(URL, content=events, headers=EVENTS), 403)
        assert "secret" in refused
        assert await world.messages("in") == []
        made = await tony.post(f"{URL}&hub.topic=made", content=events, headers=EVENTS)
        assert made.status_code == 202
        refused = problem(
            await tony.post(f"{URL}&hub.topic=secret", content=events, headers=EVENTS), 403
        )
    assert len(await world.messages("in")) == 2
