"""RabbitHub's interface by section (rabbithub.md 1-5), over HTTP to a real server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

from tests.app.support import problem
from tests.support.http import Answer, Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .webhooks import Site, form

pytestmark = pytest.mark.differs("RabbitMQ has RabbitHub only as a plugin of long ago")
BASIC = "dXNlcjpwYXNz"
"""Base64 of user:pass."""
USE = "hub.mode=generate_token&hub.intended_use=subscribe"


@pytest.fixture(scope="module")
def warren() -> Iterator[WarrenServer]:
    """One that maps message and correlation ids to headers."""
    headers = ["--set-message-id", "X-Message-Id", "--set-correlation-id", "X-Correlation-Id"]
    with WarrenServer(dev=True, args=headers) as server:
        yield server
        assert "Traceback" not in server.output()


@pytest.fixture(scope="module")
def site(warren: WarrenServer) -> Iterator[Site]:
    with Site(warren) as site:
        yield site


@pytest.fixture(scope="module")
def http(site: Site) -> httpx.Client:
    return site.http


@pytest.fixture(scope="module")
def plain(http: httpx.Client) -> Iterator[httpx.Client]:
    """A user without permissions in `/`."""
    http.put("/api/users/plain", json={"password": "plain", "tags": ""})
    nothing = {"configure": "^$", "write": "^$", "read": "^$"}
    http.put("/api/permissions/%2F/plain", json=nothing)
    with httpx.Client(base_url=http.base_url, auth=("plain", "plain"), timeout=20) as client:
        yield client


@pytest.fixture
def topic_exchange(site: Site) -> str:
    return site.exchange()


@pytest.fixture
def queue(site: Site) -> str:
    return site.queue()


# Section 1: URLs


def test_put_exchange(site: Site, warren: WarrenServer, name: str) -> None:
    made = site.http.put(f"/endpoint/x/{name}")
    assert made.status_code == 201
    assert made.headers["location"] == f"{warren.http_url}/endpoint/x/{name}"
    assert site.http.put(f"/endpoint/x/{name}").status_code == 204
    assert site.get_description(f"x/{name}") == {
        "exchange_type": "fanout", "durable": "true", "auto_delete": "false",
        "internal": "false",
    }  # fmt: skip
    problem(site.http.put(f"/endpoint/x/{name}?amqp.exchange_type=direct"), 409)
    problem(site.http.put("/endpoint/x/other?amqp.exchange_type=nonsense"), 400)


def test_put_queue(http: httpx.Client, warren: WarrenServer, name: str) -> None:
    made = http.put(f"/endpoint/q/{name}")
    assert made.status_code == 201
    assert made.headers["location"] == f"{warren.http_url}/endpoint/q/{name}"
    assert http.put(f"/endpoint/q/{name}").status_code == 204
    answer = http.put("/endpoint/q/amq.mine")
    problem(answer, 400)
    assert answer.json()["title"] == "Invalid queue name"
    path = http.put("/endpoint/q/").headers["location"].removeprefix(warren.http_url)
    assert path.startswith("/endpoint/q/amq.gen-")
    assert http.delete(path).status_code == 204


@pytest.mark.parametrize("kind", ["x", "q"])
def test_delete(http: httpx.Client, name: str, kind: str) -> None:
    http.put(f"/endpoint/{kind}/{name}")
    assert http.delete(f"/endpoint/{kind}/{name}").status_code == 204
    problem(http.delete(f"/endpoint/{kind}/{name}"), 404)
    problem(http.delete("/endpoint/x/"), 403)


def test_post_to_a_resource(site: Site, topic_exchange: str, queue: str) -> None:
    """An exchange accepts a message without any queue that gets it."""
    for resource in (topic_exchange, queue):
        answer = site.http.post(f"/endpoint/{resource}?hub.topic=a", content=b"1")
        assert (answer.status_code, answer.content) == (202, b"")
        problem(site.http.post(f"/endpoint/{resource[0]}/none", content=b"1"), 404)
    assert site.depth(queue) == 1


@pytest.mark.parametrize("facet", ["endpoint", "subscribe"])
@pytest.mark.parametrize("kind", ["x", "q"])
def test_description(http: httpx.Client, name: str, facet: str, kind: str) -> None:
    http.put(f"/endpoint/{kind}/{name}")
    answer = http.get(f"/{facet}/{kind}/{name}")
    assert answer.headers["content-type"].startswith("text/xml")
    root = ElementTree.fromstring(answer.content)
    word = {"x": "exchange", "q": "queue"}[kind]
    assert (root.tag, root.findtext("class")) == ("application", f"amqp.{word}")
    assert root.findtext("name") == name
    (found,) = root.findall("facets/facet")
    assert found.get("name") == facet
    for action in found.findall("actions/action"):
        assert action.get("name")
        assert action.get("http.method")
        assert action.findtext("description")
    assert http.head(f"/{facet}/{kind}/{name}").status_code == 200
    problem(http.get(f"/{facet}/{kind}/none"), 404)


@pytest.mark.parametrize("prefix", ["", "/%2F", "/rabbithub"])
def test_description_names_its_stylesheet(http: httpx.Client, queue: str, prefix: str) -> None:
    url = f"{prefix}/endpoint/{queue}"
    text = http.get(url).text
    href = text.partition('<?xml-stylesheet type="text/xsl" href="')[2].partition('"')[0]
    answer = http.get(str(httpx.URL(f"http://h{url}").join(href).raw_path, "ascii"))
    assert answer.status_code == 200
    assert "xml" in answer.headers["content-type"]
    root = ElementTree.fromstring(answer.content)
    assert root.tag == "{http://www.w3.org/1999/XSL/Transform}stylesheet"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [("application/json", "application/json"), ("text/html", "text/html"),
     ("application/xml", "application/xml"), ("text/html;q=0.1,*/*", "text/xml")],
)  # fmt: skip
def test_description_is_negotiated(http: httpx.Client, queue: str, accept: str, kind: str) -> None:
    answer = http.get(f"/endpoint/{queue}", headers={"Accept": accept})
    assert answer.headers["content-type"].partition(";")[0] == kind
    assert answer.headers["vary"] == "Accept"
    assert queue[2:] in answer.text


def test_challenge_needs_the_hubs_own_token(site: Site, queue: str) -> None:
    token = site.token(queue)
    given = {"hub.mode": "subscribe", "hub.challenge": "Zq1", "hub.verify_token": token}
    assert site.http.get(f"/endpoint/{queue}", params=given).text == "Zq1"
    for wrong in ({"hub.mode": "unsubscribe"}, {"hub.verify_token": "T"}):
        answer = site.http.get(f"/endpoint/{queue}", params=given | wrong)
        problem(answer, 400)
        assert answer.json()["title"] == "Bad hub.verify_token"
    problem(site.http.get(f"/endpoint/{queue}?hub.mode=generate_token"), 400)
    problem(site.http.get(f"/endpoint/q/none?{USE}"), 404)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/endpoint/q/in?hub.mode=publish"),
        ("POST", "/endpoint/q/in?hub.mode=subscribe"),
        ("GET", "/endpoint/q/in?hub.mode=publish"),
        ("DELETE", "/endpoint/q/in?hub.mode=unsubscribe"),
        ("PUT", "/subscribe/q/in"),
        ("GET", "/subscribe/q/in?hub.mode=subscribe"),
        ("PATCH", "/endpoint/q/in"),
    ],
)
def test_invalid_operations(http: httpx.Client, method: str, path: str) -> None:
    http.put("/endpoint/q/in")
    problem(http.request(method, path), 400)


def test_the_root(http: httpx.Client) -> None:
    assert http.get("/").status_code == 200
    answer = http.post("/", content=b"anything")
    assert (answer.status_code, answer.text) == (200, "You posted!")
    for method in ("PUT", "DELETE"):
        problem(http.request(method, "/"), 501)
    # HAProxy's health check; RabbitHub has no answer to it.
    assert http.options("/").headers["allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("path", ["/nothing", "/endpoint/z/a", "/static/none", "/endpoint/x"])
def test_not_found(http: httpx.Client, path: str) -> None:
    problem(http.get(path), 404)


def test_names_are_decoded_once(http: httpx.Client, name: str) -> None:
    """Names with a slash, and the virtual host `%2F`."""
    assert http.put(f"/endpoint/q/{name}%2Fb%252F").status_code == 201
    accept = {"Accept": "application/json"}
    for place in ("", "/%2F", "/%2f"):
        answer = http.get(f"{place}/endpoint/q/{name}%2Fb%252F", headers=accept)
        assert answer.json()["name"] == f"{name}/b%2F"


def test_permissions(http: httpx.Client, plain: httpx.Client, queue: str) -> None:
    path = f"/endpoint/{queue}"
    bare = httpx.get(f"{plain.base_url}{path}")
    problem(bare, 401)
    assert bare.headers["www-authenticate"].startswith("Basic realm=")
    problem(httpx.get(f"{plain.base_url}{path}", auth=("guest", "wrong")), 401)
    given = form("subscribe", "http://127.0.0.1:9/", "t")
    for answer in (
        plain.get(path),
        plain.put(f"{path}2"),
        plain.delete(path),
        plain.post(path, content=b"1"),
        plain.get(f"{path}?{USE}"),
        plain.post(f"/subscribe/{queue}", data=given),
        plain.delete(f"/subscribe/{queue}", params=given),
        plain.get("/subscriptions"),
    ):
        problem(answer, 403)


# Section 2: publishing


def publish(
    site: Site,
    source: str,
    callback: Callback,
    query: str = "",
    headers: dict[str, str] | None = None,
) -> Any:
    """Publishes a message, and returns its delivery."""
    site.subscribe(source, callback.url)
    answer = site.http.post(f"/endpoint/{source}?{query}", content=b"\0body", headers=headers)
    assert (answer.status_code, answer.content) == (202, b"")
    (delivery,) = callback.wait(1)
    assert delivery.body == b"\0body"
    return delivery


@pytest.mark.parametrize("kind", ["x", "q"])
@pytest.mark.parametrize(
    ("query", "headers", "key", "content_type"),
    [
        ("hub.topic=eu.fr", {"Content-Type": "text/x-own"}, "eu.fr", "text/x-own"),
        ("", {}, "", "application/octet-stream"),
    ],
)
def test_topic_and_type(
    site: Site, name: str, callback: Callback, kind: str,
    query: str, headers: dict[str, str], key: str, content_type: str,
) -> None:  # fmt: skip
    """Queues keep the topic too."""
    site.http.put(f"/endpoint/{kind}/{name}")
    delivery = publish(site, f"{kind}/{name}", callback, query, headers)
    assert delivery.headers["X-AMQP-Routing-Key"] == key
    assert delivery.headers["Content-Type"] == content_type
    assert delivery.headers["X-AMQP-Redelivered"] == "false"


@pytest.mark.parametrize("kind", ["x", "q"])
def test_message_headers(site: Site, name: str, kind: str, callback: Callback) -> None:
    site.http.put(f"/endpoint/{kind}/{name}")
    given = {"x-rabbithub-msg_header": "a = 1, b=2"}
    delivery = publish(site, f"{kind}/{name}", callback, headers=given)
    assert delivery.headers["x-rabbithub-msg_header"] == "a = 1, b = 2"


def test_configured_headers(http: httpx.Client, queue: str, callback: Callback) -> None:
    answer = http.post(f"/endpoint/{queue}", content=b"1", headers={"X-Correlation-Id": "c7"})
    assert answer.headers["X-Correlation-Id"] == "c7"
    assert answer.headers["X-Message-Id"]


# Section 3: subscribing


def test_verification_request_has_all_parameters(
    site: Site, topic_exchange: str, callback: Callback
) -> None:
    url = f"{callback.url}?own=1"
    site.subscribe(
        topic_exchange, url, "eu.#", verify_token="tok", lease_seconds="600",
        verify="carrier,sync",
    )  # fmt: skip
    (question,) = callback.verifications
    assert question.method == "GET"
    assert question.query["own"] == "1"
    assert question.query["hub.mode"] == "subscribe"
    assert question.query["hub.topic"] == "eu.#"
    assert question.query["hub.lease_seconds"] == "600"
    assert question.query["hub.verify_token"] == "tok"
    assert question.query["hub.challenge"]


@pytest.mark.parametrize(
    "refusal",
    [Answer(404), Answer(200, body=b"other"), Answer(302, {"Location": "/"}), Answer(500)],
)
def test_sync_failure(site: Site, topic_exchange: str, callback: Callback, refusal: Answer) -> None:
    callback.refusal = refusal
    given = form("subscribe", callback.url, "t")
    answer = site.http.post(f"/subscribe/{topic_exchange}", data=given)
    problem(answer, 400)
    assert answer.json()["title"] == "Request verification failed"
    assert site.listed(callback) == []


def test_async(site: Site, topic_exchange: str, callback: Callback) -> None:
    given = form("subscribe", callback.url, "t", verify="async")
    assert site.http.post(f"/subscribe/{topic_exchange}", data=given).status_code == 202
    wait_until(lambda: len(site.listed(callback)) == 1, 20, "subscription")


def test_json(site: Site, topic_exchange: str, callback: Callback) -> None:
    contact = {"app_name": "a", "contact_name": "b", "phone": "1", "email": "e"}
    wish = {
        "mode": "subscribe", "callback": callback.url, "topic": "t", "verify": "sync",
        "lease_seconds": 600, "max_tps": 50, "ha_mode": "all", "basic_auth": BASIC,
        "contact": contact,
    }  # fmt: skip
    answer = site.http.post(f"/subscribe/{topic_exchange}", json={"hub": wish})
    assert answer.status_code == 204, answer.text
    (found,) = site.listed(callback)
    assert (found["lease_seconds"], found["max_tps"], found["ha_mode"]) == (600, 50, "all")
    assert found["contact"] == contact | {"description": ""}
    assert found["outbound_auth"] == {"auth_type": "basic_auth", "auth_config": "redacted"}
    (question,) = callback.verifications
    assert question.headers["Authorization"] == f"Basic {BASIC}"


@pytest.mark.parametrize(
    ("option", "value"),
    [("max_tps", "many"), ("max_tps", "-1"), ("ha_mode", "some"), ("basic_auth", "?"),
     ("basic_auth", "bm9jb2xvbg=="), ("phone", "1"), ("verify", "carrier")],
)  # fmt: skip
def test_bad_values(http: httpx.Client, topic_exchange: str, option: str, value: str) -> None:
    given = form("subscribe", "http://127.0.0.1:9/", "t", **{option: value})
    problem(http.post(f"/subscribe/{topic_exchange}", data=given), 400)


@pytest.mark.parametrize("missing", ["hub.callback", "hub.topic", "hub.mode"])
def test_missing_parameter_is_refused(
    http: httpx.Client, topic_exchange: str, missing: str
) -> None:
    given = form("subscribe", "http://127.0.0.1:9/", "t")
    del given[missing]
    assert missing in problem(http.post(f"/subscribe/{topic_exchange}", data=given), 400)


@pytest.mark.parametrize(
    ("asked", "granted"),
    [("1", 1), ("600", 600), ("0", 2_592_000), ("-5", 2_592_000), ("soon", 2_592_000),
     ("999999999999", 31_536_000), (None, 2_592_000)],
)  # fmt: skip
def test_lease(site: Site, queue: str, callback: Callback, asked: str | None, granted: int) -> None:
    """A year at most (http_contract.md 12)."""
    more = {} if asked is None else {"lease_seconds": asked}
    site.subscribe(queue, callback.url, **more)
    (question,) = callback.verifications
    assert question.query["hub.lease_seconds"] == str(granted)


def test_repeating_renews(site: Site, queue: str, callback: Callback) -> None:
    site.subscribe(queue, callback.url, lease_seconds="600", max_tps="1")
    (before,) = site.listed(callback)
    site.subscribe(queue, callback.url, lease_seconds="900", max_tps="2")
    (after,) = site.listed(callback)
    assert (after["id"], after["lease_seconds"], after["max_tps"]) == (before["id"], 900, 2)
    site.subscribe(queue, callback.url, "other label")
    assert len(site.listed(callback)) == 2


def test_an_exchange_copies_and_a_queue_shares(site: Site, topic_exchange: str, queue: str) -> None:
    with Callback() as one, Callback() as two:
        for callback in (one, two):
            site.subscribe(topic_exchange, callback.url)
            site.subscribe(queue, callback.url)
        site.http.post(f"/endpoint/{topic_exchange}?hub.topic=a", content=b"copy")
        assert [c.wait(1)[0].body for c in (one, two)] == [b"copy", b"copy"]
        for body in (b"1", b"2", b"3", b"4"):
            site.http.post(f"/endpoint/{queue}", content=body)
        wait_until(lambda: len(one.deliveries) + len(two.deliveries) == 6, 20, "deliveries")
        bodies = sorted(found.body for c in (one, two) for found in c.deliveries)
        assert bodies == [b"1", b"2", b"3", b"4", b"copy", b"copy"]


def test_unsubscribe(site: Site, queue: str, callback: Callback) -> None:
    site.subscribe(queue, callback.url)
    given = form("unsubscribe", callback.url, "#")
    assert site.http.post(f"/subscribe/{queue}", data=given).status_code == 204
    assert callback.verifications[-1].query["hub.mode"] == "unsubscribe"
    assert site.listed(callback) == []
    problem(site.http.post(f"/subscribe/{queue}", data=given), 404)


def test_unsubscribing_needs_permission(
    site: Site, plain: httpx.Client, queue: str, callback: Callback
) -> None:
    site.subscribe(queue, callback.url)
    given = form("unsubscribe", callback.url, "#")
    problem(plain.post(f"/subscribe/{queue}", data=given), 403)
    assert len(site.listed(callback)) == 1


def test_delete_subscribe(site: Site, queue: str, callback: Callback) -> None:
    """Without verification; the callback gets a denial."""
    site.subscribe(queue, callback.url)
    params = {"hub.callback": callback.url, "hub.topic": "#"}
    answer = site.http.delete(f"/subscribe/{queue}", params=params)
    assert answer.status_code == 200
    assert answer.json() == {"consumers": [{"node": "warren", "status": "removed"}]}
    problem(site.http.delete(f"/subscribe/{queue}", params=params), 404)
    problem(site.http.delete(f"/subscribe/{queue}"), 400)
    wait_until(lambda: bool(callback.denials), 20, "the denial")
    assert callback.denials[0].query["hub.reason"]


def test_token_is_refused_for_another_resource_or_use(
    site: Site, topic_exchange: str, queue: str, callback: Callback
) -> None:
    """A token is for its own resource and use alone."""
    token = site.token(queue)
    given = form("subscribe", callback.url, "t", verify_token=token)
    problem(site.http.post(f"/subscribe/{topic_exchange}", data=given), 400)
    given = form("unsubscribe", f"{site.http.base_url}/endpoint/{queue}", "t", verify_token=token)
    problem(site.http.post(f"/subscribe/{topic_exchange}", data=given), 400)
    assert callback.requests == []


# Section 4: delivery


def test_delivery_is_a_post_with_headers(
    site: Site, topic_exchange: str, callback: Callback
) -> None:
    site.subscribe(topic_exchange, f"{callback.url}?own=1", basic_auth=BASIC)
    site.http.post(
        f"/endpoint/{topic_exchange}?hub.topic=a%26b&amqp.message_id=m1", content=b"\xff\0"
    )
    (delivery,) = callback.wait(1)
    assert (delivery.method, delivery.body) == ("POST", b"\xff\0")
    assert delivery.raw_path == "/callback?own=1&hub.topic=a%26b"
    assert delivery.headers["Authorization"] == f"Basic {BASIC}"
    assert delivery.headers["X-AMQP-Exchange"] == topic_exchange[2:]
    assert delivery.headers["message-id"] == "m1"


def test_failure_keeps_the_subscription(site: Site, queue: str, callback: Callback) -> None:
    """It is repeated (http_contract 16); RabbitHub removed the subscription."""
    callback.script(500)
    site.subscribe(queue, callback.url)
    site.http.post(f"/endpoint/{queue}", content=b"1")
    first, again = callback.wait(2, timeout_s=20)
    assert first.headers["webhook-id"] == again.headers["webhook-id"]
    assert again.headers["X-AMQP-Redelivered"] == "true"
    (found,) = site.listed(callback)
    assert found["status"] == "active"


# Section 5: administration


def item(queue: str, callback: str, **more: Any) -> dict[str, Any]:
    names = {"vhost": "/", "resource_type": "queue", "resource_name": queue[2:]}
    return {**names, "topic": "t", "callback": callback, **more}


def test_listing(site: Site, queue: str, callback: Callback) -> None:
    site.subscribe(queue, callback.url, "t", lease_seconds="600", app_name="a")
    (found,) = site.listed(callback)
    left_s = found["lease_expiry_time_microsec"] / 1e6 - time.time()
    assert 0 < left_s <= 600
    expected = item(
        queue, callback.url, lease_seconds=600, ha_mode="none", status="active", max_tps=0,
        pseudo_queue=None, outbound_auth=None,
    )  # fmt: skip
    assert {key: found[key] for key in expected} == expected
    assert found["contact"]["app_name"] == "a"
    soon = site.http.get("/subscriptions?hub.expires=1").json()["subscriptions"]
    assert found["id"] in [one["id"] for one in soon]


@pytest.mark.parametrize("place", ["", "/%2F"])
def test_single_subscription_is_shown(
    site: Site, queue: str, callback: Callback, place: str
) -> None:
    site.subscribe(queue, callback.url, "t")
    path, params = f"{place}/subscriptions/{queue}", form("", callback.url, "t")
    del params["hub.mode"]
    (found,) = site.http.get(path, params=params).json()["subscriptions"]
    assert found["callback"] == callback.url
    problem(site.http.get(path), 400)
    problem(site.http.get(path, params=params | {"hub.topic": "u"}), 404)


@pytest.mark.parametrize("path", ["/subscriptions", "/api/hub/subscriptions/batch"])
def test_batch(site: Site, queue: str, callback: Callback, path: str) -> None:
    items = [
        item(queue, callback.url),
        item(queue, callback.url, topic="u", status="inactive"),
        item("q/none", callback.url),
    ]
    assert site.http.post(path, content=b"{").status_code == 400
    answer = site.http.post(path, json={"subscriptions": items})
    assert answer.status_code == 202
    results = answer.json()["rabbithub_batch_results"]
    assert [result["topic"] for result in results] == ["t", "u", "t"]
    assert all(result["status"]["consumers"] for result in results)
    assert results[2]["error"]["status"] == 404

    def statuses() -> list[str]:
        return [one["status"] for one in site.listed(callback)]

    wait_until(lambda: statuses() == ["active", "inactive"], 20, "subscriptions")
    assert [one.query["hub.topic"] for one in callback.verifications] == ["t"]


def test_failed_deliveries_are_listed(site: Site, queue: str, callback: Callback) -> None:
    callback.default = Answer(503)
    began = time.time()
    site.subscribe(queue, callback.url, "t")
    site.http.post(f"/endpoint/{queue}", content=b"1")

    def errors() -> list[dict[str, Any]]:
        found = site.http.get("/subscriptions/errors", params={"callback": callback.url}).json()
        assert found.keys() == {"errors"}
        return list(found["errors"])

    wait_until(lambda: bool(errors()), 20, "error")
    (found,) = errors()
    assert (found["resource"], found["queue"]) == ("/", queue[2:])
    assert (found["topic"], found["callback"]) == ("t", callback.url)
    assert found["error_count"] >= 1
    assert began * 1e6 <= found["first_error_time_microsec"] <= time.time() * 1e6
    assert found["first_error_time_microsec"] <= found["last_error_time_microsec"]
    assert "503" in found["last_error_msg"]
    site.subscribe(queue, callback.url, "t")
    assert site.http.get("/api/hub/errors").status_code == 200


def test_deactivate_and_reactivate(site: Site, queue: str, callback: Callback) -> None:
    site.subscribe(queue, callback.url, "t")
    (found,) = site.listed(callback)
    path = f"/api/hub/subscriptions/{found['id']}"
    assert site.http.post(f"{path}/pause").json()["status"] == "inactive"
    site.http.post(f"/endpoint/{queue}", content=b"1")
    assert (site.depth(queue), callback.deliveries) == (1, [])
    assert site.http.post(f"{path}/resume").json()["status"] == "active"
    callback.wait(1)
    site.http.post(f"{path}/pause")
    site.subscribe(queue, callback.url, "t")
    assert [(one["id"], one["status"]) for one in site.listed(callback)] == [
        (found["id"], "active")
    ]


def test_path_of_a_subscription_manages_it(site: Site, queue: str, callback: Callback) -> None:
    url = str(httpx.QueryParams({"": callback.url}))[1:]
    path = f"/api/hub/subscriptions/%2F/queue/{queue[2:]}/t/{url}"
    assert site.http.get(path).status_code == 404
    assert site.http.put(path, json={"lease_seconds": 600}).status_code == 201
    assert len(callback.verifications) == 1
    (found,) = site.http.get(path).json()["subscriptions"]
    assert (found["lease_seconds"], found["topic"]) == (600, "t")
    consumers = site.http.get("/api/hub/consumers").json()["consumers"]
    assert callback.url in [one["callback"] for one in consumers]
    assert site.http.put(path).status_code == 204
    assert site.http.put(path, json={"status": "inactive"}).status_code == 204
    assert [one["status"] for one in site.listed(callback)] == ["inactive"]
    assert site.http.delete(path).status_code == 204
    assert site.listed(callback) == []


def test_all_settings_survive_kill_9(callback: Callback) -> None:
    with WarrenServer(dev=True) as server, Site(server) as site:
        queue = site.queue()
        given = {"basic_auth": BASIC, "secret": "s", "app_name": "a", "max_tps": "9"}
        site.subscribe(queue, callback, "active", **given)
        site.subscribe(queue, callback, "paused", ha_mode="2")
        (found,) = (one for one in site.listed(callback) if one["topic"] == "paused")
        assert site.http.post(f"/api/hub/subscriptions/{found['id']}/pause").status_code == 200
        items = [item(queue, callback.url, topic="unasked", status="inactive")]
        assert site.http.post("/subscriptions", json={"subscriptions": items}).is_success
        before = site.listed(callback)
        server.kill()
        server.start()
        with Site(server) as again:
            assert again.listed(callback) == before
        assert [one["status"] for one in before] == ["active", "inactive", "inactive"]
    assert [one.query["hub.topic"] for one in callback.verifications] == ["active", "paused"]


def test_environment(http: httpx.Client) -> None:
    found = http.get("/api/hub/environment").json()["environment"]
    assert found["default_lease_s"] == 2_592_000
    assert found["allow_loopback"] is True
