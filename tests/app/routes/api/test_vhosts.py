"""Virtual hosts over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.support.amqp import Client, take_turns

from .support import delete, get, put, refused, tagged


async def test_made_described_and_deleted(world: World, http: AsyncClient) -> None:
    assert await put(http, "/vhosts/a%2Fb") == 201
    assert await put(http, "/vhosts/a%2Fb", description="d", tags="x, y") == 204
    described = {
        "description": "d", "tags": ["x", "y"], "default_queue_type": "classic",
        "protected_from_deletion": False,
    }  # fmt: skip
    found = await get(http, "/vhosts/a%2Fb")
    assert found["messages"] == found["message_stats"]["publish"] == 0
    assert found.items() >= described.items()
    assert (found["name"], found["tracing"], found["metadata"]) == ("a/b", False, described)
    assert list(found["cluster_state"].values()) == ["running"]
    assert "a/b" in world.broker.vhosts
    assert await delete(http, "/vhosts/a%2Fb") == 204
    assert "a/b" not in world.broker.vhosts
    assert refused(await http.get("/api/vhosts/a%2Fb"), 404) == "no vhost 'a/b'"
    assert refused(await http.delete("/api/vhosts/a%2Fb"), 404) == "no vhost 'a/b'"


async def test_the_creator_gets_all_permissions(world: World, http: AsyncClient) -> None:
    await put(http, "/vhosts/mine")
    assert await get(http, "/vhosts/mine/permissions") == [
        {"user": "guest", "vhost": "mine", "configure": ".*", "write": ".*", "read": ".*"}
    ]
    world.users.set_permissions("guest", "mine", "", "", "")
    await put(http, "/vhosts/mine", description="again")
    assert (await get(http, "/permissions/mine/guest"))["read"] == ""
    assert Client(world.broker, vhost="mine")


async def test_missing_properties_are_unchanged(http: AsyncClient) -> None:
    await put(http, "/vhosts/v", description="d", tags=["x"], default_queue_type="quorum")
    await put(http, "/vhosts/v", tags=[])
    found = await get(http, "/vhosts/v")
    assert (found["description"], found["tags"]) == ("d", [])
    assert found["default_queue_type"] == "quorum"
    await put(http, "/vhosts/v", default_queue_type="undefined")
    assert (await get(http, "/vhosts/v"))["default_queue_type"] == "classic"


async def test_lists_show_permitted_vhosts(world: World) -> None:
    for tag, names in (("management", ["/"]), ("monitoring", ["/", "closed", "other/one"])):
        async with world.client(auth=tagged(world, tag)) as http:
            assert [vhost["name"] for vhost in await get(http, "/vhosts")] == names
            response = await http.get("/api/vhosts/closed")
            if tag == "monitoring":
                assert response.status_code == 200
            else:
                assert "refused for user 'someone'" in refused(response, 403)


async def test_protection(http: AsyncClient) -> None:
    await put(http, "/vhosts/v", description="d")
    assert (await http.post("/api/vhosts/v/deletion/protection")).status_code == 204
    assert "is protected" in refused(await http.delete("/api/vhosts/v"), 412)
    assert (await get(http, "/vhosts/v"))["protected_from_deletion"] is True
    assert await delete(http, "/vhosts/v/deletion/protection") == 204
    assert await delete(http, "/vhosts/v/deletion/protection") == 204
    assert (await get(http, "/vhosts/v"))["description"] == "d"
    assert await delete(http, "/vhosts/v") == 204
    assert refused(await http.post("/api/vhosts/v/deletion/protection"), 404)


async def test_connections_end_with_it(world: World, http: AsyncClient) -> None:
    await put(http, "/vhosts/v")
    client = Client(world.broker, vhost="v")
    await delete(http, "/vhosts/v")
    take_turns(world.broker)
    (close,) = client.come()
    assert (close.name, close["reply_code"]) == ("Connection.Close", 320)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"tracing": True}, "tracing of a vhost is not supported"),
        ({"tracing": "true"}, "tracing of a vhost is not supported"),
        ({"tracing": "perhaps"}, "key 'tracing' has to be true or false, not 'perhaps'"),
        ({"description": 5}, "key 'description' has to be a string, not 5"),
        ({"default_queue_type": "odd"}, "default_queue_type is 'odd', it can be classic, "),
    ],
)
async def test_bad_properties_are_refused(
    http: AsyncClient, body: dict[str, Any], reason: str
) -> None:
    assert refused(await http.put("/api/vhosts/v", json=body), 400).startswith(reason)
    assert refused(await http.get("/api/vhosts/v"), 404)


async def test_a_described_vhost_can_be_put_again(http: AsyncClient) -> None:
    await put(http, "/vhosts/v", description="d", tags=["x"])
    found = await get(http, "/vhosts/v")
    assert await put(http, "/vhosts/v", **found) == 204
    assert await get(http, "/vhosts/v") == found
    assert await put(http, "/vhosts/w", tracing="false") == 201
