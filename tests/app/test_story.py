"""Publisher, hub and callbacks over real HTTP, through a real `warren serve` (rabbithub.md 7)."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs

import httpx
import pytest

from tests.app.support import problem
from tests.support.http import Callback
from tests.support.server import WarrenServer

ATOM = "application/atom+xml"


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest"), timeout=20) as client:
        yield client


def subscribe(
    http: httpx.Client, source: str, callback: str, topic: str, vhost: str = "", **more: str
) -> int:
    form = {"hub.mode": "subscribe", "hub.callback": callback, "hub.topic": topic}
    form |= {f"hub.{name}": value for name, value in more.items()}
    place = f"/{vhost}" if vhost else ""
    return http.post(f"{place}/subscribe/{source}", data=form).status_code


def queue_length(http: httpx.Client, queue: str) -> str:
    accept = {"Accept": "application/json"}
    parameters = http.get(f"/endpoint/q/{queue}", headers=accept).json()["parameters"]
    return str(next(item["value"] for item in parameters if item["name"] == "messages_ready"))


def test_article_reaches_the_callback(http: httpx.Client, callback: Callback) -> None:
    assert http.put("/endpoint/x/news?amqp.exchange_type=topic").status_code == 201
    assert subscribe(http, "x/news", callback.url, "eu.#", lease_seconds="600") == 204
    (verification,) = callback.verifications
    assert verification.query["hub.topic"] == "eu.#"
    assert verification.query["hub.lease_seconds"] == "600"
    article = bytes(range(256))
    for topic in ("us.ny", "eu.fr"):
        published = http.post(
            f"/endpoint/x/news?hub.topic={topic}", content=article, headers={"Content-Type": ATOM}
        )
        assert published.status_code == 202
    (delivery,) = callback.wait(1)
    assert delivery.body == article
    assert delivery.headers["Content-Type"] == ATOM
    assert delivery.headers["X-AMQP-Routing-Key"] == "eu.fr"
    assert delivery.query["hub.topic"] == "eu.fr"


def test_unsubscribed_callback_gets_nothing(http: httpx.Client, callback: Callback) -> None:
    http.put("/endpoint/x/short?amqp.exchange_type=fanout")
    assert subscribe(http, "x/short", callback.url, "") == 204
    http.post("/endpoint/x/short", content=b"1")
    callback.wait(1)
    form = {"hub.mode": "unsubscribe", "hub.callback": callback.url, "hub.topic": ""}
    assert http.post("/subscribe/x/short", data=form).status_code == 204
    http.post("/endpoint/x/short", content=b"2")
    problem(http.delete("/subscribe/x/short", params=form), 404)
    assert [delivery.body for delivery in callback.deliveries] == [b"1"]


def test_what_a_callback_refuses(http: httpx.Client, callback: Callback) -> None:
    assert subscribe(http, "x/nowhere", callback.url, "t") == 404
    assert callback.requests == []
    http.put("/endpoint/q/refused")
    assert subscribe(http, "q/refused", "ftp://s/cb", "t") == 422
    assert subscribe(http, "q/refused", "http://user:pw@127.0.0.1:1/", "t") == 422
    assert subscribe(http, "q/refused", callback.url, "t", verify="carrier") == 400


@pytest.mark.parametrize("prefix", ["", "/rabbithub"])
def test_shortcut_binds_inside_the_broker(http: httpx.Client, prefix: str) -> None:
    name = f"in{len(prefix)}"
    assert http.put("/endpoint/x/source?amqp.exchange_type=topic").is_success
    sink = http.put(f"{prefix}/endpoint/q/{name}").headers["location"]
    use = {"hub.mode": "generate_token", "hub.intended_use": "subscribe"}
    token = parse_qs(http.get(sink, params=use).text)["hub.verify_token"][0]
    elsewhere = sink.replace(name, "other")
    assert subscribe(http, "x/source", elsewhere, "eu", verify_token=token) == 400
    assert subscribe(http, "x/source", sink, "eu", verify_token=token) == 204
    for topic in ("us", "eu"):
        http.post(f"/endpoint/x/source?hub.topic={topic}&amqp.mandatory=true")
    assert queue_length(http, name) == "1"


def test_another_hub_verifies_with_the_token(http: httpx.Client, warren: WarrenServer) -> None:
    sink = http.put("/endpoint/q/chained").headers["location"]
    use = {"hub.mode": "generate_token", "hub.intended_use": "subscribe"}
    token = parse_qs(http.get(sink, params=use).text)["hub.verify_token"][0]
    question = {"hub.mode": "subscribe", "hub.challenge": "Zq1", "hub.verify_token": token}
    answer = httpx.get(sink, params=question)
    assert (answer.status_code, answer.text) == (200, "Zq1")
    problem(httpx.get(sink, params={**question, "hub.mode": "unsubscribe"}), 400)
    problem(httpx.get(sink, params={**question, "hub.verify_token": token + "A"}), 400)
    problem(httpx.get(f"{sink}x", params=question), 400)


def test_a_subscription_goes_with_its_vhost(http: httpx.Client, callback: Callback) -> None:
    """Whoever makes another vhost of that name has not let it in."""
    assert http.put("/api/vhosts/mine", json={}).status_code == 201
    assert subscribe(http, "x/amq.fanout", callback.url, "", vhost="mine") == 204
    assert http.delete("/api/vhosts/mine").status_code == 204
    # One more, and the hub has done all that it was asked before.
    assert subscribe(http, "x/amq.fanout", f"{callback.url}/other", "") == 204
    assert http.put("/api/vhosts/mine", json={}).status_code == 201
    wanted = {"hub.callback": callback.url, "hub.topic": ""}
    gone = http.delete("/mine/subscribe/x/amq.fanout", params=wanted)
    assert "no subscription" in problem(gone, 404)
