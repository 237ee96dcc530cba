"""Paused subscriptions, ends that are not told yet and leases, over kill -9 of the real server."""

from __future__ import annotations

import time

import httpx
import pytest

from tests.support.http import Answer, Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .test_crash import AUTH, publish, put_news

TIMEOUT_S = 20.0


@pytest.fixture
def environment(either_database: str | None) -> dict[str, str]:
    return {} if either_database is None else {"WARREN_DATABASE": either_database}


def subscribe(server: WarrenServer, callback: str, **given: str) -> None:
    form = {"hub.mode": "subscribe", "hub.callback": callback, "hub.topic": "eu.#", **given}
    url = f"{server.http_url}/subscribe/x/news"
    assert httpx.post(url, data=form, auth=AUTH, timeout=TIMEOUT_S).status_code == 204


def subscriptions(server: WarrenServer) -> list[dict[str, str]]:
    found = httpx.get(f"{server.http_url}/api/hub/subscriptions", auth=AUTH)
    listed: list[dict[str, str]] = found.json()["subscriptions"]
    return listed


def test_a_paused_subscription_stays_paused_and_gathers(
    callback: Callback, environment: dict[str, str]
) -> None:
    with WarrenServer(dev=True, env=environment) as server:
        put_news(server)
        subscribe(server, callback.url)
        [one] = subscriptions(server)
        url = f"{server.http_url}/api/hub/subscriptions/{one['id']}"
        assert httpx.post(f"{url}/pause", auth=AUTH).status_code == 200
        publish(server, "eu.fr", b"before")
        server.kill()
        server.restart()
        publish(server, "eu.fr", b"after")
        [one] = subscriptions(server)
        assert one["status"] == "inactive" and callback.deliveries == []
        assert httpx.post(f"{url}/resume", auth=AUTH).status_code == 200
        callback.wait(2)
    assert [one.body for one in callback.deliveries] == [b"before", b"after"]


def test_a_denial_that_was_not_told_outlives_kill_9(
    callback: Callback, environment: dict[str, str]
) -> None:
    callback.denial_answers.append(Answer(503))
    with WarrenServer(dev=True, env=environment) as server:
        put_news(server)
        subscribe(server, callback.url)
        given = {"hub.callback": callback.url, "hub.topic": "eu.#"}
        url = f"{server.http_url}/subscribe/x/news"
        assert httpx.delete(url, params=given, auth=AUTH).status_code == 200
        wait_until(lambda: len(callback.denials) == 1, TIMEOUT_S, "the first try")
        server.kill()
        server.restart()
        wait_until(lambda: len(callback.denials) == 2, TIMEOUT_S, "the denial after the crash")
        publish(server, "eu.fr", b"for nobody")
        assert subscriptions(server) == []
    assert callback.deliveries == []
    assert {one.query["hub.reason"] for one in callback.denials} == {"removed by an operator"}


def test_a_lease_that_ends_while_the_server_is_down_is_told_at_its_start(
    callback: Callback, environment: dict[str, str]
) -> None:
    with WarrenServer(dev=True, env=environment) as server:
        put_news(server)
        subscribe(server, callback.url, **{"hub.lease_seconds": "1"})
        ends_at = time.time() + 1
        server.kill()
        wait_until(lambda: time.time() > ends_at, TIMEOUT_S, "the end of the lease")
        server.restart()
        wait_until(lambda: len(callback.denials) == 1, TIMEOUT_S, "the denial")
        assert subscriptions(server) == []
    assert callback.denials[0].query["hub.reason"] == "the lease has ended"
