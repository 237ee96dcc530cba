"""Requests of attempts, tests of callbacks, and messages that are sent again, on a real server."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.app.support import problem
from tests.support.http import Answer, Callback, Request
from tests.support.process import wait_until
from tests.support.server import WarrenServer

SECRET = "0123456789abcdef"
IN_AN_HOUR = Answer(503, {"Retry-After": "3600"})
WAIT_S = 30.0
Shown = dict[str, Any]


@pytest.fixture(scope="module")
def server() -> Iterator[WarrenServer]:
    """One that keeps requests of 1,000 bytes, and gives up after the second attempt."""
    env = {"WARREN_ATTEMPT_REQUEST_BYTES": "1000", "WARREN_MAX_ATTEMPTS": "2"}
    with WarrenServer(dev=True, env=env) as server:
        yield server


@pytest.fixture
def http(server: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=f"{server.http_url}/api", auth=("guest", "guest"), timeout=WAIT_S
    ) as http:
        yield http


@pytest.fixture
def exchange(http: httpx.Client, request: pytest.FixtureRequest) -> str:
    """The exchange of a test."""
    name = request.node.name.partition("[")[0]
    http.put(f"/exchanges/%2F/{name}", json={"type": "topic"}).raise_for_status()
    return str(name)


@pytest.fixture
def subscription(http: httpx.Client, exchange: str, callback: Callback) -> str:
    body = {
        "vhost": "/", "resource_type": "exchange", "resource_name": exchange, "topic": "#",
        "callback": callback.url, "secret": SECRET,
        "outbound_auth": {"auth_type": "basic_auth", "auth_config": "dXNlcjpoaWRkZW4="},
    }  # fmt: skip
    made = http.post("/hub/subscriptions", json=body)
    assert made.status_code == 201, made.text
    return made.headers["location"].rpartition("/")[2]


def publish(http: httpx.Client, exchange: str, payload: str = "hello") -> None:
    body = {
        "routing_key": "a.b", "payload": payload, "payload_encoding": "string",
        "properties": {"content_type": "text/plain"},
    }  # fmt: skip
    assert http.post(f"/exchanges/%2F/{exchange}/publish", json=body).json()["routed"]


def attempts(http: httpx.Client, subscription: str, count: int) -> list[Shown]:
    """The attempts of a subscription, the newest first, once there are so many."""
    found: list[Shown] = []

    def are_there() -> bool:
        response = http.get(f"/hub/subscriptions/{subscription}/attempts")
        found[:] = response.json()["attempts"]
        return len(found) >= count

    wait_until(are_there, WAIT_S, f"{count} attempts")
    return found


def post(http: httpx.Client, path: str, **body: Any) -> Any:
    response = http.post(path, json=body) if body else http.post(path)
    assert response.status_code == 200, response.text
    return response.json()


def is_signed(request: Request) -> bool:
    """Whether the signature of Standard Webhooks is right."""
    fields = request.headers
    signed = b".".join(
        [fields["webhook-id"].encode(), fields["webhook-timestamp"].encode(), request.body]
    )
    digest = hmac.digest(SECRET.encode(), signed, hashlib.sha256)
    return fields["webhook-signature"] == "v1," + base64.b64encode(digest).decode()


def test_a_failed_attempt_has_its_request_and_is_tried_now(
    http: httpx.Client, exchange: str, subscription: str, callback: Callback
) -> None:
    callback.script(IN_AN_HOUR)
    publish(http, exchange)
    (failed,) = attempts(http, subscription, 1)
    shown = http.get(f"/hub/attempts/{failed['id']}").json()
    request = shown["request"]
    assert (request["method"], request["body"], request["size"]) == ("POST", "hello", 5)
    assert request["url"].startswith(callback.url)
    assert request["headers"]["Authorization"] == "redacted"
    assert request["headers"]["webhook-id"] == failed["webhook_id"]
    assert not request["truncated"]
    assert shown["source"]["resource_name"] == exchange
    assert [one["id"] for one in shown["attempts"]] == [failed["id"]]
    assert shown["next_attempt_at"] > failed["at"]
    assert post(http, f"/hub/attempts/{failed['id']}/resend") == {
        "way": "hastened", "attempt": None,
    }  # fmt: skip
    first, second = callback.wait(2, WAIT_S)
    assert second.headers["webhook-id"] == first.headers["webhook-id"]
    delivered = attempts(http, subscription, 2)[0]
    assert (delivered["outcome"], delivered["number"]) == ("delivered", 2)
    shown = http.get(f"/hub/attempts/{failed['id']}").json()
    assert len(shown["attempts"]) == 2
    assert shown["next_attempt_at"] is None


def test_a_dead_letter_is_replayed(
    http: httpx.Client, exchange: str, subscription: str, callback: Callback
) -> None:
    callback.script(508)
    publish(http, exchange)
    (dead,) = attempts(http, subscription, 1)
    assert dead["outcome"] == "dead"
    assert post(http, f"/hub/attempts/{dead['id']}/resend")["way"] == "replayed"
    assert attempts(http, subscription, 2)[0]["outcome"] == "delivered"
    assert len(callback.deliveries) == 2


def test_others_are_posted_from_their_request(
    http: httpx.Client, exchange: str, subscription: str, callback: Callback
) -> None:
    callback.script(IN_AN_HOUR)
    publish(http, exchange)
    failed = attempts(http, subscription, 1)[0]
    post(http, f"/hub/attempts/{failed['id']}/resend")
    delivered = attempts(http, subscription, 2)[0]
    done = post(http, f"/hub/attempts/{delivered['id']}/resend")
    assert (done["way"], done["attempt"]["outcome"], done["attempt"]["number"]) == (
        "sent", "delivered", 3,
    )  # fmt: skip
    third = callback.wait(3, WAIT_S)[2]
    assert third.body == b"hello"
    assert third.headers["authorization"] == "Basic dXNlcjpoaWRkZW4="
    assert is_signed(third)
    callback.script(503)
    refused = post(http, f"/hub/attempts/{delivered['id']}/resend")["attempt"]
    assert (refused["outcome"], refused["status"]) == ("failed", 503)
    assert attempts(http, subscription, 4)[0]["outcome"] == "failed"
    assert http.get(f"/hub/subscriptions/{subscription}").json()["errors"]["error_count"] == 0


def test_a_refused_resend_names_the_reason(
    http: httpx.Client, exchange: str, subscription: str, callback: Callback
) -> None:
    publish(http, exchange)
    (delivered,) = attempts(http, subscription, 1)
    path = f"/hub/attempts/{delivered['id']}"
    shown = http.get(path).json()
    assert shown["request"] is None
    assert "attempt_requests" in shown["request_missing"]
    assert "attempt_requests" in problem(http.post(f"{path}/resend"), 409)
    callback.script(410)
    publish(http, exchange, "x" * 1_001)
    gone = attempts(http, subscription, 2)[0]
    path = f"/hub/attempts/{gone['id']}"
    request = http.get(path).json()["request"]
    assert (len(request["body"]), request["size"], request["truncated"]) == (1_000, 1_001, True)
    assert "its subscription is over" in problem(http.post(f"{path}/resend"), 409)
    assert "no attempt '0'" in problem(http.get("/hub/attempts/0"), 404)
    assert "no attempt 'x'" in problem(http.post("/hub/attempts/x/resend"), 404)


def test_a_body_that_was_cut_is_not_sent_again(
    http: httpx.Client, exchange: str, subscription: str, callback: Callback
) -> None:
    callback.script(IN_AN_HOUR)
    publish(http, exchange, "x" * 1_001)
    (failed,) = attempts(http, subscription, 1)
    post(http, f"/hub/attempts/{failed['id']}/resend")
    attempts(http, subscription, 2)
    reason = problem(http.post(f"/hub/attempts/{failed['id']}/resend"), 409)
    assert "only 1000 of the 1001 bytes" in reason


def test_all_that_match_are_counted_first(
    http: httpx.Client, exchange: str, subscription: str, callback: Callback
) -> None:
    callback.script(508, 508, IN_AN_HOUR)
    for payload in ("one", "two", "three", "four"):
        publish(http, exchange, payload)
    attempts(http, subscription, 4)
    wanted = {"source": exchange, "outcome": "dead"}
    counted = post(http, "/hub/attempts/resend", dry_run=True, **wanted)
    assert counted == {"matching": 2, "resendable": 2, "resent": 0}
    counted = post(http, "/hub/attempts/resend", dry_run=True, subscription=subscription)
    assert counted == {"matching": 4, "resendable": 3, "resent": 0}
    assert len(callback.deliveries) == 4
    assert post(http, "/hub/attempts/resend", subscription=subscription)["resent"] == 3
    callback.wait(7, WAIT_S)
    bodies = sorted(one.body for one in callback.deliveries[4:])
    assert bodies == [b"one", b"three", b"two"]
    assert post(http, "/hub/attempts/resend", **wanted)["resendable"] == 2  # from their requests
    callback.wait(9, WAIT_S)
    ids = [str(one["id"]) for one in attempts(http, subscription, 9)[-2:]]
    assert post(http, "/hub/attempts/resend", ids=ids, dry_run=True)["matching"] == 2
    assert "'one'" in problem(http.post("/hub/attempts/resend", json={"ids": ["one"]}), 400)
    assert "give a filter" in problem(http.post("/hub/attempts/resend"), 400)
    wrong = http.post("/hub/attempts/resend", json={"colour": "red"})
    assert "unknown filter" in problem(wrong, 400)


def test_a_test_is_sent_as_a_delivery(
    http: httpx.Client, exchange: str, subscription: str, callback: Callback
) -> None:
    path = f"/hub/subscriptions/{subscription}/test"
    shown = post(http, path)
    (sent,) = callback.deliveries
    assert (shown["status"], shown["outcome"]) == (200, "delivered")
    assert shown["request"]["headers"]["X-Hub-Test"] == sent.headers["x-hub-test"] == "true"
    assert sent.headers["content-type"] == "application/json"
    assert sent.headers["x-amqp-exchange"] == exchange
    assert is_signed(sent)
    callback.script(500)
    shown = post(http, path, body="hi", content_type="text/plain")
    assert (shown["status"], shown["outcome"], shown["request"]["body"]) == (500, "failed", "hi")
    assert len(attempts(http, subscription, 2)) == 2
    found = http.get(f"/hub/subscriptions/{subscription}").json()
    assert found["errors"] is None
    assert "no subscription" in problem(http.post("/hub/subscriptions/none/test"), 404)


def test_others_see_and_send_nothing(
    http: httpx.Client, exchange: str, subscription: str, callback: Callback
) -> None:
    callback.script(508)
    publish(http, exchange)
    (dead,) = attempts(http, subscription, 1)
    http.put("/users/other", json={"password": "secret", "tags": "management"}).raise_for_status()
    other = ("other", "secret")
    for method, path in (
        ("GET", f"/hub/attempts/{dead['id']}"),
        ("POST", f"/hub/attempts/{dead['id']}/resend"),
        ("POST", f"/hub/subscriptions/{subscription}/test"),
    ):
        problem(http.request(method, path, auth=other), 404)
    answer = http.post("/hub/attempts/resend", json={"all": True}, auth=other)
    assert answer.json() == {"matching": 0, "resendable": 0, "resent": 0}
    assert len(callback.deliveries) == 1
