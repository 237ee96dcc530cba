"""What tests of management clients need of a server."""

from __future__ import annotations

import httpx

from tests.support.server import WarrenServer

QUEUE = "managed"
GUEST = ("guest", "guest")


def add_queue(warren: WarrenServer, name: str = QUEUE) -> None:
    """Declares a durable queue, which is empty."""
    url = f"http://{warren.host}:{warren.http_port}/api"
    queue = {"name": name, "vhost": "/", "durable": True}
    httpx.post(f"{url}/definitions", json={"queues": [queue]}, auth=GUEST).raise_for_status()
    httpx.delete(f"{url}/queues/%2F/{name}/contents", auth=GUEST).raise_for_status()
