"""Requests to the management API, and its errors."""

from __future__ import annotations

import json
from typing import Any

import httpx
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.support import problem

WORDS = {
    400: "bad_request", 401: "not_authorised", 403: "not_authorised", 404: "Object Not Found",
    405: "method_not_allowed", 409: "conflict", 412: "precondition_failed",
    413: "payload_too_large", 415: "unsupported_media_type",
    422: "unprocessable_entity", 429: "too_many_requests",
    507: "insufficient_storage",
}  # fmt: skip


def refused(response: httpx.Response, status: int) -> str:
    """The reason of an error, in RabbitMQ's form on its paths and as a problem on the others."""
    if response.request.url.path.startswith(("/api/hub/", "/api/warren/")):
        detail, limit = problem(response, status), response.json().get("limit")
        return f"{detail}; right: {limit}" if limit else detail
    assert response.status_code == status, (response.status_code, response.text)
    found = response.json()
    assert found.keys() == {"error", "reason"}
    assert found["error"] == WORDS[status]
    return str(found["reason"])


async def put(http: AsyncClient, path: str, **body: Any) -> int:
    """The status; without keys no body is sent."""
    content = json.dumps(body).encode() if body else None
    response = await http.put("/api" + path, content=content)
    assert response.content == b"" or response.status_code >= 400, response.text
    return response.status_code


async def get(http: AsyncClient, path: str) -> Any:
    response = await http.get("/api" + path)
    assert response.status_code == 200, (response.status_code, response.text)
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-cache"
    return response.json()


async def delete(http: AsyncClient, path: str) -> int:
    return (await http.delete("/api" + path)).status_code


def tagged(world: World, *tags: str, name: str = "someone") -> tuple[str, str]:
    """The credentials of a user with these tags and an empty permission in `/`."""
    world.users.add(name, "secret", tags)
    world.users.set_permissions(name, "/", "", "", "")
    return name, "secret"
