"""Binding a queue to an exchange over HTTP."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from httpx import AsyncClient, Response

from tests.app.conftest import World

from .support import get, refused, tagged

PATH = "/bindings/%2F/e/news%2Fx/q/log"


async def bind(http: AsyncClient, path: str = PATH, **body: Any) -> Response:
    return await http.post("/api" + path, json=body)


@pytest.fixture
async def ends(world: World) -> None:
    await world.exchange("news/x")
    await world.queue("log", queue_type="stream")


@pytest.mark.usefixtures("ends")
async def test_bound_and_listed(world: World, http: AsyncClient) -> None:
    assert await get(http, PATH) == []
    made = [
        await bind(http, routing_key="sport.#"),
        await bind(http, routing_key="sport.#"),
        await bind(http, arguments={"a": 1}),
        await bind(http),
    ]
    assert [one.status_code for one in made] == [201] * 4
    found = await get(http, PATH)
    assert [(one["routing_key"], one["arguments"]) for one in found] == [
        ("", {"a": 1}), ("", {}), ("sport.#", {}),
    ]  # fmt: skip
    keys = {one["properties_key"] for one in found}
    assert len(keys) == 3 and {"sport.%23", "~"} < keys
    assert {one.headers["Location"] for one in made} == {
        "log/" + quote(key, safe="") for key in keys
    }
    whole = {"source": "news/x", "vhost": "/", "destination": "log", "destination_type": "queue"}
    assert all(one.items() >= whole.items() for one in found)
    assert await world.engine.route_count("/", "news/x", "sport.chess") == 1


@pytest.mark.usefixtures("ends")
async def test_found_by_a_part_of_either_end_or_the_key(http: AsyncClient) -> None:
    await bind(http, routing_key="sport.#")
    await bind(http, routing_key="weather")
    for wanted, keys in (("ews/x", ["sport.#", "weather"]), ("port", ["sport.#"]), ("gone", [])):
        found = await get(http, f"/queues/%2F/log/bindings?name={quote(wanted)}")
        assert [one["routing_key"] for one in found] == keys


@pytest.mark.usefixtures("ends")
@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("/bindings/%2F/e/gone/q/log", {}, 404, "no exchange 'gone' in vhost '/'"),
        ("/bindings/%2F/e/news%2Fx/q/gone", {}, 404, "no queue 'gone' in vhost '/'"),
        ("/bindings/gone/e/news%2Fx/q/log", {}, 404, "no vhost 'gone'"),
        ("/bindings/%2F/e//q/log", {}, 403, "not permitted on the default exchange"),
        (PATH, {"routing_key": 1}, 400, "key 'routing_key' has to be a string"),
        (PATH, {"routing_key": "x" * 256}, 400, "routing_key"),
        (PATH, {"arguments": ["a"]}, 400, "key 'arguments' has to be an object"),
    ],
)
async def test_bad_bindings_are_refused(
    http: AsyncClient, path: str, body: dict[str, Any], status: int, reason: str
) -> None:
    assert reason in refused(await bind(http, path, **body), status)


@pytest.mark.usefixtures("ends")
async def test_it_needs_write_on_the_queue_and_read_on_the_exchange(world: World) -> None:
    async with world.client(auth=tagged(world)) as http:
        assert "needs the tag 'management'" in refused(await bind(http), 403)
        assert "needs the tag 'management'" in refused(await http.get("/api" + PATH), 403)
    async with world.client(auth=tagged(world, "management")) as http:
        assert "write access to queue 'log'" in refused(await bind(http), 403)
        world.users.set_permissions("someone", "/", "", "log", "")
        assert "read access to exchange 'news/x'" in refused(await bind(http), 403)
        world.users.set_permissions("someone", "/", "", "log", "news/x")
        assert (await bind(http)).status_code == 201
