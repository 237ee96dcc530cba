"""The real server, killed and started again."""

from __future__ import annotations

import httpx

from tests.support.http import Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer

AUTH = ("guest", "guest")


def put_news(server: WarrenServer) -> None:
    url = f"{server.http_url}/endpoint/x/news"
    asked = httpx.put(url, params={"amqp.exchange_type": "topic"}, auth=AUTH)
    assert asked.status_code in (201, 204)


def publish(server: WarrenServer, key: str, body: bytes) -> None:
    url = f"{server.http_url}/endpoint/x/news"
    assert httpx.post(url, params={"hub.topic": key}, content=body, auth=AUTH).status_code == 202


def test_a_subscription_outlives_kill_9(callback: Callback) -> None:
    with WarrenServer(dev=True) as server:
        put_news(server)
        form = {"hub.mode": "subscribe", "hub.callback": callback.url, "hub.topic": "eu.#"}
        form.update({"hub.verify": "sync", "hub.secret": "s3cret"})
        asked = httpx.post(f"{server.http_url}/subscribe/x/news", data=form, auth=AUTH)
        assert asked.status_code == 204
        server.kill()
        server.restart()
        put_news(server)

        def is_delivered() -> bool:
            # Where the exchange did not outlive the crash, the hub sees it come back within
            # seconds; what is published before has no queue to wait in.
            publish(server, "eu.fr", b"bonjour")
            return bool(callback.deliveries)

        wait_until(is_delivered, 20.0, "delivery after the crash")
    assert callback.deliveries[0].body == b"bonjour"
    assert callback.deliveries[0].headers["X-Hub-Signature"].startswith("sha256=")
    assert len(callback.verifications) == 1
