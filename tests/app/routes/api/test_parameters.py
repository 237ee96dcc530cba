"""Parameters over HTTP: those of the server are kept, those of components refused."""

from __future__ import annotations

import pytest
from httpx import AsyncClient

from tests.app.conftest import World

from .support import delete, get, put, refused, tagged

POLICY = {"pattern": "^q", "definition": {"max-length": 1}, "apply-to": "all", "priority": 0}
PATHS = {
    "policy": "policies", "operator_policy": "operator-policies", "vhost-limits": "vhost-limits",
}  # fmt: skip


@pytest.mark.parametrize(
    ("component", "instead"),
    [
        ("shovel", "instead, a subscription passes messages on"),
        ("federation", "instead, hubs subscribe"),
        ("federation-upstream", "instead, hubs subscribe"),
        ("federation-upstream-set", "instead, hubs subscribe"),
        ("nope", ""),
    ],
)
async def test_those_of_components_are_refused_by_name(
    http: AsyncClient, component: str, instead: str
) -> None:
    """RabbitMQ without the plugin answers 400 too: "component shovel not found"."""
    path = f"/api/parameters/{component}/%2F/move"
    reason = refused(await http.put(path, json={"value": {"src-uri": "amqp://"}}), 400)
    told = (
        f"{component} parameter 'move' in vhost '/' is not stored: component {component} not found"
    )
    assert reason.startswith(told) and instead in reason
    assert "key 'value'" in refused(await http.put(path, json={}), 400)
    assert refused(await http.get(path), 404) == refused(await http.delete(path), 404)
    assert await get(http, f"/parameters/{component}") == await get(http, "/parameters") == []


async def test_operator_policies_and_limits_are_listed_too(http: AsyncClient) -> None:
    await put(http, "/operator-policies/%2F/short", **POLICY)
    await put(http, "/vhost-limits/%2F/max-queues", value=5)
    found = {one["component"]: one["value"] for one in await get(http, "/parameters")}
    assert found == {"operator_policy": POLICY, "vhost-limits": {"max-queues": 5}}
    for component in ("policy", "operator_policy", "vhost-limits"):
        response = await http.put(f"/api/parameters/{component}/%2F/x", json={"value": {}})
        assert f"are changed at /api/{PATHS[component]}" in refused(response, 400)


async def test_of_the_server(http: AsyncClient) -> None:
    path = "/global-parameters/a%2Fb"
    assert await put(http, path, value=[1, {"deep": None}]) == 201
    assert await get(http, path) == {"name": "a/b", "value": [1, {"deep": None}]}
    assert await get(http, "/global-parameters") == [await get(http, path)]
    assert await delete(http, path) == 204
    assert refused(await http.get("/api" + path), 404)


async def test_a_value_is_bounded(http: AsyncClient) -> None:
    response = await http.put("/api/global-parameters/x", json={"value": "x" * 65_534})
    assert "65536 bytes of JSON, at most 65535" in refused(response, 400)


async def test_parameters_are_shown_in_vhosts_of_the_user_only(world: World) -> None:
    async with world.client() as http:
        await put(http, "/vhost-limits/other%2Fone/max-queues", value=5)
    async with world.client(auth=tagged(world, "policymaker")) as http:
        assert await get(http, "/parameters") == []
        path = "/api/parameters/vhost-limits/other%2Fone"
        assert refused(await http.get(path), 403)
        assert refused(await http.put(f"{path}/x", json={"value": 1}), 403)
        assert refused(await http.put("/api/global-parameters/x", json={"value": 1}), 403)
