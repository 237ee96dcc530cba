"""Exchanges and queues joined without an HTTP hop, by tokens over HTTP (http_contract 13).

All four pairs of sources and sinks, in one virtual host and between two: what flows, what is
listed, and each way in which it ends.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, quote

import httpx
import pika
import pytest

from tests.app.support import problem
from tests.support.process import wait_until
from tests.support.server import WarrenServer

AUTH = ("guest", "guest")
MAX_HOPS = 5
OTHER = "other/one"
PAIRS = [(source, sink) for source in "xq" for sink in "xq"]
WAIT_S = 20.0
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def warren() -> Iterator[WarrenServer]:
    with WarrenServer(env={"WARREN_MAX_HOPS": str(MAX_HOPS)}) as server:
        yield server
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture(scope="module")
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url, auth=AUTH, timeout=20) as client:
        vhost = quote(OTHER, safe="")
        assert client.put(f"/api/vhosts/{vhost}").status_code == 201  # and it is its maker's
        yield client


class Place:
    """An exchange or a queue with a name of its own; what comes to it ends up in `outlet`."""

    def __init__(self, http: httpx.Client, warren: WarrenServer, kind: str, vhost: str) -> None:
        self.http = http
        self.kind = kind
        self.vhost = vhost
        self._base_url = warren.http_url
        self.name = f"{kind}{next(_numbers)}"
        base = warren.amqp_url.rpartition("/")[0]
        self._amqp_url = f"{base}/{quote(vhost, safe='')}"
        response = http.put(
            self.path, params={"amqp.exchange_type": "topic"} if kind == "x" else {}
        )
        assert response.status_code == 201, response.text
        self.outlet = self.name
        if kind == "x":
            self.outlet += ".out"
            with self.channel() as channel:
                channel.queue_declare(self.outlet, durable=True)
                channel.queue_bind(self.outlet, self.name, "#")

    @property
    def url(self) -> str:
        return self._base_url + self.path

    @property
    def path(self) -> str:
        return self.below("endpoint")

    def below(self, facet: str) -> str:
        vhost = "" if self.vhost == "/" else "/" + quote(self.vhost, safe="")
        return f"{vhost}/{facet}/{self.kind}/{self.name}"

    def channel(self) -> Any:
        return _Channel(self._amqp_url)

    def publish(self, key: str, body: bytes) -> None:
        response = self.http.post(f"{self.path}?hub.topic={key}", content=body)
        assert response.status_code == 202, response.text

    def take(self, count: int) -> list[tuple[str, bytes]]:
        """Keys and bodies of what came, when there is so much of it."""
        found: list[tuple[str, bytes]] = []
        deadline = time.monotonic() + WAIT_S
        with self.channel() as channel:
            while len(found) < count:
                method, _, body = channel.basic_get(self.outlet, auto_ack=True)
                if method is None:
                    assert time.monotonic() < deadline, f"{len(found)} of {count} messages"
                    time.sleep(0.02)
                else:
                    found.append((method.routing_key, body))
        return found

    def depth(self) -> int:
        with self.channel() as channel:
            return int(channel.queue_declare(self.outlet, passive=True).method.message_count)

    def token(self, use: str) -> str:
        asked = {"hub.mode": "generate_token", "hub.intended_use": use}
        response = self.http.get(self.path, params=asked)
        assert response.status_code == 200, response.text
        return parse_qs(response.text)["hub.verify_token"][0]

    def ask(self, mode: str, sink: Place, token: str, **more: str) -> httpx.Response:
        form = {"mode": mode, "callback": sink.url, "topic": "eu.#"}
        form |= {"verify_token": token, **more}
        named = {f"hub.{name}": value for name, value in form.items()}
        return self.http.post(self.below("subscribe"), data=named)

    def join(self, sink: Place, **more: str) -> None:
        response = self.ask("subscribe", sink, sink.token("subscribe"), **more)
        assert response.status_code == 204, response.text

    def part(self, sink: Place) -> None:
        response = self.ask("unsubscribe", sink, sink.token("unsubscribe"))
        assert response.status_code == 204, response.text

    def listed(self) -> list[dict[str, Any]]:
        """The subscriptions whose source it is."""
        kind = "exchange" if self.kind == "x" else "queue"
        asked = {"vhost": self.vhost, "resource_type": kind, "resource_name": self.name}
        response = self.http.get("/subscriptions", params=asked)
        assert response.status_code == 200, response.text
        found: list[dict[str, Any]] = response.json()["subscriptions"]
        return found


class _Channel:
    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> Any:
        self._connection = pika.BlockingConnection(pika.URLParameters(self._url))
        return self._connection.channel()

    def __exit__(self, *_: object) -> None:
        self._connection.close()


@pytest.fixture
def place(http: httpx.Client, warren: WarrenServer) -> Any:
    return lambda kind, vhost="/": Place(http, warren, kind, vhost)


@pytest.mark.parametrize("sink_vhost", ["/", OTHER], ids=["same", "other"])
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_joined_listed_and_parted(place: Any, kinds: tuple[str, str], sink_vhost: str) -> None:
    source, sink = place(kinds[0]), place(kinds[1], sink_vhost)
    source.join(sink)
    [listed] = source.listed()
    assert sink.name in listed["pseudo_queue"]
    assert (listed["topic"], listed["status"]) == ("eu.#", "active")
    assert listed["lease_seconds"] == 30 * 86_400
    source.publish("eu.fr", b"first")
    source.publish("eu.de", b"second")
    assert sink.take(2) == [("eu.fr", b"first"), ("eu.de", b"second")]
    if kinds[0] == "x":  # a queue's topic is only a label
        source.publish("us.ny", b"not this one")
    source.part(sink)
    assert source.listed() == []
    source.publish("eu.fr", b"after")
    assert sink.depth() == 0
    again = source.ask("unsubscribe", sink, sink.token("unsubscribe"))
    problem(again, 404)


@pytest.mark.parametrize("sink_vhost", ["/", OTHER], ids=["same", "other"])
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_parted_at_the_end_of_the_lease(
    place: Any, kinds: tuple[str, str], sink_vhost: str
) -> None:
    source, sink = place(kinds[0]), place(kinds[1], sink_vhost)
    source.join(sink, lease_seconds="1")
    wait_until(lambda: source.listed() == [], WAIT_S, "the end of the lease")
    source.publish("eu.fr", b"after")
    assert sink.depth() == 0


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_parted_by_who_may_configure(
    place: Any, http: httpx.Client, kinds: tuple[str, str]
) -> None:
    source, sink = place(kinds[0]), place(kinds[1])
    source.join(sink)
    asked = {"hub.callback": sink.url, "hub.topic": "eu.#"}
    response = http.delete(source.below("subscribe"), params=asked)
    assert response.status_code == 200, response.text
    source.publish("eu.fr", b"after")
    assert sink.depth() == 0


def test_a_loop_of_queues_ends(place: Any) -> None:
    """Each relay is a hop; what has gone too far is a dead letter, and the rest goes on."""
    first, second = place("q"), place("q")
    first.join(second)
    second.join(first)
    first.publish("eu.fr", b"round")
    dead = Dead(first)
    wait_until(lambda: bool(dead.found()), WAIT_S, "the end of the loop")
    [(properties, body)] = dead.taken
    assert body == b"round"
    assert properties.headers["x-hub-hops"] == MAX_HOPS
    assert "loop" in properties.headers["x-hub-reason"]
    assert (first.depth(), second.depth()) == (0, 0)


class Dead:
    """What is in the dead queue of the virtual host of a place."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.taken: list[tuple[Any, bytes]] = []

    def found(self) -> list[tuple[Any, bytes]]:
        with self._place.channel() as channel:
            channel.queue_declare("hub.dead", durable=True)
            method, properties, body = channel.basic_get("hub.dead", auto_ack=True)
        if method is not None:
            self.taken.append((properties, body))
        return self.taken
