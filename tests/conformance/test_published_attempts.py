"""Attempts to deliver are published to `hub.attempts` (docs/hub.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.http import Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.times import seconds

from .webhooks import WAIT_S, Site

pytestmark = pytest.mark.differs("RabbitMQ pushes to nobody")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    args = ["--publish-attempts"]
    with WarrenServer(dev=True, args=args) as server, Site(server) as site:
        yield site
        assert "Traceback" not in server.output(), server.output()


def bound(site: Site, key: str = "#") -> str:
    """A queue that gets attempts with these outcomes."""
    queue = site.queue()
    with site.amqp() as channel:
        channel.queue_bind(queue.partition("/")[2], "hub.attempts", key)
    return queue


def taken(site: Site, queue: str) -> tuple[str, dict[str, Any]]:
    wait_until(lambda: site.depth(queue) > 0, WAIT_S, "attempt")
    method, properties, body = site.taken(queue)
    assert (properties.content_type, properties.delivery_mode) == ("application/json", 2)
    return method.routing_key, json.loads(body)


def test_each_attempt_is_published_with_its_outcome(site: Site, callback: Callback) -> None:
    queue, failures = bound(site), bound(site, "retried")
    source = site.exchange()
    callback.script(503)
    site.subscribe(source, callback, topic="key")
    site.publish(source, topic="key")
    key, attempt = taken(site, queue)
    (stored,) = site.attempts(callback, 1)[:1]
    assert key == attempt["outcome"] == "retried"
    assert abs(seconds(attempt.pop("at")) - seconds(stored["at"])) < 0.01
    assert 0 <= attempt.pop("age_s") < WAIT_S
    assert attempt == {
        "subscription": stored["subscription"], "vhost": "/", "resource_type": "exchange",
        "resource_name": source.partition("/")[2], "topic": "key",
        "callback_host": f"{callback.host}:{callback.port}", "webhook_id": stored["webhook_id"],
        "number": 1, "outcome": "retried", "status": 503, "latency_ms": stored["latency_ms"],
    }  # fmt: skip
    key, second = taken(site, queue)
    assert (key, second["number"], second["status"]) == ("delivered", 2, 200)
    assert second["webhook_id"] == attempt["webhook_id"] and second["age_s"] >= 0.5
    assert taken(site, failures)[1]["number"] == 1 and site.depth(failures) == 0


def test_deliveries_of_attempts_publish_no_attempts(site: Site) -> None:
    queue, source = bound(site), site.exchange()
    with Callback() as first, Callback() as watcher:
        site.subscribe(source, first, topic="")
        site.subscribe("x/hub.attempts", watcher, topic="#")
        for _ in range(2):
            site.publish(source)
        watcher.wait(2)
        site.attempts(watcher, 2)
        site.publish(source)
        watcher.wait(3)
        assert site.depth(queue) == len(watcher.deliveries) == 3


def test_clients_can_not_publish_attempts(site: Site) -> None:
    answer = site.http.post("/endpoint/x/hub.attempts", content=b"{}")
    assert answer.status_code == 403 and "clients can't publish to it" in answer.text
    answer = site.http.put("/endpoint/q/hub.attempts")
    assert answer.status_code == 403 and "reserved prefix" in answer.text
