"""/api/hub/capabilities: URLs are made, listed without their secrets, and revoked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.routes.api.support import delete, get, refused, tagged
from tests.support.times import seconds
from warrenmq.core.clock import ManualClock
from warrenmq.hub.capabilities.capabilities import Capabilities
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.owner_rights import AllowAll
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.tasks import Tasks

PATH = "/hub/capabilities"
BODY = {"vhost": "/", "type": "q", "name": "in"}


@pytest.fixture(autouse=True)
async def capabilities(world: World, tmp_path: Path) -> AsyncIterator[None]:
    storage = Storage(tmp_path, None, Sealer(tmp_path / "key"))
    world.hub.capabilities = Capabilities(storage, ManualClock(), Tasks(), AllowAll())  # type: ignore[attr-defined]
    await world.queue("in")
    yield
    await storage.close()


async def make(http: AsyncClient, **body: Any) -> dict[str, str]:
    response = await http.post("/api" + PATH, json={**BODY, **body})
    assert response.status_code == 201, response.text
    assert response.headers["cache-control"] == "no-store"
    found: dict[str, str] = response.json()
    assert response.headers["location"] == f"http://hub/api{PATH}/{found['id']}"
    return found


async def test_a_new_capability_works_and_is_listed(world: World, http: AsyncClient) -> None:
    made = await make(
        http, expires_in_s=60, routing_key="k", note="for the other hub", unknown="ignored"
    )
    assert made["url"].startswith("http://hub/in/")
    async with world.client(auth=None) as stranger:
        assert (await stranger.post(made["url"], content=b"x")).status_code == 202
    assert (await world.message("in")).routing_key == "k"
    [listed] = await get(http, PATH)
    assert listed == await get(http, f"{PATH}/{made['id']}")
    assert seconds(listed["expires_at"]) - seconds(listed.pop("made_at")) == pytest.approx(60)
    assert listed == {
        "id": made["id"], "vhost": "/", "type": "q", "name": "in", "routing_key": "k",
        "owner": "guest", "note": "for the other hub", "expires_at": listed["expires_at"],
    }  # fmt: skip
    secret = made["url"].rpartition("/")[2]
    assert secret not in str(await get(http, PATH))


async def test_a_revoked_url_is_gone(world: World, http: AsyncClient) -> None:
    made = await make(http, expires_in_s=None, routing_key=None)
    assert await delete(http, f"{PATH}/{made['id']}") == 204
    assert (await http.post(made["url"], content=b"x")).status_code == 410
    assert refused(await http.delete(f"/api{PATH}/{made['id']}"), 404)
    assert await get(http, PATH) == []


async def test_the_public_base(world: World) -> None:
    async with world.client(public_url="https://pub.example/base", base_path="/base") as http:
        response = await http.post("/base/api" + PATH, json=BODY)
        assert response.json()["url"].startswith("https://pub.example/base/in/")


async def test_write_permission_on_an_existing_resource_is_needed(
    world: World, http: AsyncClient
) -> None:
    for change, status in (
        ({"name": "missing"}, 404),
        ({"vhost": "no"}, 404),
        ({"vhost": "closed"}, 403),
        ({"type": "queue"}, 400),
        ({"type": "x"}, 404),
        ({"expires_in_s": 0}, 400),
        ({"expires_in_s": "soon"}, 400),
        ({"routing_key": 5}, 400),
    ):
        refused(await http.post("/api" + PATH, json={**BODY, **change}), status)
    refused(await http.post("/api" + PATH, json={"vhost": "/"}), 400)
    async with world.client(auth=tagged(world, "management")) as other:
        assert "write access" in refused(await other.post("/api" + PATH, json=BODY), 403)
    async with world.client(auth=tagged(world, name="untagged")) as other:
        assert "'management'" in refused(await other.post("/api" + PATH, json=BODY), 403)


async def test_others_see_only_their_own(world: World, http: AsyncClient) -> None:
    made = await make(http)
    credentials = tagged(world, "management")
    world.users.set_permissions("someone", "/", "", "^in$", "")
    async with world.client(auth=credentials) as other:
        assert await get(other, PATH) == []
        refused(await other.get(f"/api{PATH}/{made['id']}"), 404)
        refused(await other.delete(f"/api{PATH}/{made['id']}"), 404)
        own = await make(other)
        assert [one["id"] for one in await get(other, PATH)] == [own["id"]]
    assert len(await get(http, PATH)) == 2
    assert await delete(http, f"{PATH}/{own['id']}") == 204
