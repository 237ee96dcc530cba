"""A WebSub subscriber and publisher of the tests: requests to `/hub`, topics of both sorts."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, Self

import httpx

from tests.support.http import Answer, Callback, Request
from tests.support.process import wait_until
from tests.support.server import WarrenServer

AUTH = ("guest", "guest")
TIMEOUT_S = 30.0
PLAIN = "text/plain; charset=utf-8"


class Topic(Protocol):
    """A topic; `url` is what subscribers request, and `publish` makes new content."""

    @property
    def url(self) -> str: ...

    def publish(self, body: bytes, content_type: str = PLAIN) -> None: ...


class OwnTopic:
    """An exchange or queue of the hub, by the URL of its endpoint."""

    def __init__(self, hub: Hub, letter: str, key: str = "news.eu") -> None:
        self._http = hub.http
        endpoint = f"{hub.server.http_url}/endpoint/{letter}/{uuid.uuid4().hex}"
        kind = {"amqp.exchange_type": "topic"} if letter == "x" else {}
        answer = self._http.put(endpoint, params=kind)
        assert answer.status_code == 201, answer.text
        self.url = f"{endpoint}?hub.topic={key}" if letter == "x" else endpoint

    def publish(self, body: bytes, content_type: str = PLAIN) -> None:
        headers = {"Content-Type": content_type}
        answer = self._http.post(self.url, content=body, headers=headers)
        assert answer.is_success, answer.text


class OthersTopic:
    """A document of another site, which pings the hub after changes."""

    def __init__(self, hub: Hub, publisher: Callback) -> None:
        self._hub = hub
        self.publisher = publisher
        self.url = publisher.url.replace("/callback", f"/topic/{uuid.uuid4().hex}")
        self.itself = self.url
        self.show(b"before", PLAIN)

    def show(self, body: bytes, content_type: str = PLAIN, status: int = 200) -> None:
        """Sets the content that is fetched from now on."""
        self.body = body
        links = f'<{self._hub.url}>; rel="hub", <{self.itself}>; rel="self"'
        headers = {"Content-Type": content_type, "Link": links}
        self.publisher.default = Answer(status, headers, body)

    def publish(self, body: bytes, content_type: str = PLAIN) -> None:
        self.show(body, content_type)
        answer = self._hub.post({"hub.mode": "publish", "hub.url": self.url})
        assert answer.is_success, answer.text


class Hub:
    """`/hub` of a server. Fields are given without `hub.`."""

    def __init__(self, server: WarrenServer) -> None:
        self.server = server
        self.url = f"{server.http_url}/hub"
        self.http = httpx.Client(auth=AUTH, timeout=TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def post(self, fields: dict[str, str] | bytes, **headers: str) -> httpx.Response:
        given: dict[str, Any] = (
            {"content": fields} if isinstance(fields, bytes) else {"data": fields}
        )
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(self.url, headers=names, **given)

    def ask(self, mode: str, callback: str, topic: str, **fields: str) -> httpx.Response:
        given = {"mode": mode, "callback": callback, "topic": topic} | fields
        return self.post({f"hub.{name}": value for name, value in given.items()})

    def accepted(self, mode: str, callback: str, topic: str, **fields: str) -> None:
        answer = self.ask(mode, callback, topic, **fields)
        assert answer.status_code == 202, answer.text

    def subscribe(
        self, callback: Callback, topic: Topic, suffix: str = "", **fields: str
    ) -> Request:
        """Subscribes; returns the verification. `suffix` ends the callback's URL.

        What is there already comes too of topics of others, and is not what tests look for.
        """
        if isinstance(topic, OthersTopic):
            callback.ignored.add(topic.body)
        url, before = callback.url + suffix, len(callback.verifications)
        expiry = self._expiry(url, topic.url)
        self.accepted("subscribe", url, topic.url, **fields)
        question = callback.wait_verifications(before + 1)[before]
        wait_until(
            lambda: self._expiry(url, topic.url) not in (None, expiry),
            TIMEOUT_S,
            "an active subscription",
        )
        return question

    def unsubscribe(self, callback: Callback, topic: Topic, **fields: str) -> Request:
        """Unsubscribes; returns the verification."""
        before = len(callback.verifications)
        self.accepted("unsubscribe", callback.url, topic.url, **fields)
        question = callback.wait_verifications(before + 1)[before]
        self.gone(callback, topic)
        return question

    def refused(self, mode: str, callback: Callback, topic: Topic, **fields: str) -> None:
        """Requests a subscription that is not confirmed, and waits until the hub has handled
        that."""
        before, callback.refusal = len(callback.verifications), Answer(404)
        self.accepted(mode, callback.url, topic.url, **fields)
        callback.wait_verifications(before + 1)
        callback.refusal = None
        self.taken_in(topic)

    def taken_in(self, topic: Topic) -> None:
        """Waits until earlier answers have taken effect: another subscriber subscribes and
        unsubscribes."""
        with Callback() as other:
            self.subscribe(other, topic)
            self.unsubscribe(other, topic)

    def gone(self, callback: Callback, topic: Topic) -> None:
        wait_until(
            lambda: self.listed(callback.url, topic.url) is None,
            TIMEOUT_S,
            "the end of a subscription",
        )

    def listed(self, callback: str, topic: str) -> dict[str, Any] | None:
        """Returns the active subscription as administrators see it."""
        answer = self.http.get(
            f"{self.server.http_url}/subscriptions",
            params={"callback": callback, "topic": topic, "status": "active"},
        )
        assert answer.status_code == 200, answer.text
        found = answer.json()["subscriptions"]
        assert len(found) < 2, found
        return dict(found[0]) if found else None

    def _expiry(self, callback: str, topic: str) -> int | None:
        found = self.listed(callback, topic)
        return None if found is None else int(found["lease_expiry_time_microsec"])


@contextmanager
def others_topic(hub: Hub) -> Iterator[OthersTopic]:
    with Callback() as publisher:
        yield OthersTopic(hub, publisher)
