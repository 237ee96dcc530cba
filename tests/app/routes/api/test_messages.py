"""Messages over the management API: published, got, looked at, moved, purged."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient, Response

from tests.app.conftest import World
from warrenmq.core.message.model import Properties

from .support import delete, get, refused, tagged

EVERYTHING = {
    "content_type": "text/plain", "content_encoding": "gzip", "delivery_mode": 2, "priority": 3,
    "correlation_id": "c", "reply_to": "r", "expiration": "60000", "message_id": "m",
    "timestamp": 1_700_000_000, "type": "t", "user_id": "guest", "app_id": "a", "cluster_id": "k",
    "headers": {"n": 1, "deep": [{"x": None}], "at": {"$timestamp": 5}},
}  # fmt: skip


async def publish(http: AsyncClient, payload: str = "hello", **fields: Any) -> Response:
    exchange = fields.pop("exchange", "amq.default")
    body = {
        "properties": {}, "routing_key": "q", "payload": payload, "payload_encoding": "string",
        **fields,
    }  # fmt: skip
    return await http.post(f"/api/exchanges/%2F/{exchange}/publish", json=body)


async def take(
    http: AsyncClient, count: int = 10, mode: str = "ack_requeue_false", **more: Any
) -> Any:
    body = {"count": count, "ackmode": mode, "encoding": "auto", **more}
    response = await http.post("/api/queues/%2F/q/get", json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def fill(world: World, count: int, queue: str = "q", **properties: Any) -> None:
    for number in range(count):
        await world.engine.publish(None, "/", "", queue, Properties(**properties), b"%d" % number)


def payloads(found: Any) -> list[str]:
    return [one["payload"] for one in found]


# -- publishing


async def test_a_publish_answers_whether_it_was_routed(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    assert (await publish(http)).json() == {"routed": True}
    assert (await publish(http, routing_key="nowhere")).json() == {"routed": False}
    assert (await publish(http, exchange="amq.topic")).json() == {"routed": False}
    assert (await world.message("q")).body == b"hello"


async def test_lavinmqs_pages_get_messages_too(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    await publish(http)
    body = {"count": 1, "ack_mode": "get", "encoding": "auto"}
    assert payloads((await http.post("/api/queues/%2F/q/get", json=body)).json()) == ["hello"]
    assert await take(http) == []


async def test_all_properties_go_there_and_back(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    assert (await publish(http, properties={**EVERYTHING, "unknown": 1})).status_code == 200
    (found,) = await take(http)
    assert found["properties"] == EVERYTHING
    assert (found["exchange"], found["routing_key"]) == ("", "q")


async def test_binary_payloads_are_base64(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    for _ in range(2):
        await publish(http, "/w==", payload_encoding="base64")
        await publish(http, "höß")
    first, second = await take(http, 2)
    assert (first["payload"], first["payload_encoding"], first["payload_bytes"]) == (
        "/w==",
        "base64",
        1,
    )
    assert (second["payload"], second["payload_encoding"]) == ("höß", "string")
    cut = await take(http, 2, encoding="base64", truncate=1)
    assert [(one["payload"], one["payload_bytes"]) for one in cut] == [("/w==", 1), ("aA==", 5)]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"properties": {"priority": 256}}, "property 'priority' is 256, it has to be 0 to 255"),
        ({"properties": {"headers": []}}, "property 'headers' has to be an object, not []"),
        ({"properties": {"headers": {"a": {"$no": 1}}}}, "property 'headers': unknown tag"),
        ({"properties": {"type": 5}}, "property 'type' has to be a string, not 5"),
        ({"properties": {"message_id": "é" * 128}}, "property 'message_id' has 256 bytes"),
        ({"properties": {"user_id": "tony"}}, "user_id"),
        ({"properties": {"expiration": "soon"}}, "invalid expiration 'soon'"),
        ({"payload_encoding": "utf8"}, "payload_encoding is 'utf8', it can be string or base64"),
        ({"payload": "_", "payload_encoding": "base64"}, "the payload is not base64"),
        ({"routing_key": None}, "key 'routing_key' has to be a string, not None"),
        ({"routing_key": "x" * 256}, "routing_key has 256 bytes, at most 255"),
    ],
)  # fmt: skip
async def test_malformed_messages_are_refused(
    http: AsyncClient, fields: Any, complaint: str
) -> None:
    assert complaint in refused(await publish(http, **fields), 400)


async def test_publishing_needs_write_and_the_topic(world: World) -> None:
    world.users.add("topical", "secret", ("management",))
    world.users.set_permissions("topical", "/", "", "amq.topic", "")
    world.users.set_topic_permission("topical", "/", "amq.topic", "^own", "")
    async with world.client(auth=("topical", "secret")) as http:
        assert "amq.topic" in refused(await publish(http, exchange="amq.topic"), 403)
        assert (await publish(http, exchange="amq.topic", routing_key="own.x")).status_code == 200
        assert refused(await publish(http), 403)
    async with world.client() as http:
        assert "no exchange 'none'" in refused(await publish(http, exchange="none"), 404)


async def test_no_publish_in_an_alarm(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    world.broker.alarms.any = world.broker.alarms.memory = True
    response = await publish(http)
    assert response.status_code == 503
    assert response.headers["retry-after"] == "5"


async def test_a_publish_to_a_full_queue_is_refused(world: World, http: AsyncClient) -> None:
    await world.queue("q", max_length=0, overflow="reject-publish")
    assert (await publish(http)).status_code == 503


# -- getting


@pytest.mark.parametrize("mode", ["ack_requeue_true", "reject_requeue_true"])
async def test_got_messages_return_to_their_places(
    world: World, http: AsyncClient, mode: str
) -> None:
    await world.queue("q")
    await fill(world, 3)
    first = await take(http, 2, mode)
    assert payloads(first) == ["0", "1"]
    assert [one["message_count"] for one in first] == [2, 1]
    again = await take(http)
    assert payloads(again) == ["0", "1", "2"]
    assert [one["redelivered"] for one in again] == [True, True, False]
    assert await take(http) == []


@pytest.mark.parametrize(("mode", "dead"), [("ack_requeue_false", 0), ("reject_requeue_false", 2)])
async def test_got_messages_are_gone(world: World, http: AsyncClient, mode: str, dead: int) -> None:
    await world.queue("dead")
    await world.queue("q", dead_letter_exchange="", dead_letter_routing_key="dead")
    await fill(world, 3)
    assert payloads(await take(http, 2, mode)) == ["0", "1"]
    assert len(await world.messages("dead")) == dead
    assert payloads(await take(http)) == ["2"]


async def test_malformed_gets_are_refused(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    for body, complaint in (
        ({"count": 1}, "needs the key 'ackmode'"),
        ({"ackmode": "ack_requeue_true"}, "needs the key 'count'"),
        ({"count": 1, "ackmode": "maybe"}, "ackmode is 'maybe', it can be ack_requeue_true"),
        ({"count": 10_001, "ackmode": "ack_requeue_true"}, "count is 10001, it has to be 0 to"),
        ({"count": 1, "ackmode": "ack_requeue_true", "encoding": "hex"}, "encoding is 'hex'"),
        ({"count": 1, "ackmode": "ack_requeue_true", "truncate": -1}, "truncate is -1"),
    ):
        assert complaint in refused(await http.post("/api/queues/%2F/q/get", json=body), 400)
    good = {"count": 1, "ackmode": "ack_requeue_true"}
    assert refused(await http.post("/api/queues/%2F/none/get", json=good), 404)


async def test_reading_needs_the_permission(world: World) -> None:
    await world.queue("q")
    async with world.client(auth=tagged(world, "administrator")) as http:
        for method, path in (
            ("POST", "/api/queues/%2F/q/get"),
            ("DELETE", "/api/queues/%2F/q/contents"),
            ("GET", "/api/warren/queues/%2F/q/messages"),
            ("POST", "/api/warren/queues/%2F/q/move"),
        ):
            body = {"count": 1, "ackmode": "ack_requeue_true", "queue": "q"}
            response = await http.request(method, path, json=None if method == "GET" else body)
            assert "queue 'q' in vhost '/' refused" in refused(response, 403)
            response = await http.request(method, path, auth=("tony", "secret"))
            assert "user 'tony' needs the tag 'management'" in refused(response, 403)


# -- looking


async def test_looking_changes_nothing(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    await fill(world, 10)
    path = "/warren/queues/%2F/q/messages"
    for query, wanted in (
        ("", [0]),
        ("?count=3", [0, 1, 2]),
        ("?from=last&count=2", [8, 9]),
        ("?from=4&count=2", [4, 5]),
        ("?from=10", []),
    ):
        found = await get(http, path + query)
        assert [one["position"] for one in found["messages"]] == wanted
        assert payloads(found["messages"]) == [str(at) for at in wanted]
        assert found["ready"] == 10
    assert [one.redelivered for one in await world.messages("q")] == [False] * 10
    assert "1 to 250" in refused(await http.get(f"/api{path}?count=251"), 400)
    assert "'from' is 'middle'" in refused(await http.get(f"/api{path}?from=middle"), 400)
    assert "unknown filter 'form'" in refused(await http.get(f"/api{path}?form=first"), 400)


async def test_looking_at_a_stream(world: World, http: AsyncClient) -> None:
    await world.queue("s", queue_type="stream")
    await fill(world, 5, "s")
    found = await get(http, "/warren/queues/%2F/s/messages?from=last&count=2&encoding=base64")
    assert [(one["position"], one["payload"]) for one in found["messages"]] == [
        (3, "Mw=="),
        (4, "NA=="),
    ]


# -- moving and purging


async def move(http: AsyncClient, **body: Any) -> Any:
    response = await http.post("/api/warren/queues/%2F/q/move", json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def test_moved_to_a_queue(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    await world.queue("r")
    await fill(world, 150, message_id="m")
    assert await move(http, queue="r", count=120) == {"moved": 120, "left": 30, "reason": ""}
    found = await world.messages("r")
    assert [one.body for one in found] == [b"%d" % number for number in range(120)]
    assert {(one.routing_key, one.properties.message_id) for one in found} == {("q", "m")}
    assert [one.redelivered for one in await world.messages("q")] == [False] * 30


async def test_moved_to_an_exchange(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    await world.queue("r")
    await fill(world, 3)
    assert await move(http, exchange="amq.direct") == {
        "moved": 0, "left": 3, "reason": "unrouted",
    }  # fmt: skip
    await world.bind("amq.direct", "r", "key")
    assert (await move(http, exchange="amq.direct", routing_key="key"))["moved"] == 3
    assert [one.routing_key for one in await world.messages("r")] == ["key"] * 3


async def test_a_move_stops_where_a_topic_is_not_permitted(world: World) -> None:
    await world.queue("q")
    await world.queue("own")
    await world.bind("amq.topic", "own", "#")
    for key in ("own.1", "other", "own.2"):
        await world.engine.publish(None, "/", "", key, Properties(), b"", queue="q")
    world.users.add("topical", "secret", ("management",))
    world.users.set_permissions("topical", "/", "", "amq.topic", "q")
    world.users.set_topic_permission("topical", "/", "amq.topic", "^own", "")
    async with world.client(auth=("topical", "secret")) as http:
        found = await move(http, exchange="amq.topic")
        assert (found["moved"], found["left"]) == (2, 1)
        assert "'other'" in found["reason"]
    assert [one.routing_key for one in await world.messages("q")] == ["other"]


async def test_malformed_moves_are_refused(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    for body, status in (
        ({}, 400),
        ({"queue": "q", "exchange": ""}, 400),
        ({"queue": "q", "count": 0}, 400),
        ({"queue": "none"}, 404),
        ({"exchange": "none"}, 404),
        ({"queue": "hub.dead"}, 404),
    ):
        assert refused(await http.post("/api/warren/queues/%2F/q/move", json=body), status)


async def test_purging_removes_ready_messages(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    await fill(world, 3)
    assert await delete(http, "/queues/%2F/q/contents") == 204
    assert await take(http) == []


async def test_nothing_is_taken_from_a_stream(world: World, http: AsyncClient) -> None:
    await world.queue("s", queue_type="stream")
    got = {"count": 1, "ackmode": "ack_requeue_true"}
    for response in (
        await http.post("/api/queues/%2F/s/get", json=got),
        await http.delete("/api/queues/%2F/s/contents"),
        await http.post("/api/warren/queues/%2F/s/move", json={"queue": "s"}),
    ):
        assert "messages shows its messages" in response.text
        assert response.status_code == 400


async def test_actions_of_mirrored_queues(world: World, http: AsyncClient) -> None:
    await world.queue("q")
    for action, status in (("sync", 204), ("cancel_sync", 204), ("bogus", 400)):
        response = await http.post("/api/queues/%2F/q/actions", json={"action": action})
        assert response.status_code == status
