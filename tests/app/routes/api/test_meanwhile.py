"""What changes while the body of a request is on its way."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from warrenmq.core.vhosts import delete_vhost

from .support import put, refused, tagged


def slow_body(body: object, meanwhile: Callable[[], object]) -> AsyncIterator[bytes]:
    raw = json.dumps(body).encode()

    async def parts() -> AsyncIterator[bytes]:
        yield raw[:1]
        meanwhile()
        yield raw[1:]

    return parts()


@pytest.mark.parametrize("sort", ["policies", "operator-policies"])
async def test_a_policy_for_a_deleted_vhost_is_refused(
    world: World, http: AsyncClient, sort: str
) -> None:
    await put(http, "/vhosts/gone")
    body = slow_body(
        {"pattern": "a", "definition": {"max-length": 1}},
        lambda: delete_vhost(world.broker, "gone"),
    )
    answer = await http.put(f"/api/{sort}/gone/p", content=body)
    assert refused(answer, 404) == "no vhost 'gone'"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/users/new", {"password": "x", "tags": ""}),
        ("/permissions/%2F/guest", {"configure": "", "write": "", "read": ""}),
        ("/vhosts/new", {"description": "d"}),
        ("/policies/%2F/p", {"pattern": "a", "definition": {"max-length": 1}}),
        ("/user-limits/guest/max-channels", {"value": 1}),
    ],
)
async def test_a_deleted_user_changes_nothing(
    world: World, http: AsyncClient, path: str, body: dict[str, object]
) -> None:
    credentials = tagged(world, "administrator")
    content = slow_body(body, lambda: world.users.remove("someone"))
    answer = await http.put("/api" + path, content=content, auth=credentials)
    assert "user 'someone'" in refused(answer, 403)
    assert world.users.get("new") is None
    assert "new" not in world.broker.vhosts
