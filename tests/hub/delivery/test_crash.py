"""Deliveries and kill -9: at least once, under the same `webhook-id`."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import httpx

from tests.support.http import Answer, Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from warrenmq.hub.storage.schema import DATABASE_NAME

AUTH = ("guest", "guest")


def subscribe(server: WarrenServer, callback: Callback, **given: str) -> None:
    """To the durable queue `in`."""
    assert httpx.put(f"{server.http_url}/endpoint/q/in", auth=AUTH).status_code == 201
    form = {"hub.mode": "subscribe", "hub.callback": callback.url, "hub.topic": "", **given}
    url = f"{server.http_url}/subscribe/q/in"
    assert httpx.post(url, data=form, auth=AUTH, timeout=30).status_code == 204


def post(server: WarrenServer, body: bytes) -> None:
    url = f"{server.http_url}/endpoint/q/in"
    assert httpx.post(url, content=body, auth=AUTH).status_code == 202


def test_what_was_not_durable_is_posted_again(callback: Callback) -> None:
    with WarrenServer(dev=True) as server:
        subscribe(server, callback)
        database = sqlite3.connect(server.data / DATABASE_NAME, isolation_level=None)
        database.execute("BEGIN IMMEDIATE")  # so no outcome can be written
        post(server, b"x")
        callback.wait(1)
        server.kill()
        database.close()
        server.restart()
        first, second = callback.wait(2)
    assert first.body == second.body == b"x"
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


def test_what_was_durable_is_not(callback: Callback) -> None:
    with WarrenServer(dev=True) as server:
        subscribe(server, callback)
        post(server, b"x")
        callback.wait(1)
        server.stop()
        server.restart()
        post(server, b"y")
        assert [one.body for one in callback.wait(2)] == [b"x", b"y"]


def test_a_retried_message_keeps_its_id_and_its_failures(callback: Callback) -> None:
    with WarrenServer(dev=True) as server:
        subscribe(server, callback)
        callback.script(500)
        post(server, b"x")
        callback.wait(1)
        server.kill()
        server.restart()
        first, *_, last = callback.wait(2, 30.0)
    assert first.headers["webhook-id"] == last.headers["webhook-id"]


def test_a_strict_order_and_its_failures_survive(callback: Callback) -> None:
    with WarrenServer(dev=True) as server:
        subscribe(server, callback, **{"hub.order": "strict"})
        callback.script(Answer(503, headers={"Retry-After": "2"}))
        for body in (b"1", b"2"):
            post(server, body)
        callback.wait(1)
        database = server.data / DATABASE_NAME
        wait_until(lambda: bool(blocked(database)), 10.0, "row of the blocking message")
        server.kill()
        server.restart()
        first, second, third = callback.wait(3, 30.0)
    assert [first.body, second.body, third.body] == [b"1", b"1", b"2"]
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert second.headers["X-AMQP-Redelivered-Count"] == "1"


def blocked(path: Path) -> list[tuple[str]]:
    database = sqlite3.connect(path)
    try:
        return database.execute("SELECT webhook_id FROM blocked").fetchall()
    finally:
        database.close()
