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
import pika
import pytest

from tests.support.http import Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.times import seconds

AUTH = ("guest", "guest")
MAX_HOPS = 4
WAIT_S = 30.0


class Side:
    """One of the two, and its administrator."""

    def __init__(self, server: WarrenServer) -> None:
        self.server = server
        self.http = httpx.Client(base_url=server.http_url, auth=AUTH, timeout=20)

    def exchange(self, name: str, kind: str = "topic") -> None:
        response = self.http.put(f"/endpoint/x/{name}", params={"amqp.exchange_type": kind})
        assert response.status_code in (201, 204), response.text

    def queue(self, name: str, source: str) -> None:
        """A queue with all that an exchange gets."""
        with self.channel() as channel:
            channel.queue_declare(name, durable=True)
            channel.queue_bind(name, source, "#")

    def channel(self) -> Any:
        return Channel(self.server.amqp_url)

    def publish(self, exchange: str, key: str, body: bytes, **headers: str) -> None:
        url = f"/endpoint/x/{exchange}?hub.topic={key}"
        response = self.http.post(url, content=body, headers=headers)
        assert response.status_code == 202, response.text

    def messages(self, queue: str, count: int) -> list[Message]:
        """Takes that many messages of a queue, when they are there."""
        taken: list[Message] = []
        deadline = time.monotonic() + WAIT_S
        with self.channel() as channel:
            while len(taken) < count:
                method, properties, body = channel.basic_get(queue, auto_ack=True)
                if method is not None:
                    taken.append(Message(method.routing_key, properties, body))
                else:
                    assert time.monotonic() < deadline, f"{len(taken)} of {count} in '{queue}'"
                    time.sleep(0.02)
        return taken

    def depth(self, queue: str) -> int:
        with self.channel() as channel:
            return int(channel.queue_declare(queue, passive=True).method.message_count)

    def capability(self, kind: str, name: str, **more: Any) -> str:
        body = {"vhost": "/", "type": kind, "name": name, **more}
        response = self.http.post("/api/hub/capabilities", json=body)
        assert response.status_code == 201, response.text
        return str(response.json()["url"])

    def subscribe(self, source: str, callback: str, topic: str = "#", **more: str) -> None:
        form = {"hub.mode": "subscribe", "hub.callback": callback, "hub.topic": topic}
        form |= {f"hub.{name}": value for name, value in more.items()}
        response = self.http.post(f"/subscribe/{source}", data=form)
        assert response.status_code == 204, response.text

    def follow(
        self, source: Side, name: str, topic: str, sink: tuple[str, str], **more: Any
    ) -> None:
        """Subscribes at another hub, and waits until both know it: the other one keeps messages
        only from some time after this one has confirmed."""
        known = len(source.followers(self))
        body = {"url": topic, "sink": {"type": sink[0], "name": sink[1]}, **more}
        response = self.http.put(f"/api/hub/upstreams/%2F/{name}", json=body)
        assert response.status_code == 201, response.text
        wait_until(lambda: self.upstream(name)["status"] == "active", WAIT_S, f"upstream {name}")
        wait_until(lambda: len(source.followers(self)) > known, WAIT_S, f"subscriber {name}")

    def upstream(self, name: str) -> dict[str, Any]:
        response = self.http.get(f"/api/hub/upstreams/%2F/{name}")
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    def subscribers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.http.get("/subscriptions").json()["subscriptions"]
        return found

    def followers(self, other: Side) -> list[dict[str, Any]]:
        callbacks = f"{other.server.http_url}/hub/callback/"
        return [one for one in self.subscribers() if one["callback"].startswith(callbacks)]


class Message:
    def __init__(self, key: str, properties: Any, body: bytes) -> None:
        self.key = key
        self.properties = properties
        self.body = body

    @property
    def hops(self) -> object:
        return (self.properties.headers or {}).get("x-hub-hops")


class Channel:
    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> Any:
        self._connection = pika.BlockingConnection(pika.URLParameters(self._url))
        return self._connection.channel()

    def __exit__(self, *_: object) -> None:
        self._connection.close()


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
    """Needs no credentials of the other hub, and no login there (rabbithub.md 6)."""
    here.exchange("news")
    there.exchange("copy")
    there.queue("copied", "copy")
    here.subscribe("x/news", there.capability("x", "copy"), "eu.#", secret="s3cret")
    here.publish("news", "us.ny", b"not for them")
    here.publish("news", "eu.fr", b"bonjour", **{"Content-Type": "text/plain; charset=utf-8"})
    [got] = there.messages("copied", 1)
    assert (got.body, got.key, got.hops) == (b"bonjour", "eu.fr", 1)
    assert got.properties.content_type == "text/plain; charset=utf-8"


def test_a_capability_that_is_revoked_ends_the_subscription(here: Side, there: Side) -> None:
    here.exchange("ends")
    there.exchange("over")
    url = there.capability("x", "over")
    here.subscribe("x/ends", url)
    [made] = [
        one for one in there.http.get("/api/hub/capabilities").json() if one["name"] == "over"
    ]
    assert there.http.delete(f"/api/hub/capabilities/{made['id']}").status_code == 204
    here.publish("ends", "k", b"x")
    wait_until(
        lambda: url not in [one["callback"] for one in here.subscribers()], WAIT_S, "its end"
    )


def topic_url(side: Side, exchange: str, key: str | None = None) -> str:
    query = "" if key is None else "?hub.topic=" + quote(key, safe="")
    return f"{side.server.http_url}/endpoint/x/{exchange}{query}"


def test_a_topic_url_is_followed(here: Side, there: Side) -> None:
    """Found by its Link fields, verified, signed, delivered with its key, and left again."""
    here.exchange("feed")
    there.exchange("follower")
    there.queue("followed", "follower")
    topic = topic_url(here, "feed", "eu.#")
    there.follow(here, "feed", topic, ("x", "follower"), username="guest", password="guest")
    found = there.upstream("feed")
    assert found["hub_url"] == f"{here.server.http_url}/hub"
    assert found["self"] == topic
    assert seconds(found["expires_at"]) > seconds(found["renew_at"]) > time.time()
    here.publish("feed", "us.ny", b"not for them")
    here.publish("feed", "eu.fr", b"bonjour", **{"Content-Type": "text/plain"})
    [got] = there.messages("followed", 1)
    assert (got.body, got.key, got.hops) == (b"bonjour", "eu.fr", 1)
    assert got.properties.content_type == "text/plain"
    assert got.properties.delivery_mode == 2
    assert str(got.properties.message_id).startswith("msg_")
    assert there.http.delete("/api/hub/upstreams/%2F/feed").status_code == 204
    assert there.http.get("/api/hub/upstreams/%2F/feed").status_code == 404
    wait_until(lambda: not here.followers(there), WAIT_S, "the end at the other hub")


def test_a_follower_outlives_kill_9() -> None:
    """And a hub whose topics are for everybody is followed without credentials."""
    with WarrenServer(env={"WARREN_HUB_USER": "guest"}) as public, WarrenServer() as server:
        source, follower = Side(public), Side(server)
        source.exchange("open")
        follower.exchange("kept")
        follower.queue("taken", "kept")
        follower.follow(source, "open", topic_url(source, "open"), ("x", "kept"))
        before = follower.upstream("open")
        server.kill()
        server.restart()
        source.publish("open", "k", b"afterwards")
        assert [got.body for got in follower.messages("taken", 1)] == [b"afterwards"]
        assert follower.upstream("open") == before
        source.http.close()
        follower.http.close()


def test_without_the_right_password_it_fails(here: Side, there: Side) -> None:
    here.exchange("closed")
    there.exchange("follower")
    body = {"url": topic_url(here, "closed"), "sink": {"type": "x", "name": "follower"}}
    given = {"username": "guest", "password": "wrong-one"}
    assert there.http.put("/api/hub/upstreams/%2F/closed", json=body | given).status_code == 201
    wait_until(lambda: there.upstream("closed")["status"] == "failed", WAIT_S, "failure")
    assert "answered 401: 'username' and 'password'" in there.upstream("closed")["reason"]
    assert "wrong-one" not in there.http.get("/api/hub/upstreams").text
    assert there.http.put("/api/hub/upstreams/%2F/closed", json=body).status_code == 204
    assert there.http.delete("/api/hub/upstreams/%2F/closed").status_code == 204


@pytest.mark.parametrize("way", ["capabilities", "upstreams", "both"])
def test_a_loop_ends_with_508(here: Side, there: Side, callback: Callback, way: str) -> None:
    """And is nobody else's trouble: what is beside it in the same hubs goes on."""
    ring, seen, beside = f"ring-{way}", f"seen-{way}", f"beside-{way}"
    for side in (here, there):
        side.exchange(ring)
        side.queue(seen, ring)
        side.exchange(beside)
    here.subscribe(f"x/{beside}", callback.url)
    _connect(here, there, ring, by_capability=way != "upstreams")
    _connect(there, here, ring, by_capability=way == "capabilities")
    here.publish(ring, "round", b"and round")
    assert [got.hops for got in here.messages(seen, 3)] == [None, 2, 4]
    assert [got.hops for got in there.messages(seen, 2)] == [1, 3]
    # The fifth hop is one too many, and final to who sends it (MAX_HOPS is 4).
    [dead] = here.messages("hub.dead", 1)
    assert (dead.body, dead.hops) == (b"and round", 4)
    assert "508" in str(dead.properties.headers["x-hub-reason"])
    here.publish(beside, "k", b"bystander")
    [delivery] = callback.wait(1)
    assert delivery.body == b"bystander"
    assert (here.depth(seen), there.depth(seen)) == (0, 0)


def _connect(source: Side, sink: Side, ring: str, *, by_capability: bool) -> None:
    if by_capability:
        source.subscribe(f"x/{ring}", sink.capability("x", ring))
    else:
        credentials = {"username": "guest", "password": "guest"}
        sink.follow(source, ring, topic_url(source, ring), ("x", ring), **credentials)


def test_a_loop_is_told_to_a_client_too(here: Side) -> None:
    here.exchange("direct")
    response = here.http.post(
        "/endpoint/x/direct", content=b"x", headers={"X-Hub-Hops": str(MAX_HOPS)}
    )
    assert response.status_code == 508
    assert response.headers["content-type"] == "application/problem+json"
    found = response.json()
    assert (found["title"], found["value"], found["limit"]) == ("Loop Detected", "4", "4")
