"""This hub as a subscriber at others: websub.rocks' subscriber tests by number, WebSub 4 and 8.

The other hub is a small one of our own; the subscriber is a real server.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.http import Answer
from tests.support.other_hub import CHALLENGE, Asked, OtherHub, json_feed
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.times import seconds
from warrenmq.hub.delivery.signature import METHODS, sign

from .queues import Message, Queues

AUTH = ("guest", "guest")
QUEUE = "got"
_names = (f"u{number}" for number in itertools.count(1))


@pytest.fixture(scope="module")
def warren() -> Iterator[WarrenServer]:
    with WarrenServer(dev=True) as server:
        yield server
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture(scope="module")
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url, auth=AUTH, timeout=20) as client:
        assert client.put(f"/endpoint/q/{QUEUE}").status_code == 201
        yield client


@pytest.fixture
def other() -> Iterator[OtherHub]:
    with OtherHub() as hub:
        yield hub


class Follower:
    """An upstream, removed at the end of its test."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http
        self.name = next(_names)

    def put(self, url: str, **more: Any) -> None:
        body = {"url": url, "sink": {"type": "q", "name": QUEUE}, **more}
        response = self.http.put(self.path, json=body)
        assert response.status_code in (201, 204), response.text

    @property
    def path(self) -> str:
        return f"/api/hub/upstreams/%2F/{self.name}"

    def get(self) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(self.path).json()
        return found

    def wait(self, status: str) -> dict[str, Any]:
        wait_until(lambda: self.get()["status"] == status, 20.0, f"status {status}: {self.get()}")
        return self.get()


@pytest.fixture
def follower(http: httpx.Client, other: OtherHub) -> Iterator[Follower]:
    follower = Follower(http)
    yield follower
    is_known = http.get(follower.path).status_code == 200 and follower.get()["status"] == "active"
    http.delete(follower.path)
    if is_known:
        other.wait(1, "unsubscribe")


def take(warren: WarrenServer) -> list[Message]:
    """Takes what is in the queue."""
    return Queues(warren.amqp_url).take(QUEUE)


def post(asked: Asked, body: bytes = b"x", **headers: str) -> httpx.Response:
    """Delivers signed content to the callback of a subscription."""
    signature = {"X-Hub-Signature": sign("sha256", asked.form["hub.secret"], body)}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(asked.callback, content=body, headers=signature | named)


@pytest.fixture
def asked(other: OtherHub, follower: Follower, warren: WarrenServer) -> Asked:
    """The request of an active subscription, with an empty queue."""
    follower.put(other.page("/topic", other.links()))
    [asked] = other.wait(1)
    follower.wait("active")
    take(warren)
    return asked


class TestDiscovery:
    """websub.rocks 100 to 104, 200 to 202; WebSub 4."""

    def test_100_link_fields(self, asked: Asked, other: OtherHub, follower: Follower) -> None:
        assert asked.answer == (200, "text/plain", CHALLENGE)
        expected = {"mode": "subscribe", "topic": other.url + "/topic", "lease_seconds": "864000"}
        assert {name: asked.form[f"hub.{name}"] for name in expected} == expected
        assert len(asked.form["hub.secret"]) >= 32
        assert len(urlsplit(asked.callback).path.rpartition("/")[2]) >= 43  # 256 bits
        found = follower.get()
        assert (found["hub_url"], found["self"]) == (other.url + "/hub", other.url + "/topic")
        assert found["reason"] == ""

    @pytest.mark.parametrize(
        ("number", "kind", "body"),
        [
            (101, "text/html; charset=utf-8",
             '<html><head><link rel="hub" href="{hub}">'
             '<link rel="self" href="{self}"></head></html>'),
            (102, "application/atom+xml",
             '<feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="{hub}"/>'
             '<link rel="self" href="{self}"/></feed>'),
            (103, "application/rss+xml",
             '<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>'
             '<atom:link rel="hub" href="{hub}"/><atom:link rel="self" href="{self}"/>'
             "</channel></rss>"),
            (0, "application/feed+json", ""),
        ],
    )  # fmt: skip
    def test_101_to_103_documents(
        self, other: OtherHub, follower: Follower, number: int, kind: str, body: str
    ) -> None:
        hub, topic = other.url + "/hub", other.url + "/self"
        text = body.format(hub=hub, self=topic) if number else json_feed(hub, topic)
        follower.put(other.page("/topic", {"Content-Type": kind}, body=text))
        [asked] = other.wait(1)
        assert (asked.path, asked.form["hub.topic"]) == ("/hub", topic)
        follower.wait("active")

    def test_104_link_fields_go_before_the_document(
        self, other: OtherHub, follower: Follower
    ) -> None:
        body = '<html><head><link rel="hub" href="/no"><link rel="self" href="/no"></head></html>'
        follower.put(
            other.page("/topic", {"Content-Type": "text/html", **other.links()}, body=body)
        )
        [asked] = other.wait(1)
        assert (asked.path, asked.form["hub.topic"]) == ("/hub", other.url + "/topic")

    @pytest.mark.parametrize(
        ("number", "status", "headers"),
        [(200, 200, {}), (201, 302, {"Location": "/new"}), (202, 301, {"Location": "/new"})],
    )
    def test_200_to_202_another_self_or_a_topic_that_has_moved(
        self,
        other: OtherHub,
        follower: Follower,
        number: int,
        status: int,
        headers: dict[str, str],
    ) -> None:
        other.page("/new", other.links(topic="/new"))
        links = {} if headers else other.links(topic="/new")
        follower.put(other.page("/old", headers | links, status=status))
        [asked] = other.wait(1)
        assert asked.form["hub.topic"] == other.url + "/new"
        assert follower.wait("active")["self"] == other.url + "/new"

    def test_https_is_preferred(self, other: OtherHub, follower: Follower) -> None:
        links = f'<{other.url}/hub>; rel="hub", <https://127.0.0.1:1/hub>; rel="hub"'
        follower.put(other.page("/topic", {"Link": links}))
        assert "https://127.0.0.1:1/hub" in str(follower.wait("failed"))
        assert other.asked == []

    def test_a_configured_hub(self, other: OtherHub, follower: Follower) -> None:
        """For topics that name no hub."""
        follower.put(other.url + "/silent", hub=other.url + "/byhand")
        [asked] = other.wait(1)
        assert (asked.path, asked.form["hub.topic"]) == ("/byhand", other.url + "/silent")
        assert other.fetched == []

    def test_a_topic_without_a_hub(self, other: OtherHub, follower: Follower) -> None:
        follower.put(other.page("/topic"))
        assert "names no hub" in follower.wait("failed")["reason"]
        follower.put(other.url + "/missing")
        wait_until(lambda: "answered 404" in follower.get()["reason"], 20.0, "another reason")


class TestSubscribing:
    """websub.rocks 203 to 205; WebSub 5.1 and 5.3."""

    @pytest.mark.parametrize(("number", "status"), [(203, 307), (204, 308)])
    def test_203_204_a_hub_that_has_moved(
        self, other: OtherHub, follower: Follower, number: int, status: int
    ) -> None:
        other.moved["/hub"] = Answer(status, {"Location": "/elsewhere"})
        follower.put(other.page("/topic", other.links()))
        [asked] = other.wait(1)
        assert asked.path == "/elsewhere"
        assert asked.form["hub.mode"] == "subscribe"
        follower.wait("active")

    @pytest.mark.parametrize(
        ("status", "location", "reason"),
        [
            (301, "/elsewhere", "answered 301"),
            (302, "/elsewhere", "answered 302"),
            (303, "/elsewhere", "answered 303"),
            (307, "/hub", "too many hub redirects"),
        ],
    )
    def test_other_redirects_are_refusals(
        self, other: OtherHub, follower: Follower, status: int, location: str, reason: str
    ) -> None:
        other.moved["/hub"] = Answer(status, {"Location": location})
        follower.put(other.page("/topic", other.links()))
        assert reason in follower.wait("failed")["reason"]

    @pytest.mark.parametrize(
        "change",
        [
            {"hub.topic": "http://other.example/"},
            {"hub.mode": "unsubscribe"},
            {"hub.mode": "publish"},
            {"hub.mode": ""},
            {"hub.topic": ""},
        ],
    )
    def test_205_unrequested_intents_are_answered_with_404(
        self, other: OtherHub, follower: Follower, change: dict[str, str]
    ) -> None:
        other.question = lambda given: {**given, **change}
        follower.put(other.page("/topic", other.links()))
        [asked] = other.wait(1)
        assert asked.answer is not None and asked.answer[0] == 404
        assert follower.get()["status"] == "pending"
        assert CHALLENGE not in asked.answer[2]

    def test_a_question_is_answered_once(self, asked: Asked) -> None:
        question = {name: asked.form[name] for name in ("hub.mode", "hub.topic")}
        for changed in ({}, {"hub.mode": "unsubscribe"}):
            again = {**question, **changed, "hub.challenge": "c", "hub.lease_seconds": "5"}
            assert httpx.get(asked.callback, params=again).status_code == 404
        assert httpx.get(asked.callback + "x", params=question).status_code == 404
        assert httpx.get(asked.callback).status_code == 404
        assert httpx.put(asked.callback).status_code == 405

    def test_a_refusal_shows_its_reason(self, other: OtherHub, follower: Follower) -> None:
        other.refusal = Answer(403, {}, b"no\r\nroom\xff for you" + b"x" * 10_000)
        follower.put(other.page("/topic", other.links()), secret="s3cr3t-of-mine")
        found = follower.wait("failed")
        assert "answered 403: no room for you" in found["reason"]
        assert len(found["reason"]) < 500
        assert "s3cr3t-of-mine" not in follower.http.get("/api/hub/upstreams").text

    def test_denial_ends_the_subscription(
        self, asked: Asked, other: OtherHub, follower: Follower
    ) -> None:
        """At any time (WebSub 5.2); only its owner can request it again."""
        denial = {"hub.mode": "denied", "hub.topic": other.url + "/else", "hub.reason": "no room"}
        assert httpx.get(asked.callback, params=denial).status_code == 404
        denial["hub.topic"] = asked.form["hub.topic"]
        assert httpx.get(asked.callback, params=denial).status_code == 204
        assert "no room" in follower.wait("denied")["reason"]
        assert post(asked).status_code == 410
        follower.put(other.url + "/topic")
        assert other.wait(2)[1].callback != asked.callback
        follower.wait("active")

    def test_requested_lease_applies_if_none_is_granted(
        self, other: OtherHub, follower: Follower
    ) -> None:
        """PubSubHubbub 0.3 has permanent subscriptions; here none is."""
        other.lease_seconds = None
        follower.put(other.page("/topic", other.links()), lease_seconds=5_000)
        other.wait(1)
        found = follower.wait("active")
        assert 0 < seconds(found["expires_at"]) - seconds(found["renew_at"]) < 5_000 * 0.31

    def test_ending_is_verified_too(
        self, asked: Asked, other: OtherHub, follower: Follower
    ) -> None:
        assert follower.http.delete(follower.path).status_code == 204
        [ended] = other.wait(1, "unsubscribe")
        assert ended.answer == (200, "text/plain", CHALLENGE)
        assert (ended.callback, ended.form["hub.topic"]) == (asked.callback, other.url + "/topic")
        assert "hub.secret" not in ended.form
        assert follower.http.get(follower.path).status_code == 404
        assert post(asked).status_code == 410


class TestContent:
    """websub.rocks 300 to 302; WebSub 7 and 8."""

    def test_300_content_is_stored_before_the_2xx(self, asked: Asked, warren: WarrenServer) -> None:
        body = bytes(range(256))
        response = post(
            asked, body, Content_Type="application/atom+xml; charset=utf-8", webhook_id="msg_300",
            X_AMQP_Routing_Key="eu.fr%C3%BC", X_Amqp_Priority="9", X_Hub_Hops="0",
        )  # fmt: skip
        assert (response.status_code, response.content) == (202, b"")
        [found] = take(warren)
        properties = found.properties
        assert found.body == body
        assert properties.content_type == "application/atom+xml; charset=utf-8"
        assert (properties.delivery_mode, properties.message_id) == (2, "msg_300")
        assert (properties.headers, properties.priority) == ({"x-hub-hops": 1}, None)

    @pytest.mark.parametrize("method", METHODS)
    def test_300_signed_in_any_of_the_four_ways(
        self, asked: Asked, warren: WarrenServer, method: str
    ) -> None:
        headers = {"X-Hub-Signature": sign(method, asked.form["hub.secret"], b"x")}
        assert httpx.post(asked.callback, content=b"x", headers=headers).status_code == 202
        assert len(take(warren)) == 1

    @pytest.mark.parametrize(
        "signature", ["sha256=" + "0" * 64, sign("sha256", "another", b"x"), "md5=abc", "", None]
    )
    def test_301_302_a_wrong_or_missing_signature_is_not_processed(
        self, asked: Asked, warren: WarrenServer, follower: Follower, signature: str | None
    ) -> None:
        headers = {} if signature is None else {"X-Hub-Signature": signature}
        response = httpx.post(asked.callback, content=b"x", headers=headers)
        assert response.status_code == 403
        assert response.headers["content-type"] == "application/problem+json"
        assert take(warren) == []
        assert follower.get()["status"] == "active"

    def test_without_a_secret(
        self, other: OtherHub, follower: Follower, warren: WarrenServer
    ) -> None:
        follower.put(other.page("/topic", other.links()), secret=False)
        [asked] = other.wait(1)
        assert "hub.secret" not in asked.form
        follower.wait("active")
        assert httpx.post(asked.callback, content=b"x").status_code == 202
        assert len(take(warren)) == 1

    def test_links_do_not_identify_a_subscription(self, asked: Asked, other: OtherHub) -> None:
        """WebSub 8.1."""
        unknown = asked.callback.rpartition("/")[0] + "/unknown"
        headers = {**other.links(), "X-Hub-Signature": sign("sha1", asked.form["hub.secret"], b"x")}
        assert httpx.post(unknown, content=b"x", headers=headers).status_code == 410

    def test_a_repeated_message_is_published_once(self, asked: Asked, warren: WarrenServer) -> None:
        """A hub that missed the answer repeats a message with the same id."""
        for body, webhook_id in ((b"x", "a"), (b"x", "a"), (b"y", "a"), (b"x", "b")):
            assert post(asked, body, webhook_id=webhook_id).status_code == 202
        assert [message.body for message in take(warren)] == [b"x", b"y", b"x"]


def test_a_renewal_due_while_the_hub_is_down(other: OtherHub) -> None:
    """After kill -9 the hub is asked when it can ask back, and content is taken at once."""
    other.lease_seconds = 4
    with ExitStack() as opened:
        server = opened.enter_context(WarrenServer(dev=True))
        http = opened.enter_context(httpx.Client(base_url=server.http_url, auth=AUTH, timeout=20))
        assert http.put(f"/endpoint/q/{QUEUE}").status_code == 201
        follower = Follower(http)
        follower.put(other.page("/topic", other.links()))
        [first] = other.wait(1)
        due = seconds(follower.wait("active")["renew_at"])
        server.kill()
        other.lease_seconds = 1_000
        wait_until(lambda: time.time() > due, 20.0, "the time to renew")
        assert len(other.asked) == 1
        server.restart()
        second = other.wait(2)[1]
        assert second.answer == (200, "text/plain", CHALLENGE)
        assert second.callback != first.callback
        taken = post(second)
        assert taken.status_code == 202, taken.text
        assert len(take(server)) == 1
        assert seconds(follower.get()["expires_at"]) > time.time() + 500
