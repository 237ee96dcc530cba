"""The promises of the hub beyond its interfaces, by the numbers of http_peers.md 2 and
reliability.md: attempts, jitter, breaker, order, ids, dead letters, retention, kill -9.

Retry-After and 410 are in test_http_contract.py, loops in test_four_pairs.py.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any
from urllib.parse import quote, unquote

import httpx
import pika
import pytest

from tests.app.support import problem
from tests.support.http import Answer, Callback, Request
from tests.support.ports import accepts
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.times import seconds

from .webhooks import WAIT_S, Site, SteppedCallback, form, story, telling

pytestmark = pytest.mark.differs("RabbitMQ pushes to nobody")

FORMATS = ("plain", "cloudevents-binary", "cloudevents-structured")
BREAKER_AFTER = 10
COOL_DOWN_S = 10
FAILING = 30
"""Subscriptions whose first delivery fails at the same time."""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """With the default settings."""
    with WarrenServer(dev=True) as server, Site(server) as site:
        yield site
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture(scope="module")
def hasty() -> Iterator[Site]:
    """With one attempt for each message, and a timeout of a second."""
    args = ["--max-attempts", "1", "--delivery-timeout-s", "1"]
    with WarrenServer(dev=True, args=args) as server, Site(server) as site:
        yield site
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture(scope="module", autouse=True)
def told(site: Site, request: pytest.FixtureRequest) -> Iterator[dict[str, Future[None]]]:
    with telling(site, request) as told:
        yield told


class LongStories:
    """Deliveries that take some seconds: begun before the other tests, and checked after them."""

    def __init__(self, site: Site, stack: ExitStack) -> None:
        self.broken = stack.enter_context(Callback())
        self.broken.default = Answer(500)
        queue = site.queue()
        site.subscribe(queue, self.broken)
        for number in range(BREAKER_AFTER + 5):
            site.publish(queue, b"%d" % number)
        self.together = stack.enter_context(Callback())
        self.together.script(*FAILING * [503])
        exchange = site.exchange()
        self.urls = [f"{self.together.url}/{number}" for number in range(FAILING)]
        for url in self.urls:
            site.subscribe(exchange, url)
        site.publish(exchange)


@pytest.fixture(scope="module", autouse=True)
def long_stories(site: Site) -> Iterator[LongStories]:
    with ExitStack() as stack:
        yield LongStories(site, stack)


def own_topic(site: Site, source: str, key: str = "") -> str:
    """The topic URL of an exchange or queue."""
    query = f"?hub.topic={quote(key, safe='')}" if source.startswith("x") else ""
    return f"{site.server.http_url}/endpoint/{source}{query}"


# -- http_peers.md 2


@story
def test_peers_06_strict_order_shows_what_blocks(site: Site) -> None:
    queue = site.queue()
    with Callback() as target:
        target.script(Answer(500, body=b"no room"))
        site.subscribe(queue, target, order="strict")
        for body in (b"1", b"2", b"3"):
            site.publish(queue, body)
        wait_until(lambda: bool(site.listed(target)[0]["blocked"]), WAIT_S, "what blocks")
        (found,) = site.listed(target)
        assert found["blocked"]["webhook_id"] == target.deliveries[0].headers["webhook-id"]
        assert found["blocked"]["failures"] == 1
        assert "500" in found["blocked"]["reason"]
        assert [one.body for one in target.wait(4)] == [b"1", b"1", b"2", b"3"]
        wait_until(lambda: not site.listed(target)[0]["blocked"], WAIT_S, "the end of it")


@pytest.mark.parametrize("kind", ["x", "q"])
@story
def test_peers_08_a_source_that_is_declared_again(
    site: Site, callback: Callback, kind: str
) -> None:
    source = site.exchange() if kind == "x" else site.queue()
    site.subscribe(source, callback)
    site.publish(source, b"before")
    callback.wait(1)
    assert site.http.delete(f"/endpoint/{source}").status_code == 204
    query = {"amqp.exchange_type": "topic"} if kind == "x" else {}
    assert site.http.put(f"/endpoint/{source}", params=query).status_code == 201

    def is_served() -> bool:
        site.publish(source, b"after")
        return callback.deliveries[-1].body == b"after"

    wait_until(is_served, WAIT_S, "a delivery from the new one")


@story
def test_peers_09_a_long_request_is_not_repeated() -> None:
    args = ["--consumer-timeout", "100"]
    with (
        WarrenServer(dev=True, args=args) as server,
        Site(server) as site,
        SteppedCallback() as target,
    ):
        queue, other = site.queue(), site.queue()
        site.subscribe(queue, target)
        site.publish(queue)
        site.publish(other)
        target.wait(1)
        with site.amqp() as channel:
            channel.basic_consume(other[2:], lambda *_: None)

            def is_timed_out() -> bool:
                try:
                    channel.connection.process_data_events(0.05)
                except pika.exceptions.ChannelClosedByBroker:
                    return True
                return bool(channel.is_closed)

            wait_until(is_timed_out, WAIT_S, "the end of a consumer that does not acknowledge")
        target.let()
        attempts = site.attempts(target, 1)
        assert [one["outcome"] for one in attempts] == ["delivered"]
        site.publish(queue, b"next")
        target.let()
        assert [one.body for one in target.wait(2)] == [b"1", b"next"]


@story
def test_peers_10_retention_is_bounded() -> None:
    """By number."""
    args = ["--max-attempt-rows", "5"]
    with WarrenServer(dev=True, args=args) as server, Site(server) as site, Callback() as target:
        queue = site.queue()
        site.subscribe(queue, target, in_flight="10")
        for number in range(20):
            site.publish(queue, b"%d" % number)
        target.wait(20)
        server.restart()  # which begins with cleaning up
        path = "/api/hub/attempts"
        wait_until(lambda: len(site.get(path)["attempts"]) == 5, WAIT_S, "five attempts")
        kept = {one["webhook_id"] for one in site.get(path)["attempts"]}
        assert kept <= {one.headers["webhook-id"] for one in target.deliveries}


@pytest.mark.parametrize("kind", ["x", "q"])
@pytest.mark.parametrize("order", ["strict", "loose"])
def test_peers_19_order_within_a_moment(
    site: Site, callback: Callback, kind: str, order: str
) -> None:
    """Of messages that are published in the same second."""
    source = site.exchange() if kind == "x" else site.queue()
    site.subscribe(source, callback, order=order)
    exchange, key = (source[2:], "a") if kind == "x" else ("", source[2:])
    bodies = [b"%d" % number for number in range(200)]
    with site.amqp() as channel:
        for body in bodies:
            channel.basic_publish(exchange, key, body)
    assert [one.body for one in callback.wait(200)] == bodies


# -- http_peers.md 5


@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512"])
@pytest.mark.parametrize("format_", FORMATS)
def test_peers_5_6_one_request_for_all_standards(
    site: Site, callback: Callback, method: str, format_: str
) -> None:
    queue = site.queue()
    site.subscribe(queue, callback, secret="s3cret", signature_method=method, format=format_)
    answer = site.http.post(
        f"/endpoint/{queue}", content=b'{"a":1}', headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 202
    (delivery,) = callback.wait(1)
    headers, body = delivery.headers, delivery.body
    assert headers["X-Hub-Signature"] == f"{method}={hmac.new(b's3cret', body, method).hexdigest()}"
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(b"s3cret", signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
    if format_ == "plain":
        assert body == b'{"a":1}'
        return
    if format_ == "cloudevents-binary":
        event = {name: headers[f"ce-{name}"] for name in ("id", "source", "type", "specversion")}
        assert body == b'{"a":1}'
    else:
        assert headers["Content-Type"].startswith("application/cloudevents+json")
        event = json.loads(body)
        assert event["data"] == {"a": 1}
    assert event["specversion"] == "1.0"
    assert event["id"]
    assert event["type"]
    assert event["source"]


def test_the_time_of_an_event_is_its_arrival(site: Site, callback: Callback) -> None:
    callback.script(503)
    queue = site.queue()
    site.subscribe(queue, callback, format="cloudevents-binary")
    began = time.time()
    site.publish(queue)
    first, again = callback.wait(2)
    assert first.headers["ce-time"] == again.headers["ce-time"]
    assert began - 1 <= seconds(again.headers["ce-time"]) <= time.time()


@pytest.mark.parametrize("format_", FORMATS)
def test_an_event_keeps_its_attributes(site: Site, callback: Callback, format_: str) -> None:
    """In binary mode (HTTP binding 3.1); the second message uses cached parts of the first."""
    queue = site.queue()
    site.subscribe(queue, callback, format=format_, order="strict")
    event = {"specversion": "1.0", "source": "/shop", "type": "sold", "subject": "Euro \u20ac"}
    headers = {f"ce-{name}": quote(value, safe="/") for name, value in event.items()}
    for number in ("1", "2"):
        answer = site.http.post(
            f"/endpoint/{queue}",
            content=b'{"a":1}',
            headers={"Content-Type": "application/json", "ce-id": number, **headers},
        )
        assert answer.status_code == 202
    for number, delivery in zip(("1", "2"), callback.wait(2), strict=True):
        if format_ == "cloudevents-structured":
            found = json.loads(delivery.body)
            assert found.pop("data") == {"a": 1}
            assert found.pop("datacontenttype") == "application/json"
        else:
            assert delivery.body == b'{"a":1}'
            given = {name.lower(): value for name, value in delivery.headers.items()}
            found = {name[3:]: unquote(given[name]) for name in given if name.startswith("ce-")}
        assert found == {**event, "id": number}


# -- tries, timeouts, isolation


def test_slow_targets_delay_no_other(site: Site) -> None:
    """Neither targets of the same source nor targets on the same host."""
    exchange = site.exchange()
    with ExitStack() as stack:
        slow = [stack.enter_context(SteppedCallback()) for _ in range(10)]
        quick = stack.enter_context(Callback())
        for target in (*slow, quick):
            site.subscribe(exchange, target)
        beside = slow[0].url.replace("/callback", "/beside")
        site.subscribe(exchange, beside, in_flight="30")
        bodies = [b"%d" % number for number in range(20)]
        for body in bodies:
            site.publish(exchange, body)
        assert [one.body for one in quick.wait(20)] == bodies

        def beside_count() -> int:
            return sum(one.path == "/beside" for one in slow[0].deliveries)

        wait_until(lambda: beside_count() == 20, WAIT_S, "deliveries beside the slow one")
        assert [target.most for target in slow[1:]] == 9 * [1]
        for target in slow:
            target.open = True
        for target in slow[1:]:
            assert [one.body for one in target.wait(20)] == bodies


def test_a_hanging_target_times_out(hasty: Site) -> None:
    with Callback() as target:
        target.default = Answer(hang=True)
        queue = hasty.queue()
        hasty.subscribe(queue, target)
        hasty.publish(queue)
        (dead_letter,) = hasty.dead_letters(1, callback=target.url)
        assert "1 attempt," in dead_letter["reason"]
        (attempt,) = hasty.attempts(target, 1)
        assert (attempt["status"], attempt["outcome"]) == (None, "dead")
        assert attempt["latency_ms"] >= 900


@story
def test_max_tps(site: Site, callback: Callback) -> None:
    queue = site.queue()
    site.subscribe(queue, callback, max_tps="10", in_flight="20")
    for _ in range(25):
        site.publish(queue)
    times = sorted(seconds(one["at"]) for one in site.attempts(callback, 25))
    assert times[-1] - times[0] >= 1.0  # 10 at once at most, then 10 a second


POISON = [
    pika.BasicProperties(content_type="text/plain\r\nInjected: 1"),
    pika.BasicProperties(message_id="a\r\nInjected: 1", correlation_id="\0", app_id="\n"),
    pika.BasicProperties(headers={"k\r\nInjected: 1": "v\r\nInjected: 1", "n": None, "b": b"\xff"}),
    pika.BasicProperties(headers={"deep": {"a": [1, {"b": [True, None]}]}, "big": "x" * 100_000}),
    pika.BasicProperties(headers={"x-hub-id": "a.b\r\n", "x-hub-failures": -5, "x-hub-hops": "x"}),
    pika.BasicProperties(headers={"x-hub-not-before": "soon", "x-hub-exchange": 7, "x-death": "x"}),
    pika.BasicProperties(content_encoding="\r\nInjected: 1", timestamp=2**63, priority=255),
    pika.BasicProperties(expiration="100000", reply_to="\r\n", type="\xe9", user_id="guest"),
]


@story
def test_any_properties_are_delivered(site: Site) -> None:
    """Whatever an AMQP publisher writes is delivered as one request, and the next message too."""
    exchange, key = site.exchange(), "a\r\nInjected: 1\0\u2028"
    targets = []
    with ExitStack() as stack, site.amqp() as channel:
        for format_ in FORMATS:
            for source in (exchange, site.queue()):
                target = stack.enter_context(Callback())
                targets.append((format_, target))
                target.script(500)  # the first message is retried
                site.subscribe(source, target, format=format_, secret="s3cret")
                for number, properties in enumerate(POISON if source[0] == "q" else ()):
                    channel.basic_publish("", source[2:], b"%d" % number, properties)
        for number, properties in enumerate(POISON):
            channel.basic_publish(exchange[2:], key, b"%d" % number, properties)
        for format_, target in targets:
            found = target.wait(len(POISON) + 1)
            assert all("Injected" not in one.headers for one in found)
            assert len({one.headers["webhook-id"] for one in found}) == len(POISON)
            if format_ != "cloudevents-structured":
                assert {one.body for one in found} == {b"%d" % n for n in range(len(POISON))}


# -- what is under way when something else happens


@pytest.mark.parametrize("how", ["unsubscribe", "delete", "end of the lease"])
@pytest.mark.parametrize("status", [200, 500])
@story
def test_an_end_during_a_delivery(site: Site, how: str, status: int) -> None:
    """Accepted messages leave the queue, others return to it."""
    queue = site.queue()
    with SteppedCallback() as target:
        target.default = Answer(status)
        site.subscribe(queue, target)
        site.publish(queue, b"1")
        site.publish(queue, b"2")
        target.wait(1)
        given = form("unsubscribe", target.url, "#")
        if how == "unsubscribe":
            assert site.http.post(f"/subscribe/{queue}", data=given).status_code == 204
        elif how == "delete":
            answer = site.http.request("DELETE", f"/subscribe/{queue}", params=given)
            assert answer.status_code == 200
        else:
            path = f"/api/hub/subscriptions/{site.listed(target)[0]['id']}/renew"
            assert site.http.post(path, json={"lease_seconds": 1}).is_success
        wait_until(lambda: site.listed(target) == [], WAIT_S, "the end of the subscription")
        target.let()
        left = [b"2"] if status == 200 else [b"1", b"2"]
        wait_until(lambda: site.depth(queue) == len(left), WAIT_S, "what is left")
        assert sorted(site.taken(queue)[2] for _ in left) == left
        assert len(target.deliveries) == 1


@pytest.mark.parametrize("what", ["renewed", "paused and resumed", "from another source"])
@story
def test_strict_order_survives_changes_of_the_subscription(
    site: Site, callback: Callback, what: str
) -> None:
    """Whatever happens while its first message waits for a retry."""
    source = site.exchange() if what == "from another source" else site.queue()
    callback.script(Answer(500, {"Retry-After": "2"}))
    site.subscribe(source, callback, order="strict")
    bodies = [b"%d" % number for number in range(5)]
    for body in bodies:
        site.publish(source, body)
    wait_until(lambda: bool(site.listed(callback)[0]["blocked"]), WAIT_S, "what blocks")
    path = f"/api/hub/subscriptions/{site.listed(callback)[0]['id']}"
    if what == "renewed":
        site.subscribe(source, callback, order="strict", lease_seconds="600")
    elif what == "paused and resumed":
        assert site.http.post(f"{path}/pause").is_success
        assert site.http.post(f"{path}/resume").is_success
    first, *rest = callback.wait(6)
    assert [one.body for one in rest] == bodies
    assert first.headers["webhook-id"] == rest[0].headers["webhook-id"]


@pytest.mark.parametrize(
    ("asked", "least_s", "most_s"),
    [("999999999999", 80_000, 86_401), ("-5", 0, 6), ("soon", 0, 6), ("0", 0, 6),
     ("Thu, 01 Jan 1970 00:00:00 GMT", 0, 6), ("Fri, 31 Dec 9999 23:59:59 GMT", 80_000, 86_401)],
)  # fmt: skip
def test_retry_after_has_bounds(
    site: Site, callback: Callback, asked: str, least_s: int, most_s: int
) -> None:
    """A day at most; invalid values are ignored."""
    queue = site.queue()
    callback.default = Answer(503, {"Retry-After": asked})
    site.subscribe(queue, callback, order="strict")
    site.publish(queue)
    wait_until(lambda: bool(site.listed(callback)[0]["blocked"]), WAIT_S, "what blocks")
    (found,) = site.listed(callback)
    failed_at = found["errors"]["last_error_time_microsec"] / 1_000_000
    wait_s = seconds(found["blocked"]["next_attempt_at"]) - failed_at
    assert least_s <= wait_s <= most_s
    site.http.delete(f"/api/hub/subscriptions/{found['id']}")


@story
def test_a_stop_waits_for_deliveries() -> None:
    """The delivery in flight is neither lost nor repeated."""
    with WarrenServer(dev=True) as server, Site(server) as site, SteppedCallback() as target:
        queue = site.queue()
        site.subscribe(queue, target)
        for body in (b"1", b"2"):
            site.publish(queue, body)
        target.wait(1)
        server.process.terminate()
        wait_until(lambda: is_refused(server), WAIT_S, "the beginning of the stop")
        target.let()
        assert server.process.wait(WAIT_S) == 0
        target.open = True
        server.restart()
        assert [one.body for one in target.wait(2)] == [b"1", b"2"]
        attempts = site.attempts(target, 2)
        assert [one["outcome"] for one in attempts] == ["delivered", "delivered"]
        assert "Traceback" not in server.output()


def is_refused(server: WarrenServer) -> bool:
    """Whether it refuses connections."""
    return not accepts(server.http_port)


# -- queues that are more than plain


@pytest.mark.parametrize("order", ["strict", "loose"])
@story
def test_auto_delete_queue_is_kept_while_subscribed(
    site: Site, callback: Callback, order: str
) -> None:
    """The hub cancels its consumer for a failure or a pause, which must not delete the queue."""
    queue = site.queue(auto_delete="true")
    callback.script(500)
    site.subscribe(queue, callback, order=order)
    path = f"/api/hub/subscriptions/{site.listed(callback)[0]['id']}"
    site.publish(queue, b"1")
    callback.wait(1)
    assert site.http.post(f"{path}/pause").is_success
    site.publish(queue, b"2")
    assert site.http.post(f"{path}/resume").is_success
    assert sorted(one.body for one in callback.wait(3)) == [b"1", b"1", b"2"]
    assert site.http.delete(path).is_success
    problem_or_error(site.http.get(f"/endpoint/{queue}"), 404)
    wait_until(lambda: bool(callback.denials), WAIT_S, "word of the end")


@story
def test_a_retry_returns_to_a_full_queue(site: Site) -> None:
    """A queue that refuses publishes accepts the messages that return to it."""
    queue = site.queue(**{"arg.x-max-length": "1", "arg.x-overflow": "reject-publish"})
    with SteppedCallback() as target:
        target.script(500)
        site.subscribe(queue, target)
        site.publish(queue, b"1")
        target.wait(1)
        site.publish(queue, b"2")
        target.let()
        target.wait(2)  # the first one waits for a retry, the second is in flight
        site.publish(queue, b"3")
        problem(site.http.post(f"/endpoint/{queue}", content=b"4"), 503)
        wait_until(lambda: site.depth(queue) == 2, WAIT_S, "the first one again")
        target.open = True
        assert sorted(one.body for one in target.wait(4)) == [b"1", b"1", b"2", b"3"]


@story
def test_retry_is_not_dropped_as_a_duplicate(site: Site, callback: Callback) -> None:
    """For a queue that drops duplicates."""
    queue = site.queue(**{"arg.x-message-deduplication": "true"})
    callback.script(500)
    site.subscribe(queue, callback)
    for _ in range(2):
        headers = {"X-Amqp-Header-x-deduplication-header": "same"}
        assert site.http.post(f"/endpoint/{queue}", headers=headers).status_code == 202
    (first, again) = site.attempts(callback, 2)
    assert (first["webhook_id"], again["outcome"]) == (again["webhook_id"], "delivered")


def test_replay_is_not_dropped_as_a_duplicate(hasty: Site, callback: Callback) -> None:
    """For a queue that drops duplicates."""
    queue = hasty.queue(
        **{"arg.x-message-deduplication": "true", "arg.x-deduplication-header": "own"}
    )
    callback.script(500)
    hasty.subscribe(queue, callback, order="strict")
    answer = hasty.http.post(f"/endpoint/{queue}", headers={"X-Amqp-Header-own": "same"})
    assert answer.status_code == 202
    (dead_letter,) = hasty.dead_letters(1, callback=callback.url)
    assert hasty.http.post(f"/api/hub/dead-letters/%2F/{dead_letter['id']}/replay").is_success
    assert callback.wait(2)[1].headers["webhook-id"] == dead_letter["webhook_id"]


def test_queues_that_can_not_be_subscribed(site: Site, callback: Callback) -> None:
    """Streams, and exclusive queues of another connection, are refused."""
    stream = site.queue(**{"arg.x-queue-type": "stream"})
    answer = site.http.post(f"/subscribe/{stream}", data=form("subscribe", callback.url, "#"))
    assert "stream" in problem(answer, 400)
    with site.amqp() as channel:
        name = site.name()
        channel.queue_declare(name, exclusive=True)
        given = form("subscribe", callback.url, "#")
        problem(site.http.post(f"/subscribe/q/{name}", data=given), 409)
    assert callback.requests == []


# -- whose subscriptions, and until when


@contextmanager
def account(site: Site, tags: str = "", vhost: str = "/") -> Iterator[tuple[str, httpx.Client]]:
    """A user with all permissions in a virtual host."""
    name = site.name()
    site.http.put(f"/api/users/{name}", json={"password": name, "tags": tags})
    rights = {"configure": ".*", "write": ".*", "read": ".*"}
    path = f"/api/permissions/{quote(vhost, safe='')}/{name}"
    assert site.http.put(path, json=rights).is_success
    with httpx.Client(base_url=site.server.http_url, auth=(name, name), timeout=WAIT_S) as http:
        yield name, http


@pytest.mark.parametrize("how", ["rights", "user"])
@pytest.mark.parametrize("kind", ["x", "q"])
def test_a_lost_permission_ends_deliveries(
    site: Site, callback: Callback, kind: str, how: str
) -> None:
    source = site.exchange() if kind == "x" else site.queue()
    with account(site) as (name, owner):
        asked = form("subscribe", callback.url, "#")
        assert owner.post(f"/subscribe/{source}", data=asked).status_code == 204
        path = f"/api/permissions/%2F/{name}" if how == "rights" else f"/api/users/{name}"
        assert site.http.delete(path).is_success
    wait_until(lambda: bool(callback.denials), WAIT_S, "word of the end")
    assert callback.denials[0].query["hub.reason"]
    wait_until(lambda: site.listed(callback) == [], WAIT_S, "the end of it")
    site.publish(source)
    if kind == "q":
        assert site.depth(source) == 1
    assert callback.deliveries == []


def test_a_deleted_virtual_host_ends_its_subscriptions(site: Site, callback: Callback) -> None:
    vhost = site.name()
    for _ in range(2):  # the second one has the same names
        assert site.http.put(f"/api/vhosts/{vhost}").status_code == 201
        assert site.http.put(f"/{vhost}/endpoint/q/in").status_code == 201
        assert site.http.post(f"/{vhost}/endpoint/q/in", content=b"1").status_code == 202
        with site.amqp(vhost) as channel:
            declared = channel.queue_declare("in", passive=True, durable=True)
            assert declared.method.message_count == 1
        if callback.verifications:
            break
        asked = form("subscribe", callback.url, "#")
        assert site.http.post(f"/{vhost}/subscribe/q/in", data=asked).status_code == 204
        callback.wait(1)
        assert site.http.delete(f"/api/vhosts/{vhost}").is_success
        wait_until(lambda: bool(callback.denials), WAIT_S, "word of the end")
        wait_until(lambda: site.listed(callback) == [], WAIT_S, "the end of it")
    assert len(callback.deliveries) == 1


def test_concurrent_subscribes_are_one(site: Site, callback: Callback) -> None:
    """The same subscribe, then the same unsubscribe, from many clients."""
    exchange = site.exchange()

    def ask(mode: str) -> list[int]:
        with ThreadPoolExecutor(16) as pool:
            given = form(mode, callback.url, "#")
            path = f"/subscribe/{exchange}"
            answers = pool.map(lambda _: site.http.post(path, data=given), range(32))
            return sorted({one.status_code for one in answers})

    assert ask("subscribe") == [204]
    assert len(site.listed(callback)) == 1
    site.publish(exchange, b"1")
    site.publish(exchange, b"2")
    assert [one.body for one in callback.wait(2)] == [b"1", b"2"]
    assert set(ask("unsubscribe")) <= {204, 404}
    assert site.listed(callback) == []
    site.publish(exchange, b"3")
    site.subscribe(exchange, callback)
    site.publish(exchange, b"4")
    assert [one.body for one in callback.wait(3)] == [b"1", b"2", b"4"]


# -- dead letters


def dead(hasty: Site, target: Callback, *bodies: bytes) -> list[dict[str, Any]]:
    """Dead letters with these bodies, of a subscription of their own."""
    queue = hasty.queue()
    target.script(*len(bodies) * [500])
    hasty.subscribe(queue, target, order="strict")  # which is not paused after a dead letter
    for body in bodies:
        hasty.publish(queue, body, topic="key")
    return hasty.dead_letters(len(bodies), callback=target.url)


def test_dead_letters_have_reasons(hasty: Site, callback: Callback) -> None:
    (dead_letter,) = dead(hasty, callback, b"body")
    assert (dead_letter["vhost"], dead_letter["callback"]) == ("/", callback.url)
    assert dead_letter["routing_key"] == "key"
    assert dead_letter["attempts"] == 1
    assert "500" in dead_letter["reason"]
    assert abs(seconds(dead_letter["dead_at"]) - time.time()) < 3600
    assert dead_letter["webhook_id"] == callback.deliveries[0].headers["webhook-id"]
    whole = hasty.get(f"/api/hub/dead-letters/%2F/{dead_letter['id']}")
    assert (whole["payload"], whole["payload_encoding"]) == ("body", "string")


def test_dead_letters_are_replayed(hasty: Site, callback: Callback) -> None:
    """Each once, with the same id."""
    letters = dead(hasty, callback, b"1", b"2", b"3")
    path = f"/api/hub/dead-letters/%2F/{letters[1]['id']}/replay"
    assert hasty.http.post(path).is_success
    again = callback.wait(4)[3]
    assert (again.body, again.headers["webhook-id"]) == (b"2", letters[1]["webhook_id"])
    problem_or_error(hasty.http.post(path), 404)
    answer = hasty.http.post("/api/hub/dead-letters/replay", json={"callback": callback.url})
    assert answer.json()["replayed"] == 2
    replayed = {one.body: one.headers["webhook-id"] for one in callback.wait(6)[3:]}
    ids = [one["webhook_id"] for one in letters]
    assert replayed == dict(zip((b"1", b"2", b"3"), ids, strict=True))
    assert hasty.dead_letters(0, callback=callback.url) == []


def problem_or_error(answer: httpx.Response, status: int) -> None:
    assert answer.status_code == status, answer.text


def test_a_failed_replay_is_a_dead_letter_again(hasty: Site, callback: Callback) -> None:
    (dead_letter,) = dead(hasty, callback, b"1")
    callback.script(500)
    assert hasty.http.post(f"/api/hub/dead-letters/%2F/{dead_letter['id']}/replay").is_success
    callback.wait(2)
    (again,) = hasty.dead_letters(1, callback=callback.url)
    assert again["webhook_id"] == dead_letter["webhook_id"]
    assert again["id"] != "" and again["attempts"] >= 1


def test_dead_letters_are_deleted(hasty: Site, callback: Callback) -> None:
    letters = dead(hasty, callback, b"1", b"2")
    path = f"/api/hub/dead-letters/%2F/{letters[0]['id']}"
    assert hasty.http.delete(path).is_success
    problem_or_error(hasty.http.get(path), 404)
    problem_or_error(hasty.http.post("/api/hub/dead-letters/delete", json={}), 400)
    answer = hasty.http.post("/api/hub/dead-letters/delete", json={"callback": callback.url})
    assert answer.json()["deleted"] == 1
    assert hasty.dead_letters(0, callback=callback.url) == []
    assert len(callback.deliveries) == 2


def test_other_users_see_no_dead_letters_or_attempts(hasty: Site, callback: Callback) -> None:
    (dead_letter,) = dead(hasty, callback, b"1")
    hasty.http.put("/api/users/else", json={"password": "else", "tags": "management"})
    rights = {"configure": ".*", "write": ".*", "read": ".*"}
    hasty.http.put("/api/permissions/%2F/else", json=rights)
    (found,) = hasty.listed(callback)
    path = f"/api/hub/dead-letters/%2F/{dead_letter['id']}"
    with httpx.Client(base_url=hasty.server.http_url, auth=("else", "else")) as other:
        assert other.get("/api/hub/dead-letters").json()["dead_letters"] == []
        assert other.get("/api/hub/attempts").json()["attempts"] == []
        assert other.get(f"/api/hub/subscriptions/{found['id']}/attempts").status_code == 404
        assert other.get(path).status_code == 404
        assert other.delete(path).status_code == 404
        assert other.post(f"{path}/replay").status_code == 404
        everything = other.post("/api/hub/dead-letters/delete", json={"all": True})
        assert everything.json()["deleted"] == 0
        everything = other.post("/api/hub/dead-letters/replay", json={})
        assert everything.json()["replayed"] == 0
    assert len(hasty.dead_letters(1, callback=callback.url)) == 1


def test_a_pause_after_the_last_attempt(hasty: Site, callback: Callback) -> None:
    queue = hasty.queue()
    callback.script(500)
    hasty.subscribe(queue, callback)
    hasty.publish(queue, b"1")

    def status() -> str:
        return str(hasty.listed(callback)[0]["status"])

    wait_until(lambda: status() == "inactive", WAIT_S, "the pause")
    (found,) = hasty.listed(callback)
    assert "1 attempt," in found["paused_reason"]
    hasty.publish(queue, b"2")
    assert hasty.depth(queue) == 1
    assert hasty.http.post(f"/api/hub/subscriptions/{found['id']}/resume").is_success
    assert [one.body for one in callback.wait(2)] == [b"1", b"2"]
    assert status() == "active"
    assert len(hasty.dead_letters(1, callback=callback.url)) == 1


# -- kill -9


@story
def test_kill_9() -> None:
    """Ids, strict order, accepted requests, pauses and dead letters survive."""
    with ExitStack() as stack:
        server = stack.enter_context(WarrenServer(dev=True, args=["--max-attempts", "2"]))
        site = stack.enter_context(Site(server))
        failing, strict, pending, idle, spent = (stack.enter_context(Callback()) for _ in range(5))
        queues = [site.queue() for _ in range(5)]
        slow_down = {"Retry-After": "2"}
        failing.script(Answer(500, slow_down))
        strict.script(Answer(500, slow_down))
        spent.default = Answer(500)
        site.subscribe(queues[0], failing)
        site.subscribe(queues[1], strict, order="strict", secret="s3cret")
        site.subscribe(queues[3], idle)
        site.subscribe(queues[4], spent)
        (found,) = site.listed(idle)
        assert site.http.post(f"/api/hub/subscriptions/{found['id']}/pause").is_success
        site.publish(queues[0], b"1")
        site.publish(queues[4], b"spent")
        for body in (b"1", b"2", b"3"):
            site.publish(queues[1], body)
            site.publish(queues[3], body)
        site.attempts(failing, 1)
        site.attempts(strict, 1)
        pending.refusal = Answer(hang=True)
        answer = site.http.post(
            "/hub", data=form("subscribe", pending.url, own_topic(site, queues[2]))
        )
        assert answer.status_code == 202
        server.kill()
        assert len(failing.deliveries) == len(strict.deliveries) == 1
        pending.refusal = None
        server.restart()
        same_id(failing.wait(2))
        assert [one.body for one in strict.wait(4)] == [b"1", b"1", b"2", b"3"]
        same_id(strict.deliveries[:2])
        assert "webhook-signature" in strict.deliveries[3].headers
        wait_until(lambda: bool(site.listed(pending)), WAIT_S, "what 202 promised")
        assert site.listed(idle)[0]["status"] == "inactive"
        assert site.depth(queues[3]) == 3
        (dead_letter,) = site.dead_letters(1)
        ids = {one.headers["webhook-id"] for one in spent.deliveries}
        assert ids == {dead_letter["webhook_id"]}
        numbers = [one["number"] for one in site.attempts(spent, 2)]
        assert sorted(set(numbers)) == [1, 2]  # a kill may repeat one, and adds none
        posted = len(spent.deliveries)
        server.kill()
        server.restart()
        spent.default = Answer()
        replay_when_resumed(site, spent, dead_letter)
        server.kill()  # what the answer said is on disk
        server.restart()
        (paused,) = site.listed(spent)
        if paused["status"] == "inactive":
            assert site.http.post(f"/api/hub/subscriptions/{paused['id']}/resume").is_success
        again = spent.wait(posted + 1)[-1]
        assert again.headers["webhook-id"] == dead_letter["webhook_id"]
        assert "Traceback" not in server.output(), server.output()


def replay_when_resumed(site: Site, target: Callback, dead_letter: dict[str, Any]) -> None:
    """Resumes the subscription until the replay succeeds: it is paused after the dead letter."""
    subscription = f"/api/hub/subscriptions/{site.listed(target)[0]['id']}"
    path = f"/api/hub/dead-letters/%2F/{dead_letter['id']}/replay"

    def is_replayed() -> bool:
        assert site.http.post(f"{subscription}/resume").is_success
        return site.http.post(path).is_success

    wait_until(is_replayed, WAIT_S, "the replay")


def same_id(deliveries: list[Request]) -> None:
    assert len({one.headers["webhook-id"] for one in deliveries}) == 1


# -- the long stories


def test_retries_are_spread(site: Site, long_stories: LongStories) -> None:
    """Retries of simultaneous failures are spread."""
    together, urls = long_stories.together, long_stories.urls
    together.wait(2 * FAILING)
    times = sorted(seconds(site.attempts(url, 2)[1]["at"]) for url in urls)
    assert times[-1] - times[0] >= 1.0
    assert max(later - earlier for earlier, later in pairwise(times)) < times[-1] - times[0]
    for url in urls:
        first, second = site.attempts(url, 2)
        assert first["webhook_id"] == second["webhook_id"]
        assert seconds(second["at"]) - seconds(first["at"]) >= 0.9


def test_breaker(site: Site, long_stories: LongStories) -> None:
    """Ten failures in a row, a cool-down, then one delivery."""
    broken = long_stories.broken
    attempts = site.attempts(broken, BREAKER_AFTER + 1)
    last, probe = attempts[BREAKER_AFTER - 1], attempts[BREAKER_AFTER]
    assert seconds(probe["at"]) - seconds(last["at"]) >= COOL_DOWN_S - 0.5
    wait_until(lambda: site.listed(broken)[0]["breaker"] == "open", WAIT_S, "the next cool-down")
    broken.default = Answer()
    found = site.listed(broken)[0]
    assert found["errors"]["error_count"] >= BREAKER_AFTER + 1
