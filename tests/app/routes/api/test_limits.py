"""Limits of virtual hosts and of users over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World

from .support import delete, get, put, refused, tagged

PLACES = [
    ("/vhost-limits", "other%2Fone", {"vhost": "other/one"}, "max-queues"),
    ("/user-limits", "tony", {"user": "tony"}, "max-channels"),
]


@pytest.mark.parametrize(("path", "whose", "named", "limit"), PLACES)
async def test_limits(
    http: AsyncClient, path: str, whose: str, named: dict[str, str], limit: str
) -> None:
    own = f"{path}/{whose}"
    assert await get(http, path) == await get(http, own) == []
    assert await put(http, f"{own}/{limit}", value=5) == 201
    assert await put(http, f"{own}/{limit}", value="6") == 204
    assert await put(http, f"{own}/max-connections", value=-1) == 201
    wanted = [{**named, "value": {limit: 6, "max-connections": -1}}]
    assert await get(http, path) == await get(http, own) == wanted
    assert await delete(http, f"{own}/{limit}") == 204
    assert await delete(http, f"{own}/{limit}") == 204
    assert await get(http, own) == [{**named, "value": {"max-connections": -1}}]
    assert await delete(http, f"{own}/max-connections") == 204
    assert await get(http, path) == []


async def test_limits_are_in_force(world: World, http: AsyncClient) -> None:
    await put(http, "/vhost-limits/%2F/max-queues", value=1)
    assert (await http.put("/endpoint/q/one")).status_code == 201
    assert "queue limit" in (await http.put("/endpoint/q/two")).text
    await put(http, "/user-limits/tony/max-channels", value=3)
    assert (await get(http, "/users/tony"))["limits"] == {"max-channels": 3}
    assert world.users.existing("tony").limits == {"max-channels": 3}


@pytest.mark.parametrize(("path", "whose", "named", "limit"), PLACES)
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"value": -2}, "0 or more is needed, or -1 for no limit"),
        ({"value": 2**63}, "0 or more is needed, or -1 for no limit"),
        ({"value": "many"}, "key 'value' has to be a whole number, not 'many'"),
        ({"value": None}, "key 'value' has to be a whole number, not None"),
        ({}, "the body needs the key 'value'"),
    ],
)
async def test_bad_values_are_refused(
    http: AsyncClient, path: str, whose: str, named: Any, limit: str, change: Any, reason: str
) -> None:
    assert reason in refused(await http.put(f"/api{path}/{whose}/{limit}", json=change), 400)
    assert await get(http, path) == []


@pytest.mark.parametrize(("path", "whose", "named", "limit"), PLACES)
async def test_unknown_limits_and_names_are_refused(
    http: AsyncClient, path: str, whose: str, named: Any, limit: str
) -> None:
    assert "no limit 'max-shoes'" in refused(
        await http.put(f"/api{path}/{whose}/max-shoes", json={"value": 1}), 400
    )
    assert "no limit 'max-shoes'" in refused(
        await http.delete(f"/api{path}/{whose}/max-shoes"), 400
    )
    for response in (
        await http.get(f"/api{path}/nobody"),
        await http.put(f"/api{path}/nobody/{limit}", json={"value": 1}),
        await http.delete(f"/api{path}/nobody/{limit}"),
    ):
        assert refused(response, 404).endswith("'nobody'")


async def test_lists_show_permitted_limits(world: World) -> None:
    async with world.client() as http:
        for whose in ("%2F", "closed"):
            await put(http, f"/vhost-limits/{whose}/max-queues", value=5)
        await put(http, "/user-limits/tony/max-channels", value=5)
    credentials = tagged(world, "management")
    world.users.set_limits("someone", {"max-channels": 9})
    async with world.client(auth=credentials) as http:
        assert [found["vhost"] for found in await get(http, "/vhost-limits")] == ["/"]
        assert refused(await http.get("/api/vhost-limits/closed"), 403)
        assert [found["user"] for found in await get(http, "/user-limits")] == ["someone"]
        assert refused(await http.get("/api/user-limits/tony"), 403)
    async with world.client(auth=tagged(world, "monitoring")) as http:
        assert len(await get(http, "/vhost-limits")) == 2
        assert len(await get(http, "/user-limits")) == 2
