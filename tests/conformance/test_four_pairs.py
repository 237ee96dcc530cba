"""Exchanges and queues joined without HTTP, by tokens (http_contract 13).

All four pairs of sources and sinks, in one virtual host and between two: what flows, what is
listed, and each way in which it ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, quote

import httpx
import pytest

from tests.app.support import problem
from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .queues import WAIT_S, Queues

MAX_HOPS = 5
OTHER = "other/one"
_numbers = itertools.count(1)
each_pair = pytest.mark.parametrize("kinds", [*itertools.product("xq", "xq")], ids="-".join)
each_sink_vhost = pytest.mark.parametrize("sink_vhost", ["/", OTHER], ids=["same", "other"])


@pytest.fixture(scope="module")
def warren() -> Iterator[WarrenServer]:
    with WarrenServer(env={"WARREN_MAX_HOPS": str(MAX_HOPS)}) as server:
        yield server
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture(scope="module")
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    base_url, auth = warren.http_url, ("guest", "guest")
    with httpx.Client(base_url=base_url, auth=auth, timeout=20) as client:
        assert client.put(f"/api/vhosts/{quote(OTHER, safe='')}").status_code == 201
        yield client


class Place:
    """An exchange or a queue; its messages end up in the queue `outlet`."""

    def __init__(self, http: httpx.Client, warren: WarrenServer, kind: str, vhost: str) -> None:
        self.http = http
        self.kind = kind
        self.vhost = vhost
        self.name = self.outlet = f"{kind}{next(_numbers)}"
        base = warren.amqp_url.rpartition("/")[0]
        self.queues = Queues(f"{base}/{quote(vhost, safe='')}")
        self.path = self.below("endpoint")
        self.url = warren.http_url + self.path
        response = http.put(
            self.path, params={"amqp.exchange_type": "topic"} if kind == "x" else {}
        )
        assert response.status_code == 201, response.text
        if kind == "x":
            self.outlet += ".out"
            self.queues.bind(self.outlet, self.name)

    def below(self, facet: str) -> str:
        vhost = "" if self.vhost == "/" else "/" + quote(self.vhost, safe="")
        return f"{vhost}/{facet}/{self.kind}/{self.name}"

    def publish(self, key: str, body: bytes) -> None:
        response = self.http.post(f"{self.path}?hub.topic={key}", content=body)
        assert response.status_code == 202, response.text

    def depth(self) -> int:
        return self.queues.depth(self.outlet)

    def ask(self, mode: str, sink: Place, **more: str) -> httpx.Response:
        use = {"hub.mode": "generate_token", "hub.intended_use": mode}
        token = parse_qs(self.http.get(sink.path, params=use).text)["hub.verify_token"][0]
        form = {"mode": mode, "callback": sink.url, "topic": "eu.#", "verify_token": token, **more}
        named = {f"hub.{name}": value for name, value in form.items()}
        return self.http.post(self.below("subscribe"), data=named)

    def join(self, sink: Place, **more: str) -> None:
        response = self.ask("subscribe", sink, **more)
        assert response.status_code == 204, response.text

    def listed(self) -> list[dict[str, Any]]:
        """The subscriptions with this source."""
        kind = "exchange" if self.kind == "x" else "queue"
        asked = {"vhost": self.vhost, "resource_type": kind, "resource_name": self.name}
        found: list[dict[str, Any]] = self.http.get("/subscriptions", params=asked).json()[
            "subscriptions"
        ]
        return found


@pytest.fixture
def place(http: httpx.Client, warren: WarrenServer) -> Callable[..., Place]:
    return lambda kind, vhost="/": Place(http, warren, kind, vhost)


@each_sink_vhost
@each_pair
def test_subscription_is_created_listed_and_ended(
    place: Callable[..., Place], kinds: tuple[str, str], sink_vhost: str
) -> None:
    source, sink = place(kinds[0]), place(kinds[1], sink_vhost)
    source.join(sink)
    [listed] = source.listed()
    assert sink.name in listed["pseudo_queue"]
    assert (listed["topic"], listed["status"]) == ("eu.#", "active")
    assert listed["lease_seconds"] == 30 * 86_400
    source.publish("eu.fr", b"first")
    source.publish("eu.de", b"second")
    taken = sink.queues.take(sink.outlet, 2)
    assert [(one.key, one.body) for one in taken] == [("eu.fr", b"first"), ("eu.de", b"second")]
    if kinds[0] == "x":  # the topic of a queue is only a label
        source.publish("us.ny", b"not this one")
    assert source.ask("unsubscribe", sink).status_code == 204
    assert source.listed() == []
    source.publish("eu.fr", b"after")
    assert sink.depth() == 0
    problem(source.ask("unsubscribe", sink), 404)


@each_sink_vhost
@each_pair
def test_subscription_ends_with_its_lease(
    place: Callable[..., Place], kinds: tuple[str, str], sink_vhost: str
) -> None:
    source, sink = place(kinds[0]), place(kinds[1], sink_vhost)
    source.join(sink, lease_seconds="1")
    wait_until(lambda: source.listed() == [], WAIT_S, "the end of the lease")
    source.publish("eu.fr", b"after")
    assert sink.depth() == 0


@each_pair
def test_delete_ends_a_subscription(place: Callable[..., Place], kinds: tuple[str, str]) -> None:
    source, sink = place(kinds[0]), place(kinds[1])
    source.join(sink)
    asked = {"hub.callback": sink.url, "hub.topic": "eu.#"}
    assert source.http.delete(source.below("subscribe"), params=asked).status_code == 200
    source.publish("eu.fr", b"after")
    assert sink.depth() == 0


def test_a_loop_of_queues_ends(place: Callable[..., Place]) -> None:
    """Each relay is a hop; after too many the message is a dead letter."""
    first, second = place("q"), place("q")
    first.join(second)
    second.join(first)
    first.publish("eu.fr", b"round")
    dead = "/endpoint/q/hub.dead"
    wait_until(lambda: first.http.get(dead).status_code == 200, WAIT_S, "the queue hub.dead")
    [found] = first.queues.take("hub.dead", 1)
    assert (found.body, found.hops) == (b"round", MAX_HOPS)
    assert "loop" in found.properties.headers["x-hub-reason"]
    assert (first.depth(), second.depth()) == (0, 0)
