"""The real server, killed while it fetches a topic."""

from __future__ import annotations

from typing import Any

import httpx

from tests.hub.test_crash import AUTH
from tests.support.http import Answer, Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer


def topics(server: WarrenServer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.get(f"{server.http_url}/api/hub/topics", auth=AUTH).json()
    return found


def hub(server: WarrenServer, **fields: str) -> int:
    form = {f"hub.{name}": value for name, value in fields.items()}
    return httpx.post(f"{server.http_url}/hub", data=form, timeout=30).status_code


def test_a_new_subscriber_is_remembered_over_kill_9(callback: Callback) -> None:
    """What it is sent first has not changed for the hub: another subscriber has had it."""
    with Callback() as publisher, Callback() as other, WarrenServer(dev=True) as server:
        publisher.default = Answer(headers={"Content-Type": "text/plain"}, body=b"same")
        topic = publisher.url
        assert hub(server, mode="subscribe", topic=topic, callback=other.url) == 202
        other.wait(1, 20.0)
        publisher.default, asked = Answer(hang=True), len(publisher.requests)
        assert hub(server, mode="subscribe", topic=topic, callback=callback.url) == 202
        wait_until(lambda: len(publisher.requests) > asked, 20.0, "fetch")
        server.kill()
        publisher.default = Answer(headers={"Content-Type": "text/plain"}, body=b"same")
        server.restart()
        [delivery] = callback.wait(1, 20.0)
        assert delivery.body == b"same" and len(other.deliveries) == 1
