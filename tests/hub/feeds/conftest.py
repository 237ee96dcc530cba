"""A real server, a site with feeds, and a queue bound to all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx
import pika
import pytest

from tests.support.feed_site import FeedSite, Page
from tests.support.server import WarrenServer

_numbers = count(1)


@dataclass
class Client:
    """A user of the server; each feed has a path and a name of its own."""

    server: WarrenServer
    site: FeedSite
    queue: str

    def __post_init__(self) -> None:
        self.http = httpx.Client(
            base_url=f"{self.server.http_url}/api/hub/", auth=("guest", "guest"), timeout=60
        )

    def close(self) -> None:
        self.http.close()

    def register(self, page: Page, **body: Any) -> dict[str, Any]:
        """Registers a feed with this first page."""
        name = f"feed{next(_numbers)}"
        self.site.pages[f"/{name}"] = page
        answer = self.http.post(
            "feeds", json={"url": f"{self.site.url}/{name}", "name": name} | body
        )
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def poll(self, feed: dict[str, Any], page: Page) -> dict[str, Any]:
        """Polls a feed that has this page now."""
        self.site.pages[f"/{feed['name']}"] = page
        answer = self.http.post(f"feeds/{feed['name']}/poll")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def poll_quietly(self, feed: dict[str, Any]) -> None:
        """Polls a feed; the server may be killed meanwhile."""
        url = f"{self.server.http_url}/api/hub/feeds/{feed['name']}/poll"
        try:
            httpx.post(url, auth=("guest", "guest"), timeout=60)
        except httpx.HTTPError:
            pass

    def get(self, name: str) -> dict[str, Any]:
        return dict(self.http.get(f"feeds/{name}").json())

    def bind(self, key: str = "#") -> None:
        with pika.BlockingConnection(pika.URLParameters(self.server.amqp_url)) as connection:
            channel = connection.channel()
            channel.queue_declare(self.queue, durable=True)
            channel.queue_bind(self.queue, "hub.feeds", key)

    def messages(self) -> list[tuple[pika.BasicProperties, dict[str, Any]]]:
        """Takes all messages from the queue."""
        found = []
        with pika.BlockingConnection(pika.URLParameters(self.server.amqp_url)) as connection:
            channel = connection.channel()
            while (got := channel.basic_get(self.queue, auto_ack=True))[0] is not None:
                found.append((got[1], json.loads(got[2])))
        return found

    def titles(self) -> list[str]:
        return [item["title"] for _, item in self.messages()]


@pytest.fixture
def site() -> Iterator[FeedSite]:
    with FeedSite() as site:
        yield site


@pytest.fixture
def client(warren: WarrenServer, site: FeedSite) -> Iterator[Client]:
    client = Client(warren, site, f"entries{next(_numbers)}")
    yield client
    client.close()
    assert "Traceback" not in warren.output()
