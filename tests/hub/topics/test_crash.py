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


def test_a_ping_outlives_kill_9(callback: Callback) -> None:
    with Callback() as publisher, WarrenServer(dev=True) as server:
        publisher.default = Answer(headers={"Content-Type": "text/plain"}, body=b"old")
        topic = publisher.url
        assert hub(server, mode="subscribe", topic=topic, callback=callback.url) == 202

        def is_quiet() -> bool:
            found = topics(server)
            return bool(found) and found[0]["subscribers"] == 1 and found[0]["due_at"] is None

        callback.wait(1, 20.0)
        wait_until(is_quiet, 20.0, "subscription to the topic")
        publisher.default = Answer(hang=True)
        asked = len(publisher.requests)
        assert hub(server, mode="publish", url=topic) == 204
        wait_until(lambda: len(publisher.requests) > asked, 20.0, "fetch")
        server.kill()
        publisher.default = Answer(headers={"Content-Type": "text/plain"}, body=b"new")
        server.restart()
        delivered = callback.wait(2, 20.0)
    assert [one.body for one in delivered] == [b"old", b"new"]
    assert delivered[1].headers["Content-Type"] == "text/plain"


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
