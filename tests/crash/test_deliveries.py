"""Deliveries of a server that is killed: every accepted message arrives or is a dead letter.

The target tells what it was sent; the log of attempts and the dead letters tell what the server
made of it. Which message fails is in its body, so nothing has to be remembered over a kill.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pika
import pytest
from aiohttp import web
from pika.exceptions import ChannelClosedByBroker

from tests.support.http import Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer

pytestmark = pytest.mark.promise

AUTH = ("guest", "guest")
KILLS = 3
WAIT_S = 60.0
ENVIRONMENT = {
    "WARREN_MAX_ATTEMPTS": "2",  # the second one is 1 to 5 s after the first
    "WARREN_IN_FLIGHT_PER_SUBSCRIPTION": "5",
}
TROUBLED = 100
"""Only the first messages fail: later successes keep the subscription out of trouble."""


class Target(Callback):
    """Answers with a failure what is to fail once, or always."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[bytes] = Counter()

    async def _handle(self, request: web.Request) -> web.Response:
        response = await super()._handle(request)
        body = await request.read()
        self.seen[body] += 1
        if body.startswith(b"never") or (body.startswith(b"later") and self.seen[body] == 1):
            return web.Response(status=500)
        await asyncio.sleep(0.005)  # so that a kill finds some of them under way
        return response


class Publisher:
    """Publishes numbered messages, and knows which were accepted."""

    def __init__(self, server: WarrenServer) -> None:
        self._url = f"{server.http_url}/endpoint/x/news"
        self.accepted: list[bytes] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        number = 0
        with httpx.Client(auth=AUTH) as http:
            while not self._stop.wait(0.005):
                number += 1
                body = b"%s %d" % (_fate(number), number)
                try:
                    answer = http.post(self._url, params={"hub.topic": "n"}, content=body)
                except httpx.TransportError:
                    continue  # killed; nobody knows whether it was taken
                if answer.status_code == 202:
                    self.accepted.append(body)

    def __enter__(self) -> Publisher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def _fate(number: int) -> bytes:
    if number > TROUBLED:
        return b"at once"
    return {0: b"never", 1: b"later"}.get(number % 10, b"at once")


@pytest.fixture
def target() -> Iterator[Target]:
    with Target() as target:
        yield target


@pytest.fixture
def server(target: Target) -> Iterator[WarrenServer]:
    """One that the target has subscribed at."""
    with WarrenServer(env=ENVIRONMENT) as server, httpx.Client(auth=AUTH) as http:
        exchange = {"amqp.exchange_type": "topic", "durable": "true"}
        made = http.put(f"{server.http_url}/endpoint/x/news", params=exchange)
        assert made.status_code == 201, made.text
        form = {"hub.mode": "subscribe", "hub.callback": target.url, "hub.topic": "#"}
        agreed = http.post(f"{server.http_url}/subscribe/x/news", data=form, timeout=30)
        assert agreed.status_code == 204, agreed.text
        yield server


def test_accepted_messages_arrive_or_are_dead_letters(server: WarrenServer, target: Target) -> None:
    chance = random.Random(20261128)
    with Publisher(server) as publisher:
        for _ in range(KILLS):
            target.wait(len(target.deliveries) + chance.randint(50, 250), WAIT_S)
            server.kill()
            server.restart()
    expected = {body for body in publisher.accepted if not body.startswith(b"never")}
    failing = {body for body in publisher.accepted if body.startswith(b"never")}
    assert failing and any(body.startswith(b"later") for body in expected)
    wait_until(lambda: expected <= _arrived(target), WAIT_S, "every accepted message")
    server.kill()  # outcomes may be on their way to the disk
    server.restart()
    assert "Traceback" not in server.output()

    def is_settled() -> bool:
        """A message whose outcome was not durable is still there, and comes again."""
        rows, ids = _attempts(server), _ids(target)
        outcomes = {body: rows.get(ids.get(body, ""), set()) for body in publisher.accepted}
        wanted = {True: "dead", False: "delivered"}
        return all(wanted[body in failing] in found for body, found in outcomes.items())

    wait_until(is_settled, WAIT_S, "the outcome of every accepted message")
    letters = _dead_letters(server)
    assert failing <= letters.keys()
    assert all(body.startswith(b"never") for body in letters)
    assert letters == {body: id for body, id in _ids(target).items() if body in letters}
    wait_until(lambda: _is_empty(server), WAIT_S, "the empty queue")


def _arrived(target: Target) -> set[bytes]:
    """What was answered with 2xx, which a server that was just killed may not have heard."""
    return {
        body
        for body, count in list(target.seen.items())
        if body.startswith(b"at once") or (body.startswith(b"later") and count > 1)
    }


def _ids(target: Target) -> dict[bytes, str]:
    """The `webhook-id` of each message, which no repetition changes and no other one has."""
    found: dict[bytes, set[str]] = {}
    for one in target.deliveries:
        found.setdefault(one.body, set()).add(one.headers["webhook-id"])
    assert all(len(ids) == 1 for ids in found.values())
    ids = {body: next(iter(ids)) for body, ids in found.items()}
    assert len(set(ids.values())) == len(ids)
    return ids


def _is_empty(server: WarrenServer) -> bool:
    """Whether no message is in the subscription's queue, in a delay queue, or out for delivery."""
    [subscription] = _get(server, "/api/hub/subscriptions")["subscriptions"]
    assert subscription["status"] == "active", subscription
    queues = [f"hub.sub.{subscription['id']}", *(f"hub.retry.{step}s" for step in (1, 2, 5))]
    connection = pika.BlockingConnection(pika.URLParameters(server.amqp_url))
    try:
        depths = [_depth(connection, queue) for queue in queues]
    finally:
        connection.close()
    return not any(depths)


def _depth(connection: pika.BlockingConnection, queue: str) -> int:
    """Of a delay queue that nobody has needed yet, 0."""
    try:
        declared = connection.channel().queue_declare(queue, passive=True)
    except ChannelClosedByBroker:
        return 0
    return int(declared.method.message_count)


def _attempts(server: WarrenServer) -> dict[str, set[str]]:
    """The outcomes of each message."""
    found: dict[str, set[str]] = {}
    before = ""
    while True:
        page = _get(server, f"/api/hub/attempts?limit=1000{before}")
        for one in page["attempts"]:
            found.setdefault(one["webhook_id"], set()).add(one["outcome"])
        if page["next_before"] is None:
            return found
        before = f"&before={page['next_before']}"


def _dead_letters(server: WarrenServer) -> dict[bytes, str]:
    """Bodies and their ids."""
    page = _get(server, "/api/hub/dead-letters?page_size=500")
    assert page["is_complete"] and page["page_count"] == 1
    found = {}
    for one in page["dead_letters"]:
        letter = _get(server, f"/api/hub/dead-letters/%2F/{one['id']}")
        found[letter["payload"].encode()] = letter["webhook_id"]
    return found


def _get(server: WarrenServer, path: str) -> Any:
    answer = httpx.get(server.http_url + path, auth=AUTH, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()
