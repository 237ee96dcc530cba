"""Subscriptions made and listed over HTTP, for the tests of several routes."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from httpx import AsyncClient

from warrenmq.hub.requests import Kind, Resource, SubscribeRequest

SECRET = "never-to-be-seen"
PASSWORD = b64encode(b"user:never-seen-either").decode()
KEYS = (
    "vhost", "resource_type", "resource_name", "topic", "callback", "lease_expiry_time_microsec",
    "lease_seconds", "ha_mode", "status", "max_tps", "pseudo_queue", "outbound_auth", "contact",
    "id", "owner", "expires_at", "dialect", "verification", "topic_url", "sink", "secret",
    "options", "condition", "paused_reason", "suspended_reason", "breaker", "breaker_until",
    "success_ratio", "blocked", "errors",
    "last_success_at",
)  # fmt: skip
"""Of a subscription in a listing: RabbitHub's, then ours."""


def entry(
    name: str,
    topic: str,
    *,
    kind: Kind = "q",
    vhost: str = "/",
    callback: str = "http://127.0.0.1:9/cb",
    lease_s: int = 30 * 86_400,
    user: str = "guest",
) -> SubscribeRequest:
    return SubscribeRequest(
        source=Resource(vhost, kind, name),
        callback=callback,
        topic=topic,
        user=user,
        base_url="http://hub",
        lease_seconds=str(lease_s),
    )


async def subscribe(
    http: AsyncClient, source: str, callback: str, topic: str = "#", **given: str
) -> None:
    """Verified when it returns."""
    form = {"mode": "subscribe", "callback": callback, "topic": topic, **given}
    data = {f"hub.{name}": value for name, value in form.items()}
    response = await http.post(f"/subscribe/{source}", data=data)
    assert response.status_code == 204, response.text


async def listed(http: AsyncClient, query: str = "") -> list[dict[str, Any]]:
    response = await http.get(f"/subscriptions{query}")
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["subscriptions"]
    return found
