"""Requests of publishers, subscribers and operators to a hub under test, over HTTP and AMQP."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from inspect import Signature, signature
from typing import Any, Self
from urllib.parse import parse_qs, quote

import httpx
import pika
import pytest
from aiohttp import web
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.http import Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer

AUTH = ("guest", "guest")
WAIT_S = 30.0
JSON = {"Accept": "application/json"}
OF_STORIES = ("site", "callback")
_run = secrets.token_hex(2)
_numbers = itertools.count(1)


def form(mode: str, callback: str, topic: str, **more: str) -> dict[str, str]:
    """Returns the `hub.*` parameters; `more` has names without `hub.`."""
    given = {"mode": mode, "callback": callback, "topic": topic, **more}
    return {f"hub.{name}": value for name, value in given.items()}


class Site:
    """A server under test, with unique names for each test. Sources are `x/NAME` or `q/NAME`."""

    def __init__(self, server: WarrenServer) -> None:
        self.server = server
        self.http = httpx.Client(base_url=server.http_url, auth=AUTH, timeout=WAIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def name(self) -> str:
        return f"w{_run}-{next(_numbers)}"

    def exchange(self, **query: str) -> str:
        return self._declared("x", {"amqp.exchange_type": "topic"} | query)

    def queue(self, **query: str) -> str:
        return self._declared("q", query)

    def _declared(self, kind: str, query: dict[str, str]) -> str:
        source = f"{kind}/{self.name()}"
        answer = self.http.put(f"/endpoint/{source}", params=query)
        assert answer.status_code == 201, answer.text
        return source

    def subscribe(
        self, source: str, callback: str | Callback, topic: str = "#", **more: str
    ) -> None:
        url = callback if isinstance(callback, str) else callback.url
        answer = self.http.post(f"/subscribe/{source}", data=form("subscribe", url, topic, **more))
        assert answer.status_code == 204, answer.text

    def token(self, sink: str, use: str = "subscribe") -> str:
        """Returns a token that binds this exchange or queue."""
        query = {"hub.mode": "generate_token", "hub.intended_use": use}
        answer = self.http.get(f"/endpoint/{sink}", params=query)
        assert answer.status_code == 200, answer.text
        (token,) = parse_qs(answer.text)["hub.verify_token"]
        return token

    def publish(
        self, source: str, body: bytes = b"1", topic: str = "", query: dict[str, str] | None = None
    ) -> None:
        given = {"hub.topic": topic, **(query or {})}
        answer = self.http.post(f"/endpoint/{source}", params=given, content=body)
        assert answer.status_code == 202, answer.text

    def get(self, path: str, **query: str | int) -> Any:
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def listed(self, callback: str | Callback) -> list[dict[str, Any]]:
        url = callback if isinstance(callback, str) else callback.url
        found: list[dict[str, Any]] = self.get("/subscriptions", callback=url)["subscriptions"]
        return found

    def attempts(self, callback: str | Callback, count: int) -> list[dict[str, Any]]:
        """Waits for `count` attempts for a subscription, and returns them, the oldest first."""
        (found,) = self.listed(callback)
        path = f"/api/hub/subscriptions/{found['id']}/attempts"
        wait_until(
            lambda: len(self.get(path)["attempts"]) >= count, WAIT_S, f"attempt {count} in the log"
        )
        return list(reversed(self.get(path)["attempts"]))

    def dead_letters(self, count: int, **query: str) -> list[dict[str, Any]]:
        """Waits for `count` dead letters, and returns them."""

        def found() -> list[dict[str, Any]]:
            letters: list[dict[str, Any]] = self.get("/api/hub/dead-letters", **query)[
                "dead_letters"
            ]
            return letters

        wait_until(lambda: len(found()) >= count, WAIT_S, f"dead letter {count}")
        return found()

    def depth(self, queue: str) -> int:
        """Returns the number of ready messages."""
        facts = self.get_description(queue)
        return int(facts["messages_ready"])

    def get_description(self, source: str) -> dict[str, str]:
        answer = self.http.get(f"/endpoint/{source}", headers=JSON)
        assert answer.status_code == 200, answer.text
        return {item["name"]: item["value"] for item in answer.json()["parameters"]}

    @contextmanager
    def amqp(self, vhost: str = "/") -> Iterator[BlockingChannel]:
        base = self.server.amqp_url.rpartition("/")[0]
        parameters = pika.URLParameters(f"{base}/{quote(vhost, safe='')}")
        connection = pika.BlockingConnection(parameters)
        try:
            yield connection.channel()
        finally:
            if connection.is_open:
                connection.close()

    def taken(self, queue: str) -> tuple[Any, Any, bytes]:
        """Gets the first message of a queue over AMQP: method, properties, body."""
        with self.amqp() as channel:
            method, properties, body = channel.basic_get(queue.partition("/")[2], auto_ack=True)
        assert method is not None and properties is not None and body is not None
        return method, properties, body


Tell = Callable[..., None]


def story(tell: Tell) -> Tell:
    """A test that mostly waits: those of a module are begun together, beside its other tests.

    It may ask for the `site` of the module, a `callback` of its own, and what it is parametrized
    with. The module has a fixture `told` of what `telling` gives.
    """

    def test(told: dict[str, Future[None]], request: pytest.FixtureRequest, **_: object) -> None:
        told[request.node.nodeid].result()

    given = [one for one in signature(test).parameters.values() if one.kind is not one.VAR_KEYWORD]
    asked = [one for one in signature(tell).parameters.values() if one.name not in OF_STORIES]
    vars(test).update(tell=tell, __signature__=Signature([*given, *asked]))
    test.__name__, test.__qualname__ = tell.__name__, tell.__qualname__
    test.__doc__, test.__module__ = tell.__doc__, tell.__module__
    return test


@contextmanager
def telling(site: Site, request: pytest.FixtureRequest) -> Iterator[dict[str, Future[None]]]:
    """Begins the stories of the module that are to be run; returns them by test id."""
    items = [one for one in request.session.items if isinstance(one, pytest.Function)]
    items = [one for one in items if one.module is request.module and hasattr(one.function, "tell")]
    with ThreadPoolExecutor(len(items) or 1) as pool:
        yield {item.nodeid: pool.submit(_told, site, item) for item in items}


def _told(site: Site, item: pytest.Function) -> None:
    tell: Tell = vars(item.function)["tell"]
    given: dict[str, Any] = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    with ExitStack() as stack:
        if "site" in signature(tell).parameters:
            given["site"] = site
        if "callback" in signature(tell).parameters:
            given["callback"] = stack.enter_context(Callback())
        tell(**given)


class SteppedCallback(Callback):
    """A target that answers a delivery when `let` is called, or all while it is `open`.

    `inside` is the number of deliveries that wait now, `most` the highest number so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.inside = self.most = 0
        self._lets = threading.Semaphore(0)
        self.open = False

    def let(self, count: int = 1) -> None:
        self._lets.release(count)

    async def _handle(self, request: web.Request) -> web.Response:
        if request.method != "POST":
            return await super()._handle(request)
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            response = await super()._handle(request)
            while not self.open and not self._lets.acquire(blocking=False):
                await asyncio.sleep(0.01)
            return response
        finally:
            self.inside -= 1

    def __exit__(self, *error: Any) -> None:
        self.open = True
        super().__exit__(*error)
