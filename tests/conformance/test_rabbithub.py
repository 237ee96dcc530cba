"""RabbitHub's interface by section (rabbithub.md 1-5), over HTTP to a real server.

Where http_contract.md decides otherwise the test says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs
from xml.etree import ElementTree

import httpx
import pytest

from tests.app.support import problem
from tests.support.http import Answer, Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer

pytestmark = pytest.mark.differs("RabbitMQ has RabbitHub only as a plugin of long ago")

Parameters = dict[str, str]
BASIC = "dXNlcjpwYXNz"
"""Base64 of user:pass."""


@pytest.fixture(scope="module")
def warren() -> Iterator[WarrenServer]:
    """One that maps message and correlation ids to headers."""
    headers = ["--set-message-id", "X-Message-Id", "--set-correlation-id", "X-Correlation-Id"]
    with WarrenServer(dev=True, args=headers) as server:
        yield server
        assert "Traceback" not in server.output()


@pytest.fixture(scope="module")
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest"), timeout=20) as client:
        for name, tags in (("plain", ""), ("chief", "administrator")):
            client.put(f"/api/users/{name}", json={"password": name, "tags": tags})
        nothing = {"configure": "^$", "write": "^$", "read": "^$"}
        client.put("/api/permissions/%2F/plain", json=nothing)
        yield client


@pytest.fixture(scope="module")
def plain(http: httpx.Client, warren: WarrenServer) -> Iterator[httpx.Client]:
    """A user without any right in `/`."""
    with httpx.Client(base_url=warren.http_url, auth=("plain", "plain"), timeout=20) as client:
        yield client


@pytest.fixture
def topic_exchange(http: httpx.Client, name: str) -> str:
    assert http.put(f"/endpoint/x/{name}?amqp.exchange_type=topic").status_code == 201
    return f"x/{name}"


@pytest.fixture
def queue(http: httpx.Client, name: str) -> str:
    assert http.put(f"/endpoint/q/{name}").status_code == 201
    return f"q/{name}"


def hub(mode: str, callback: str, topic: str, **more: str) -> Parameters:
    given = {"mode": mode, "callback": callback, "topic": topic, **more}
    return {f"hub.{name}": value for name, value in given.items()}


def subscribe(
    http: httpx.Client, source: str, callback: str, topic: str = "#", **more: str
) -> None:
    answer = http.post(f"/subscribe/{source}", data=hub("subscribe", callback, topic, **more))
    assert (answer.status_code, answer.content) == (204, b""), answer.text


def listed(http: httpx.Client, callback: Callback) -> list[dict[str, Any]]:
    answer = http.get("/subscriptions", params={"callback": callback.url})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["subscriptions"]
    return found


def ready(http: httpx.Client, queue: str) -> int:
    """How many messages wait in a queue."""
    answer = http.get(f"/endpoint/{queue}", headers={"Accept": "application/json"})
    parameters = {item["name"]: item["value"] for item in answer.json()["parameters"]}
    return int(parameters["messages_ready"])


class TestSection1Urls:
    def test_put_exchange(self, http: httpx.Client, warren: WarrenServer, name: str) -> None:
        made = http.put(f"/endpoint/x/{name}")
        assert made.status_code == 201
        assert made.headers["location"] == f"{warren.http_url}/endpoint/x/{name}"
        assert http.put(f"/endpoint/x/{name}").status_code == 204
        accept = {"Accept": "application/json"}
        described = http.get(f"/endpoint/x/{name}", headers=accept).json()
        facts = {item["name"]: item["value"] for item in described["parameters"]}
        assert facts == {
            "exchange_type": "fanout", "durable": "true", "auto_delete": "false",
            "internal": "false",
        }  # fmt: skip

    def test_put_exchange_of_no_type(self, http: httpx.Client, name: str) -> None:
        problem(http.put(f"/endpoint/x/{name}?amqp.exchange_type=nonsense"), 400)

    def test_what_is_given_is_compared(self, http: httpx.Client, topic_exchange: str) -> None:
        """RabbitHub never compares; a client that names a type relies on it."""
        path = f"/endpoint/{topic_exchange}"
        assert http.put(path).status_code == 204
        problem(http.put(f"{path}?amqp.exchange_type=direct"), 409)

    def test_put_queue(self, http: httpx.Client, warren: WarrenServer, name: str) -> None:
        made = http.put(f"/endpoint/q/{name}")
        assert made.status_code == 201
        assert made.headers["location"] == f"{warren.http_url}/endpoint/q/{name}"
        assert http.put(f"/endpoint/q/{name}").status_code == 204
        answer = http.put("/endpoint/q/amq.mine")
        problem(answer, 400)
        assert answer.json()["title"] == "Invalid queue name"

    def test_put_queue_without_a_name(self, http: httpx.Client, warren: WarrenServer) -> None:
        made = http.put("/endpoint/q/")
        assert made.status_code == 201
        path = made.headers["location"].removeprefix(warren.http_url)
        assert path.startswith("/endpoint/q/amq.gen-")
        assert http.delete(path).status_code == 204

    @pytest.mark.parametrize("kind", ["x", "q"])
    def test_delete(self, http: httpx.Client, name: str, kind: str) -> None:
        http.put(f"/endpoint/{kind}/{name}")
        assert http.delete(f"/endpoint/{kind}/{name}").status_code == 204
        problem(http.delete(f"/endpoint/{kind}/{name}"), 404)

    def test_the_default_exchange_stays(self, http: httpx.Client) -> None:
        problem(http.delete("/endpoint/x/"), 403)

    def test_post_exchange(self, http: httpx.Client, topic_exchange: str) -> None:
        """Accepted although nobody gets it."""
        answer = http.post(f"/endpoint/{topic_exchange}?hub.topic=a", content=b"1")
        assert (answer.status_code, answer.content) == (202, b"")
        problem(http.post("/endpoint/x/none", content=b"1"), 404)

    def test_post_queue(self, http: httpx.Client, queue: str) -> None:
        assert http.post(f"/endpoint/{queue}", content=b"1").status_code == 202
        assert ready(http, queue) == 1
        problem(http.post("/endpoint/q/none", content=b"1"), 404)

    @pytest.mark.parametrize("facet", ["endpoint", "subscribe"])
    @pytest.mark.parametrize("kind", ["x", "q"])
    def test_description(self, http: httpx.Client, name: str, facet: str, kind: str) -> None:
        http.put(f"/endpoint/{kind}/{name}")
        answer = http.get(f"/{facet}/{kind}/{name}")
        assert answer.headers["content-type"].startswith("text/xml")
        root = ElementTree.fromstring(answer.content)
        word = {"x": "exchange", "q": "queue"}[kind]
        assert (root.tag, root.findtext("class")) == ("application", f"amqp.{word}")
        assert root.findtext("name") == name
        (described,) = root.findall("facets/facet")
        assert described.get("name") == facet
        for action in described.findall("actions/action"):
            assert action.get("name")
            assert action.get("http.method")
            assert action.findtext("description")
        assert http.head(f"/{facet}/{kind}/{name}").status_code == 200
        problem(http.get(f"/{facet}/{kind}/none"), 404)

    @pytest.mark.parametrize("prefix", ["", "/%2F", "/rabbithub"])
    def test_description_names_its_stylesheet(
        self, http: httpx.Client, queue: str, prefix: str
    ) -> None:
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
    def test_description_is_negotiated(
        self, http: httpx.Client, queue: str, accept: str, kind: str
    ) -> None:
        answer = http.get(f"/endpoint/{queue}", headers={"Accept": accept})
        assert answer.headers["content-type"].partition(";")[0] == kind
        assert answer.headers["vary"] == "Accept"
        assert queue[2:] in answer.text

    def test_challenge_needs_the_hubs_own_token(self, http: httpx.Client, queue: str) -> None:
        use = "hub.mode=generate_token&hub.intended_use=subscribe"
        form = parse_qs(http.get(f"/endpoint/{queue}?{use}").text)
        (token,) = form["hub.verify_token"]
        given = {"hub.mode": "subscribe", "hub.challenge": "Zq1", "hub.verify_token": token}
        assert http.get(f"/endpoint/{queue}", params=given).text == "Zq1"
        for wrong in ({"hub.mode": "unsubscribe"}, {"hub.verify_token": "T"}):
            answer = http.get(f"/endpoint/{queue}", params=given | wrong)
            problem(answer, 400)
            assert answer.json()["title"] == "Bad hub.verify_token"
        problem(http.get(f"/endpoint/{queue}?hub.mode=generate_token"), 400)
        problem(http.get(f"/endpoint/q/none?{use}"), 404)

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
    def test_all_else_is_an_invalid_operation(
        self, http: httpx.Client, method: str, path: str
    ) -> None:
        http.put("/endpoint/q/in")
        problem(http.request(method, path), 400)

    def test_the_root(self, http: httpx.Client) -> None:
        assert http.get("/").status_code == 200
        answer = http.post("/", content=b"anything")
        assert (answer.status_code, answer.text) == (200, "You posted!")
        for method in ("PUT", "DELETE", "OPTIONS"):
            problem(http.request(method, "/"), 501)

    @pytest.mark.parametrize("path", ["/nothing", "/endpoint/z/a", "/static/none", "/endpoint/x"])
    def test_not_found(self, http: httpx.Client, path: str) -> None:
        problem(http.get(path), 404)

    def test_names_are_decoded_once(self, http: httpx.Client, name: str) -> None:
        """A slash in a name too, and a virtual host as `%2F`."""
        assert http.put(f"/endpoint/q/{name}%2Fb%252F").status_code == 201
        accept = {"Accept": "application/json"}
        for place in ("", "/%2F", "/%2f"):
            answer = http.get(f"{place}/endpoint/q/{name}%2Fb%252F", headers=accept)
            assert answer.json()["name"] == f"{name}/b%2F"

    def test_who_may(self, http: httpx.Client, plain: httpx.Client, queue: str) -> None:
        path = f"/endpoint/{queue}"
        bare = httpx.get(f"{plain.base_url}{path}")
        problem(bare, 401)
        assert bare.headers["www-authenticate"].startswith("Basic realm=")
        problem(httpx.get(f"{plain.base_url}{path}", auth=("guest", "wrong")), 401)
        problem(plain.get(path), 403)
        problem(plain.put(f"{path}2"), 403)
        problem(plain.delete(path), 403)
        problem(plain.post(path, content=b"1"), 403)
        problem(plain.get(f"{path}?hub.mode=generate_token&hub.intended_use=subscribe"), 403)
        form = hub("subscribe", "http://127.0.0.1:9/", "t")
        problem(plain.post(f"/subscribe/{queue}", data=form), 403)
        problem(plain.request("DELETE", f"/subscribe/{queue}", params=form), 403)
        problem(plain.get("/subscriptions"), 403)


class TestSection2Publishing:
    def publish(
        self,
        http: httpx.Client,
        source: str,
        callback: Callback,
        query: str = "",
        headers: dict[str, str] | None = None,
    ) -> Any:
        """What is delivered of it."""
        subscribe(http, source, callback.url)
        answer = http.post(f"/endpoint/{source}?{query}", content=b"\0body", headers=headers)
        assert (answer.status_code, answer.content) == (202, b"")
        (delivery,) = callback.wait(1)
        assert delivery.body == b"\0body"
        return delivery

    def test_topic_and_type(
        self, http: httpx.Client, topic_exchange: str, callback: Callback
    ) -> None:
        given = {"Content-Type": "text/x-own"}
        delivery = self.publish(http, topic_exchange, callback, "hub.topic=eu.fr", given)
        assert delivery.headers["X-AMQP-Routing-Key"] == "eu.fr"
        assert delivery.headers["Content-Type"] == "text/x-own"

    def test_nothing_given(self, http: httpx.Client, name: str, callback: Callback) -> None:
        http.put(f"/endpoint/x/{name}")
        delivery = self.publish(http, f"x/{name}", callback)
        assert delivery.headers["X-AMQP-Routing-Key"] == ""
        assert delivery.headers["Content-Type"] == "application/octet-stream"

    def test_a_queue_keeps_the_topic(
        self, http: httpx.Client, queue: str, callback: Callback
    ) -> None:
        delivery = self.publish(http, queue, callback, "hub.topic=k")
        assert delivery.headers["X-AMQP-Routing-Key"] == "k"
        assert delivery.headers["X-AMQP-Redelivered"] == "false"

    @pytest.mark.parametrize("kind", ["x", "q"])
    def test_message_headers(
        self, http: httpx.Client, name: str, kind: str, callback: Callback
    ) -> None:
        http.put(f"/endpoint/{kind}/{name}")
        given = {"x-rabbithub-msg_header": "a = 1, b=2"}
        delivery = self.publish(http, f"{kind}/{name}", callback, headers=given)
        assert delivery.headers["x-rabbithub-msg_header"] == "a = 1, b = 2"

    def test_configured_headers(self, http: httpx.Client, queue: str, callback: Callback) -> None:
        answer = http.post(f"/endpoint/{queue}", content=b"1", headers={"X-Correlation-Id": "c7"})
        assert answer.headers["X-Correlation-Id"] == "c7"
        assert answer.headers["X-Message-Id"]


class TestSection3Subscribing:
    def test_question(self, http: httpx.Client, topic_exchange: str, callback: Callback) -> None:
        url = f"{callback.url}?own=1"
        subscribe(
            http, topic_exchange, url, "eu.#", verify_token="tok", lease_seconds="600",
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
    def test_sync_failure(
        self, http: httpx.Client, topic_exchange: str, callback: Callback, refusal: Answer
    ) -> None:
        callback.refusal = refusal
        form = hub("subscribe", callback.url, "t")
        answer = http.post(f"/subscribe/{topic_exchange}", data=form)
        problem(answer, 400)
        assert answer.json()["title"] == "Request verification failed"
        assert listed(http, callback) == []

    def test_async(self, http: httpx.Client, topic_exchange: str, callback: Callback) -> None:
        form = hub("subscribe", callback.url, "t", verify="async")
        assert http.post(f"/subscribe/{topic_exchange}", data=form).status_code == 202
        wait_until(lambda: len(listed(http, callback)) == 1, 20, "subscription")

    @pytest.mark.parametrize("missing", ["hub.callback", "hub.topic", "hub.mode"])
    def test_missing(self, http: httpx.Client, topic_exchange: str, missing: str) -> None:
        form = hub("subscribe", "http://127.0.0.1:9/", "t")
        del form[missing]
        assert missing in problem(http.post(f"/subscribe/{topic_exchange}", data=form), 400)

    def test_json(self, http: httpx.Client, topic_exchange: str, callback: Callback) -> None:
        contact = {"app_name": "a", "contact_name": "b", "phone": "1", "email": "e"}
        wish = {
            "mode": "subscribe", "callback": callback.url, "topic": "t", "verify": "sync",
            "lease_seconds": 600, "max_tps": 50, "ha_mode": "all", "basic_auth": BASIC,
            "contact": contact,
        }  # fmt: skip
        answer = http.post(f"/subscribe/{topic_exchange}", json={"hub": wish})
        assert answer.status_code == 204, answer.text
        (found,) = listed(http, callback)
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
    def test_bad_values(
        self, http: httpx.Client, topic_exchange: str, option: str, value: str
    ) -> None:
        form = hub("subscribe", "http://127.0.0.1:9/", "t", **{option: value})
        problem(http.post(f"/subscribe/{topic_exchange}", data=form), 400)

    @pytest.mark.parametrize(
        ("asked", "granted"),
        [("1", 1), ("600", 600), ("0", 2_592_000), ("-5", 2_592_000), ("soon", 2_592_000),
         ("999999999999", 31_536_000), (None, 2_592_000)],
    )  # fmt: skip
    def test_lease(
        self, http: httpx.Client, queue: str, callback: Callback, asked: str | None, granted: int
    ) -> None:
        """No more than a year, which is http_contract.md 12; RabbitHub has 1000 of them."""
        more = {} if asked is None else {"lease_seconds": asked}
        subscribe(http, queue, callback.url, **more)
        (question,) = callback.verifications
        assert question.query["hub.lease_seconds"] == str(granted)

    def test_repeating_renews(self, http: httpx.Client, queue: str, callback: Callback) -> None:
        subscribe(http, queue, callback.url, lease_seconds="600", max_tps="1")
        (before,) = listed(http, callback)
        subscribe(http, queue, callback.url, lease_seconds="900", max_tps="2")
        (after,) = listed(http, callback)
        assert (after["id"], after["lease_seconds"], after["max_tps"]) == (before["id"], 900, 2)
        subscribe(http, queue, callback.url, "other label")
        assert len(listed(http, callback)) == 2

    def test_an_exchange_copies_and_a_queue_shares(
        self, http: httpx.Client, topic_exchange: str, queue: str
    ) -> None:
        with Callback() as one, Callback() as two:
            for callback in (one, two):
                subscribe(http, topic_exchange, callback.url)
                subscribe(http, queue, callback.url)
            http.post(f"/endpoint/{topic_exchange}?hub.topic=a", content=b"copy")
            assert [c.wait(1)[0].body for c in (one, two)] == [b"copy", b"copy"]
            for body in (b"1", b"2", b"3", b"4"):
                http.post(f"/endpoint/{queue}", content=body)
            wait_until(lambda: len(one.deliveries) + len(two.deliveries) == 6, 20, "deliveries")
            bodies = sorted(found.body for c in (one, two) for found in c.deliveries)
            assert bodies == [b"1", b"2", b"3", b"4", b"copy", b"copy"]

    def test_unsubscribe(self, http: httpx.Client, queue: str, callback: Callback) -> None:
        subscribe(http, queue, callback.url)
        form = hub("unsubscribe", callback.url, "#")
        assert http.post(f"/subscribe/{queue}", data=form).status_code == 204
        assert callback.verifications[-1].query["hub.mode"] == "unsubscribe"
        assert listed(http, callback) == []
        problem(http.post(f"/subscribe/{queue}", data=form), 404)

    def test_nobody_unsubscribes_others(
        self, http: httpx.Client, plain: httpx.Client, queue: str, callback: Callback
    ) -> None:
        subscribe(http, queue, callback.url)
        form = hub("unsubscribe", callback.url, "#")
        problem(plain.post(f"/subscribe/{queue}", data=form), 403)
        assert len(listed(http, callback)) == 1

    def test_delete_subscribe(self, http: httpx.Client, queue: str, callback: Callback) -> None:
        """The callback is not asked, but told (W: `hub.mode=denied`)."""
        subscribe(http, queue, callback.url)
        params = {"hub.callback": callback.url, "hub.topic": "#"}
        answer = http.delete(f"/subscribe/{queue}", params=params)
        assert answer.status_code == 200
        assert answer.json() == {"consumers": [{"node": "warren", "status": "removed"}]}
        problem(http.delete(f"/subscribe/{queue}", params=params), 404)
        problem(http.delete(f"/subscribe/{queue}"), 400)
        wait_until(lambda: bool(callback.denials), 20, "word of the end")
        assert callback.denials[0].query["hub.reason"]

    @pytest.mark.parametrize("source", ["x", "q"])
    @pytest.mark.parametrize("sink", ["x", "q"])
    def test_shortcut(self, http: httpx.Client, name: str, source: str, sink: str) -> None:
        """Bound without HTTP, by the hub's own token; listed, and with a lease (W)."""
        for path in (f"{source}/{name}-a", f"{sink}/{name}-b", f"q/{name}-end"):
            assert http.put(f"/endpoint/{path}").status_code == 201
        self.bind(http, f"{source}/{name}-a", f"{sink}/{name}-b")
        if sink == "x":
            self.bind(http, f"x/{name}-b", f"q/{name}-end")
        end = f"q/{name}-end" if sink == "x" else f"q/{name}-b"
        assert http.post(f"/endpoint/{source}/{name}-a", content=b"1").status_code == 202
        wait_until(lambda: ready(http, end) == 1, 20, "message")
        params = {"resource_name": f"{name}-a"}
        (found,) = http.get("/subscriptions", params=params).json()["subscriptions"]
        assert found["pseudo_queue"] == f"{name}-b"

    def bind(self, http: httpx.Client, source: str, sink: str) -> None:
        use = "hub.mode=generate_token&hub.intended_use=subscribe"
        (token,) = parse_qs(http.get(f"/endpoint/{sink}?{use}").text)["hub.verify_token"]
        form = hub("subscribe", f"{http.base_url}/endpoint/{sink}", "", verify_token=token)
        answer = http.post(f"/subscribe/{source}", data=form)
        assert answer.status_code == 204, answer.text

    def test_shortcut_with_another_callback(
        self, http: httpx.Client, topic_exchange: str, queue: str, callback: Callback
    ) -> None:
        """RabbitHub let a token subscribe any URL unverified."""
        use = "hub.mode=generate_token&hub.intended_use=subscribe"
        (token,) = parse_qs(http.get(f"/endpoint/{queue}?{use}").text)["hub.verify_token"]
        form = hub("subscribe", callback.url, "t", verify_token=token)
        problem(http.post(f"/subscribe/{topic_exchange}", data=form), 400)
        form = hub("unsubscribe", f"{http.base_url}/endpoint/{queue}", "t", verify_token=token)
        problem(http.post(f"/subscribe/{topic_exchange}", data=form), 400)
        assert callback.requests == []


class TestSection4Delivery:
    def test_post(self, http: httpx.Client, topic_exchange: str, callback: Callback) -> None:
        subscribe(http, topic_exchange, f"{callback.url}?own=1", basic_auth=BASIC)
        http.post(
            f"/endpoint/{topic_exchange}?hub.topic=a%26b&amqp.message_id=m1", content=b"\xff\0"
        )
        (delivery,) = callback.wait(1)
        assert (delivery.method, delivery.body) == ("POST", b"\xff\0")
        assert delivery.raw_path == "/callback?own=1&hub.topic=a%26b"
        assert delivery.headers["Authorization"] == f"Basic {BASIC}"
        assert delivery.headers["X-AMQP-Exchange"] == topic_exchange[2:]
        assert delivery.headers["message-id"] == "m1"

    def test_failure_keeps_the_subscription(
        self, http: httpx.Client, queue: str, callback: Callback
    ) -> None:
        """RabbitHub removed it at the first error; here it is tried again (http_contract 16)."""
        callback.script(500)
        subscribe(http, queue, callback.url)
        http.post(f"/endpoint/{queue}", content=b"1")
        first, again = callback.wait(2, timeout_s=20)
        assert first.headers["webhook-id"] == again.headers["webhook-id"]
        assert again.headers["X-AMQP-Redelivered"] == "true"
        (found,) = listed(http, callback)
        assert found["status"] == "active"


class TestSection5Administration:
    def item(self, queue: str, callback: str, **more: Any) -> dict[str, Any]:
        names = {"vhost": "/", "resource_type": "queue", "resource_name": queue[2:]}
        return {**names, "topic": "t", "callback": callback, **more}

    def test_listing(self, http: httpx.Client, queue: str, callback: Callback) -> None:
        subscribe(http, queue, callback.url, "t", lease_seconds="600", app_name="a")
        (found,) = listed(http, callback)
        left_s = found["lease_expiry_time_microsec"] / 1e6 - time.time()
        assert 0 < left_s <= 600
        expected = self.item(
            queue, callback.url, lease_seconds=600, ha_mode="none", status="active", max_tps=0,
            pseudo_queue=None, outbound_auth=None,
        )  # fmt: skip
        assert {key: found[key] for key in expected} == expected
        assert found["contact"]["app_name"] == "a"
        soon = http.get("/subscriptions?hub.expires=1").json()["subscriptions"]
        assert found["id"] in [one["id"] for one in soon]

    @pytest.mark.parametrize("place", ["", "/%2F"])
    def test_one(self, http: httpx.Client, queue: str, callback: Callback, place: str) -> None:
        subscribe(http, queue, callback.url, "t")
        path, params = f"{place}/subscriptions/{queue}", hub("", callback.url, "t")
        del params["hub.mode"]
        (found,) = http.get(path, params=params).json()["subscriptions"]
        assert found["callback"] == callback.url
        problem(http.get(path), 400)
        problem(http.get(path, params=params | {"hub.topic": "u"}), 404)

    @pytest.mark.parametrize("path", ["/subscriptions", "/api/hub/subscriptions/batch"])
    def test_batch(self, http: httpx.Client, queue: str, callback: Callback, path: str) -> None:
        items = [
            self.item(queue, callback.url),
            self.item(queue, callback.url, topic="u", status="inactive"),
            self.item("q/none", callback.url),
        ]
        answer = http.post(path, json={"subscriptions": items})
        assert answer.status_code == 202
        results = answer.json()["rabbithub_batch_results"]
        assert [result["topic"] for result in results] == ["t", "u", "t"]
        assert all(result["status"]["consumers"] for result in results)
        assert results[2]["error"]["status"] == 404

        def statuses() -> list[str]:
            return [one["status"] for one in listed(http, callback)]

        wait_until(lambda: statuses() == ["active", "inactive"], 20, "subscriptions")
        assert [one.query["hub.topic"] for one in callback.verifications] == ["t"]

    @pytest.mark.parametrize("path", ["/subscriptions", "/api/hub/subscriptions/batch"])
    def test_batch_of_no_json(self, http: httpx.Client, path: str) -> None:
        assert http.post(path, content=b"{").status_code == 400

    def test_errors(self, http: httpx.Client, queue: str, callback: Callback) -> None:
        callback.default = Answer(503)
        began = time.time()
        subscribe(http, queue, callback.url, "t")
        http.post(f"/endpoint/{queue}", content=b"1")

        def errors() -> list[dict[str, Any]]:
            found = http.get("/subscriptions/errors", params={"callback": callback.url}).json()
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
        subscribe(http, queue, callback.url, "t")
        assert http.get("/api/hub/errors").status_code == 200

    def test_deactivate_and_reactivate(
        self, http: httpx.Client, queue: str, callback: Callback
    ) -> None:
        subscribe(http, queue, callback.url, "t")
        (found,) = listed(http, callback)
        path = f"/api/hub/subscriptions/{found['id']}"
        assert http.post(f"{path}/pause").json()["status"] == "inactive"
        http.post(f"/endpoint/{queue}", content=b"1")
        assert (ready(http, queue), callback.deliveries) == (1, [])
        assert http.post(f"{path}/resume").json()["status"] == "active"
        callback.wait(1)

    def test_subscribing_reactivates(
        self, http: httpx.Client, queue: str, callback: Callback
    ) -> None:
        subscribe(http, queue, callback.url, "t")
        (found,) = listed(http, callback)
        http.post(f"/api/hub/subscriptions/{found['id']}/pause")
        subscribe(http, queue, callback.url, "t")
        (again,) = listed(http, callback)
        assert (again["id"], again["status"]) == (found["id"], "active")

    def test_add_on_paths(self, http: httpx.Client, queue: str, callback: Callback) -> None:
        url = str(httpx.QueryParams({"": callback.url}))[1:]
        path = f"/api/hub/subscriptions/%2F/queue/{queue[2:]}/t/{url}"
        assert http.get(path).status_code == 404
        assert http.put(path, json={"lease_seconds": 600}).status_code == 201
        assert len(callback.verifications) == 1
        (found,) = http.get(path).json()["subscriptions"]
        assert (found["lease_seconds"], found["topic"]) == (600, "t")
        consumers = http.get("/api/hub/consumers").json()["consumers"]
        assert callback.url in [one["callback"] for one in consumers]
        assert http.put(path).status_code == 204
        assert http.put(path, json={"status": "inactive"}).status_code == 204
        assert [one["status"] for one in listed(http, callback)] == ["inactive"]
        assert http.delete(path).status_code == 204
        assert listed(http, callback) == []

    def test_all_of_it_outlives_kill_9(self, callback: Callback) -> None:
        with WarrenServer(dev=True) as server:
            with httpx.Client(base_url=server.http_url, auth=("guest", "guest")) as http:
                assert http.put("/endpoint/q/in").status_code == 201
                given = {"basic_auth": BASIC, "secret": "s", "app_name": "a", "max_tps": "9"}
                subscribe(http, "q/in", callback.url, "active", **given)
                subscribe(http, "q/in", callback.url, "paused", ha_mode="2")
                (found,) = (one for one in listed(http, callback) if one["topic"] == "paused")
                assert http.post(f"/api/hub/subscriptions/{found['id']}/pause").status_code == 200
                items = [self.item("q/in", callback.url, topic="unasked", status="inactive")]
                assert http.post("/subscriptions", json={"subscriptions": items}).is_success
                before = listed(http, callback)
            server.kill()
            server.start()
            with httpx.Client(base_url=server.http_url, auth=("guest", "guest")) as http:
                assert listed(http, callback) == before
                assert [one["status"] for one in before] == ["active", "inactive", "inactive"]
        assert [one.query["hub.topic"] for one in callback.verifications] == ["active", "paused"]

    def test_environment(self, http: httpx.Client) -> None:
        found = http.get("/api/hub/environment").json()["environment"]
        assert found["default_lease_s"] == 2_592_000
        assert found["allow_loopback"] is True
