"""Deliveries and kill -9: at least once, under the same `webhook-id`."""

from __future__ import annotations

import sqlite3

import httpx

from tests.support.http import Callback
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


def test_an_attempt_that_is_not_durable_is_repeated(callback: Callback) -> None:
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
