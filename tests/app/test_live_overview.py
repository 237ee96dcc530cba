"""The live overview over HTTP while the server runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx

from tests.app.support import problem
from tests.support.process import wait_until
from tests.support.server import WarrenServer

GUEST = ("guest", "guest")
URL = "/api/warren/live"
Event = tuple[str, dict[str, Any]]


@contextmanager
def client(server: WarrenServer, auth: tuple[str, str] | None = GUEST) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.http_url, timeout=30, auth=auth) as http:
        yield http


@contextmanager
def following(http: httpx.Client, **query: Any) -> Iterator[Iterator[Event]]:
    with http.stream("GET", URL, params=query) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield _events(response)


def _events(response: httpx.Response) -> Iterator[Event]:
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def until(events: Iterator[Event], wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first snapshot of the next thirty that is as wanted."""
    for _ in range(30):
        name, found = next(events)
        if name == "snapshot" and wanted(found):
            return found
    raise AssertionError(f"it did not come, the last one was {found}")


def publish(http: httpx.Client, queue: str, count: int) -> None:
    body = {"routing_key": queue, "payload": "x", "payload_encoding": "string", "properties": {}}
    for _ in range(count):
        assert http.post("/api/exchanges/%2F/amq.default/publish", json=body).json()["routed"]


def add_user(http: httpx.Client, name: str, tags: str, vhost: str = "%2F") -> tuple[str, str]:
    http.put(f"/api/users/{name}", json={"password": "secret", "tags": tags}).raise_for_status()
    rights = {"configure": "", "write": "", "read": ""}
    http.put(f"/api/permissions/{vhost}/{name}", json=rights).raise_for_status()
    return name, "secret"


def test_a_snapshot_shows_rates_and_queues_without_consumers(warren: WarrenServer) -> None:
    with client(warren) as http, following(http) as events:
        assert next(events)[0] == "history"
        for name, count in (*((f"short-{number}", 1) for number in range(6)), ("waiting", 5)):
            http.put(f"/api/queues/%2F/{name}", json={}).raise_for_status()
            publish(http, name, count)
        found = until(events, lambda one: any(x["messages"] == 5 for x in one["queues"]))
        stuck = found["queues"][0]
        assert (stuck["name"], len(found["queues"])) == ("waiting", 5)
        assert (stuck["messages"], stuck["consumers"], stuck["reason"]) == (5, 0, "no consumer")
        assert found["troubled_queues"] == {"no_consumer": 7, "growing": 0, "paused": 0}
        assert found["messages"]["ready"] >= 5
        assert found["objects"]["vhosts"] >= 1
        assert {one["level"] for one in found["state"]} == {"ok"}
        assert found["memory"]["used_bytes"] > 0
        until(events, lambda one: one["rates"]["publish"] == 0)
        publish(http, "waiting", 1)
        until(events, lambda one: one["rates"]["publish"] > 0)


def test_charts_are_full_when_a_page_is_opened(warren: WarrenServer) -> None:
    with client(warren) as http:
        http.put("/api/queues/%2F/charted", json={}).raise_for_status()
        publish(http, "charted", 7)
        with following(http) as events:
            until(events, lambda one: one["messages"]["ready"] >= 7)
            next(events)
        with following(http) as events:
            _, history = next(events)
            assert history["step_s"] == 1
            assert len(history["times"]) == 600
            assert {len(column) for column in history["series"].values()} == {600}
            assert sum(filter(None, history["series"]["publish"])) >= 7
            assert history["series"]["messages_ready"][-1] >= 7
            assert history["series"]["delivered"][0] is None
        with following(http, history_s=86_400) as events:
            _, history = next(events)
            assert (history["step_s"], len(history["times"])) == (60, 1_440)


def test_failing_callbacks_are_named_to_their_owners_alone(warren: WarrenServer) -> None:
    with client(warren) as http:
        http.put("/api/exchanges/%2F/news", json={"type": "topic"}).raise_for_status()
        body = {
            "vhost": "/", "resource_type": "exchange", "resource_name": "news", "topic": "#",
            "callback": "http://127.0.0.1:1/closed", "verification": "none",
        }  # fmt: skip
        response = http.post("/api/hub/subscriptions", json=body)
        assert response.status_code in (201, 204), response.text
        publish_to = "/api/exchanges/%2F/news/publish"
        message = {"routing_key": "a", "payload": "x", "payload_encoding": "string"}
        http.post(publish_to, json={**message, "properties": {}}).raise_for_status()
        with following(http) as events:
            found = until(events, lambda one: bool(one["callbacks"]))
            assert found["callbacks"][0]["callback"] == "http://127.0.0.1:1/closed"
            assert found["callbacks"][0]["failures"] >= 1
            assert found["hub"]["failing"] == found["hub"]["subscriptions"] == 1
            assert any("1 callback fails" in one["text"] for one in found["state"])
        watcher = add_user(http, "watcher", "monitoring")
    with client(warren, watcher) as http, following(http) as events:
        found = until(events, lambda one: True)
        assert found["hub"]["failing"] == 1
        assert found["callbacks"] == []


def test_users_see_their_virtual_hosts_and_no_rates(warren: WarrenServer) -> None:
    with client(warren) as http:
        http.put("/api/vhosts/own").raise_for_status()
        http.put("/api/queues/own/one", json={}).raise_for_status()
        http.put("/api/queues/%2F/other", json={}).raise_for_status()
        manager = add_user(http, "manager", "management", "own")
        nobody = add_user(http, "nobody", "")
    with client(warren, manager) as http, following(http) as events:
        assert set(map(len, next(events)[1]["series"].values())) == {0}
        found = until(events, lambda one: one["objects"]["queues"] == 1)
        assert found["objects"]["vhosts"] == 1
        assert found["rates"] == found["hub"]["rates"] == {}
        assert found["hub"]["subscriptions"] == 0
        assert found["hub"]["dead_letters"] is None  # those of others are not listed either
    with client(warren, nobody) as http:
        assert "management" in problem(http.get(URL), 403)


def test_bad_requests_are_refused(warren: WarrenServer) -> None:
    with client(warren) as http:
        assert "86400" in problem(http.get(URL, params={"history_s": 86_401}), 400)
        assert "unknown filter" in problem(http.get(URL, params={"history": 1}), 400)
    with client(warren, None) as http:
        assert http.get(URL).status_code == 401


def test_there_are_at_most_64_readers() -> None:
    """With a server that no reader has left a moment ago."""
    with WarrenServer(dev=True) as server, ExitStack() as stack:
        readers = []
        for _ in range(64):
            http = stack.enter_context(client(server))
            readers.append(stack.enter_context(following(http, history_s=0)))
            assert next(readers[-1])[0] == "history"
        with client(server) as http:
            assert "64 pages" in problem(http.get(URL), 503)


def test_readers_do_not_hold_up_a_stop() -> None:
    with (
        WarrenServer(dev=True, env={"WARREN_DRAIN_S": "60"}) as server,
        client(server) as http,
        following(http) as events,
    ):
        until(events, lambda one: True)
        assert server.stop() == 0
        assert all(name == "snapshot" for name, _ in events)


def test_samples_of_lengths_and_of_the_node(warren: WarrenServer) -> None:
    """RabbitMQ's `lengths_age` and `node_stats_age`, from what charts are made of."""
    with client(warren) as http:
        http.put("/api/queues/%2F/sampled", json={}).raise_for_status()
        publish(http, "sampled", 3)

        def lengths() -> Any:
            query = "lengths_age=60&lengths_incr=1"
            totals = http.get(f"/api/overview?{query}").json()["queue_totals"]
            return totals["messages_details"]["samples"]

        wait_until(lambda: bool(found := lengths()) and found[0]["sample"] >= 3, 60, "the sample")
        reader = add_user(http, "some-only", "management")
        document = http.get("/api/overview?lengths_age=60&lengths_incr=1", auth=reader).json()
        assert "samples" not in document["queue_totals"]["messages_details"]
        (node,) = http.get("/api/nodes?node_stats_age=60&node_stats_incr=1").json()
        assert node["mem_used_details"]["samples"][0]["sample"] > 1_000_000
        assert node["io_write_bytes"] >= node["io_write_bytes_details"]["samples"][0]["sample"] > 0
        assert node["io_sync_count"] > 0 < node["io_sync_avg_time"]
        assert "samples" not in http.get("/api/nodes").json()[0]["mem_used_details"]
