"""Parameters over HTTP: kept, listed, and deleted with their virtual host."""

from __future__ import annotations

import pytest
from httpx import AsyncClient

from tests.app.conftest import World

from .support import delete, get, put, refused, tagged

SHOVEL = {"src-uri": ["amqp://", None], "ack-mode": "on-confirm", "reconnect-delay": 1.5}
POLICY = {"pattern": "^q", "definition": {"max-length": 1}, "apply-to": "all", "priority": 0}
PATH = "/parameters/shovel/%2F/move"


async def test_kept_and_deleted(http: AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    whole = {"component": "shovel", "vhost": "/", "name": "move", "value": SHOVEL}
    assert refused(await http.get("/api" + PATH), 404)
    assert await put(http, PATH, value=SHOVEL) == 201
    assert "shovel parameter 'move' in vhost '/' is stored and has no effect here" in caplog.text
    assert await put(http, PATH, value=SHOVEL) == 204
    assert await get(http, PATH) == whole
    for path in ("/parameters", "/parameters/shovel", "/parameters/shovel/%2F"):
        assert await get(http, path) == [whole]
    assert await get(http, "/parameters/federation-upstream") == []
    assert await get(http, "/parameters/shovel/other%2Fone") == []
    assert await delete(http, PATH) == 204
    assert refused(await http.delete("/api" + PATH), 404)


async def test_operator_policies_and_limits_are_listed_too(http: AsyncClient) -> None:
    await put(http, "/operator-policies/%2F/short", **POLICY)
    await put(http, "/vhost-limits/%2F/max-queues", value=5)
    found = {one["component"]: one["value"] for one in await get(http, "/parameters")}
    assert found == {"operator_policy": POLICY, "vhost-limits": {"max-queues": 5}}
    for component, path in (("operator_policy", "operator-p"), ("vhost-limits", "vhost-l")):
        response = await http.put(f"/api/parameters/{component}/%2F/x", json={"value": {}})
        assert path in refused(response, 400)


async def test_of_the_server(http: AsyncClient) -> None:
    path = "/global-parameters/a%2Fb"
    assert await put(http, path, value=[1, {"deep": None}]) == 201
    assert await get(http, path) == {"name": "a/b", "value": [1, {"deep": None}]}
    assert await get(http, "/global-parameters") == [await get(http, path)]
    assert await delete(http, path) == 204
    assert refused(await http.get("/api" + path), 404)


async def test_a_value_is_needed_and_bounded(http: AsyncClient) -> None:
    assert "key 'value'" in refused(await http.put("/api" + PATH, json={}), 400)
    response = await http.put("/api" + PATH, json={"value": "x" * 65_534})
    assert "65536 bytes of JSON, at most 65535" in refused(response, 400)


async def test_an_unknown_component_is_refused(http: AsyncClient) -> None:
    response = await http.put("/api/parameters/nope/%2F/s1", json={"value": {}})
    assert "component 'nope' not found; known: shovel, " in refused(response, 400)
    assert await get(http, "/parameters") == []


async def test_parameters_end_with_their_vhost(world: World, http: AsyncClient) -> None:
    await put(http, "/vhosts/v")
    await put(http, "/parameters/shovel/v/move", value=1)
    await delete(http, "/vhosts/v")
    await put(http, "/vhosts/v")
    assert await get(http, "/parameters/shovel/v") == []


async def test_parameters_are_shown_in_vhosts_of_the_user_only(world: World) -> None:
    async with world.client() as http:
        await put(http, "/parameters/shovel/other%2Fone/move", value=1)
    async with world.client(auth=tagged(world, "policymaker")) as http:
        assert await get(http, "/parameters") == []
        assert refused(await http.get("/api/parameters/shovel/other%2Fone"), 403)
        assert refused(await http.put("/api/global-parameters/x", json={"value": 1}), 403)
