"""Two Warrens, each a subscriber of the other (rabbithub.md 6, websub.md 4): real servers.

One way is RabbitHub's: a capability URL of one hub is a callback at the other. The other way is
WebSub's: one hub subscribes at a topic URL of the other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.http import Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.times import seconds

from .queues import WAIT_S, Queues

MAX_HOPS = 4
CREDENTIALS = {"username": "guest", "password": "guest"}


class Side:
    """One of the two, with its administrator's client."""

    def __init__(self, server: WarrenServer) -> None:
        self.server = server
        self.http = httpx.Client(base_url=server.http_url, auth=("guest", "guest"), timeout=20)
        self.queues = Queues(server.amqp_url)

    def exchange(self, name: str, queue: str = "") -> None:
        """A topic exchange, and a queue that gets everything of it."""
        response = self.http.put(f"/endpoint/x/{name}", params={"amqp.exchange_type": "topic"})
        assert response.status_code in (201, 204), response.text
        if queue:
            self.queues.bind(queue, name)

    def publish(self, exchange: str, key: str, body: bytes, **headers: str) -> None:
        url = f"/endpoint/x/{exchange}?hub.topic={key}"
        response = self.http.post(url, content=body, headers=headers)
        assert response.status_code == 202, response.text

    def capability(self, exchange: str) -> str:
        body = {"vhost": "/", "type": "x", "name": exchange}
        response = self.http.post("/api/hub/capabilities", json=body)
        assert response.status_code == 201, response.text
        return str(response.json()["url"])

    def subscribe(self, source: str, callback: str, topic: str = "#", **more: str) -> None:
        form = {"mode": "subscribe", "callback": callback, "topic": topic, **more}
        named = {f"hub.{name}": value for name, value in form.items()}
        response = self.http.post(f"/subscribe/x/{source}", data=named)
        assert response.status_code == 204, response.text

    def topic_url(self, exchange: str, key: str | None = None) -> str:
        query = "" if key is None else "?hub.topic=" + quote(key, safe="")
        return f"{self.server.http_url}/endpoint/x/{exchange}{query}"

    def follow(self, source: Side, name: str, topic: str, sink: str, **more: Any) -> None:
        """Subscribes at another hub, and waits until both have the subscription."""
        known = len(source.followers(self))
        body = {"url": topic, "sink": {"type": "x", "name": sink}, **more}
        assert self.put_upstream(name, body) == 201
        wait_until(lambda: self.upstream(name)["status"] == "active", WAIT_S, f"upstream {name}")
        wait_until(lambda: len(source.followers(self)) > known, WAIT_S, f"subscriber {name}")

    def put_upstream(self, name: str, body: dict[str, Any]) -> int:
        return self.http.put(f"/api/hub/upstreams/%2F/{name}", json=body).status_code

    def upstream(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(f"/api/hub/upstreams/%2F/{name}").json()
        return found

    def callbacks(self) -> list[str]:
        found = self.http.get("/subscriptions").json()["subscriptions"]
        return [one["callback"] for one in found]

    def followers(self, other: Side) -> list[str]:
        callbacks = f"{other.server.http_url}/hub/callback/"
        return [one for one in self.callbacks() if one.startswith(callbacks)]


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Side, Side]]:
    env = {"WARREN_MAX_HOPS": str(MAX_HOPS)}
    with WarrenServer(env=env) as first, WarrenServer(env=env) as second:
        sides = Side(first), Side(second)
        yield sides
        for side in sides:
            side.http.close()
            assert "Traceback" not in side.server.output(), side.server.output()


@pytest.fixture
def here(pair: tuple[Side, Side]) -> Side:
    return pair[0]


@pytest.fixture
def there(pair: tuple[Side, Side]) -> Side:
    return pair[1]


def test_a_capability_is_a_callback(here: Side, there: Side) -> None:
    """It needs no credentials for the other hub (rabbithub.md 6)."""
    here.exchange("news")
    there.exchange("copy", "copied")
    here.subscribe("news", there.capability("copy"), "eu.#", secret="s3cret")
    here.publish("news", "us.ny", b"not for them")
    here.publish("news", "eu.fr", b"bonjour", **{"Content-Type": "text/plain; charset=utf-8"})
    [got] = there.queues.take("copied", 1)
    assert (got.body, got.key, got.hops) == (b"bonjour", "eu.fr", 1)
    assert got.properties.content_type == "text/plain; charset=utf-8"


def test_a_revoked_capability_ends_the_subscription(here: Side, there: Side) -> None:
    here.exchange("ends")
    there.exchange("over")
    url = there.capability("over")
    here.subscribe("ends", url)
    listed = there.http.get("/api/hub/capabilities").json()
    [made] = [one for one in listed if one["name"] == "over"]
    assert there.http.delete(f"/api/hub/capabilities/{made['id']}").status_code == 204
    here.publish("ends", "k", b"x")
    wait_until(lambda: url not in here.callbacks(), WAIT_S, "its end")


def test_a_topic_url_is_followed(here: Side, there: Side) -> None:
    """Found by its Link fields, verified, signed, delivered with its key, and left again."""
    here.exchange("feed")
    there.exchange("follower", "followed")
    topic = here.topic_url("feed", "eu.#")
    there.follow(here, "feed", topic, "follower", **CREDENTIALS)
    found = there.upstream("feed")
    assert found["hub_url"] == f"{here.server.http_url}/hub"
    assert found["self"] == topic
    assert seconds(found["expires_at"]) > seconds(found["renew_at"]) > time.time()
    here.publish("feed", "us.ny", b"not for them")
    here.publish("feed", "eu.fr", b"bonjour", **{"Content-Type": "text/plain"})
    [got] = there.queues.take("followed", 1)
    assert (got.body, got.key, got.hops) == (b"bonjour", "eu.fr", 1)
    assert got.properties.content_type == "text/plain"
    assert got.properties.delivery_mode == 2
    assert str(got.properties.message_id).startswith("msg_")
    assert there.http.delete("/api/hub/upstreams/%2F/feed").status_code == 204
    assert there.http.get("/api/hub/upstreams/%2F/feed").status_code == 404
    wait_until(lambda: not here.followers(there), WAIT_S, "the end at the other hub")


def test_a_follower_outlives_kill_9() -> None:
    """A hub with public topics is followed without credentials."""
    with WarrenServer(env={"WARREN_HUB_USER": "guest"}) as public, WarrenServer() as server:
        source, follower = Side(public), Side(server)
        source.exchange("open")
        follower.exchange("kept", "taken")
        follower.follow(source, "open", source.topic_url("open"), "kept")
        before = follower.upstream("open")
        server.kill()
        server.restart()
        source.publish("open", "k", b"afterwards")
        assert [got.body for got in follower.queues.take("taken", 1)] == [b"afterwards"]
        assert follower.upstream("open") == before
        source.http.close()
        follower.http.close()


def test_wrong_password_of_a_topic_url_fails(here: Side, there: Side) -> None:
    here.exchange("closed")
    there.exchange("follower")
    body = {"url": here.topic_url("closed"), "sink": {"type": "x", "name": "follower"}}
    assert there.put_upstream("closed", body | CREDENTIALS | {"password": "wrong-one"}) == 201
    wait_until(lambda: there.upstream("closed")["status"] == "failed", WAIT_S, "failure")
    assert "answered 401: 'username' and 'password'" in there.upstream("closed")["reason"]
    assert "wrong-one" not in there.http.get("/api/hub/upstreams").text
    assert there.put_upstream("closed", body) == 204
    assert there.http.delete("/api/hub/upstreams/%2F/closed").status_code == 204


@pytest.mark.parametrize("way", ["capabilities", "upstreams", "both"])
def test_a_loop_ends_with_508(here: Side, there: Side, callback: Callback, way: str) -> None:
    """Other messages of the same hubs are not affected."""
    ring, seen, beside = f"ring-{way}", f"seen-{way}", f"beside-{way}"
    for side in (here, there):
        side.exchange(ring, seen)
        side.exchange(beside)
    here.subscribe(beside, callback.url)
    _connect(here, there, ring, by_capability=way != "upstreams")
    _connect(there, here, ring, by_capability=way == "capabilities")
    here.publish(ring, "round", b"and round")
    assert [got.hops for got in here.queues.take(seen, 3)] == [None, 2, 4]
    assert [got.hops for got in there.queues.take(seen, 2)] == [1, 3]
    # The fifth hop is one too many, which is final for the sender.
    [dead] = here.queues.take("hub.dead", 1)
    assert (dead.body, dead.hops) == (b"and round", 4)
    assert "508" in str(dead.properties.headers["x-hub-reason"])
    here.publish(beside, "k", b"bystander")
    [delivery] = callback.wait(1)
    assert delivery.body == b"bystander"
    assert (here.queues.depth(seen), there.queues.depth(seen)) == (0, 0)


def _connect(source: Side, sink: Side, ring: str, *, by_capability: bool) -> None:
    if by_capability:
        source.subscribe(ring, sink.capability(ring))
    else:
        sink.follow(source, ring, source.topic_url(ring), ring, **CREDENTIALS)


def test_a_client_gets_508_too(here: Side) -> None:
    here.exchange("direct")
    response = here.http.post(
        "/endpoint/x/direct", content=b"x", headers={"X-Hub-Hops": str(MAX_HOPS)}
    )
    assert response.status_code == 508
    assert response.headers["content-type"] == "application/problem+json"
    found = response.json()
    assert (found["title"], found["value"], found["limit"]) == ("Loop Detected", "4", "4")
