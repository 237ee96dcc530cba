"""The HTTP contract point by point (http_contract.md 1-17), and RabbitHub's worked exchanges.

Black box: HTTP and AMQP to a real server. What tests/conformance/test_rabbithub.py,
test_four_pairs.py and test_bad_input_http.py hold already is not said again here.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from email.utils import formatdate
from urllib.parse import quote
from xml.etree import ElementTree

import httpx
import pika
import pytest

from tests.app.support import problem
from tests.support.http import Answer, Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.times import seconds

from .webhooks import AUTH, JSON, WAIT_S, Site, SteppedCallback, form, story, telling

pytestmark = pytest.mark.differs("RabbitMQ has RabbitHub only as a plugin of long ago")

OTHER = "other/one"
IN_OTHER = "/" + quote(OTHER, safe="")
BASE_PATH = "/some/base"
NOWHERE = "http://127.0.0.1:9/"
"""A callback that is never asked."""


@pytest.fixture(scope="module")
def warren() -> Iterator[WarrenServer]:
    with WarrenServer(dev=True, args=["--base-path", BASE_PATH]) as server:
        yield server
        assert "Traceback" not in server.output(), server.output()


def test_options_of_the_server(warren: WarrenServer) -> None:
    """RFC 9110 9.3.7, without credentials too."""
    whole = {"target": b"*"}
    with httpx.Client(base_url=warren.http_url) as http:
        asked = http.request("OPTIONS", "/", extensions=whole)
        refused = http.request("GET", "/", extensions=whole)
    assert asked.status_code == 204 and "POST" in asked.headers["Allow"]
    assert refused.status_code == 400 and "OPTIONS" in refused.text


@pytest.fixture(scope="module")
def site(warren: WarrenServer) -> Iterator[Site]:
    with Site(warren) as site:
        assert site.http.put(f"/api/vhosts/{quote(OTHER, safe='')}").status_code == 201
        yield site


@pytest.fixture(scope="module", autouse=True)
def told(site: Site, request: pytest.FixtureRequest) -> Iterator[dict[str, Future[None]]]:
    with telling(site, request) as told:
        yield told


@contextmanager
def user(site: Site, tags: str = "", vhost: str = "/", **rights: str) -> Iterator[httpx.Client]:
    """A user with these rights and no others; without any in no virtual host."""
    name = site.name()
    site.http.put(f"/api/users/{name}", json={"password": name, "tags": tags})
    if rights:
        given = {"configure": "^$", "write": "^$", "read": "^$"} | rights
        path = f"/api/permissions/{quote(vhost, safe='')}/{name}"
        assert site.http.put(path, json=given).is_success
    with httpx.Client(base_url=site.server.http_url, auth=(name, name), timeout=WAIT_S) as http:
        yield http


# -- 1: what PUT takes


@pytest.mark.parametrize("yes", ["true", "1"])
@pytest.mark.parametrize("no", ["false", "0"])
def test_01_flags(site: Site, yes: str, no: str) -> None:
    exchange = site.exchange(durable=no, auto_delete=yes, internal=yes)
    facts = site.get_description(exchange)
    assert {name: facts[name] for name in ("exchange_type", "durable")} == {
        "exchange_type": "topic", "durable": "false",
    }  # fmt: skip
    assert (facts["auto_delete"], facts["internal"]) == ("true", "true")
    queue = site.queue(durable=no, auto_delete=yes)
    facts = site.get_description(queue)
    assert (facts["durable"], facts["auto_delete"]) == ("false", "true")


@pytest.mark.parametrize("word", ["yes", "TRUE", "", "2"])
@pytest.mark.parametrize("flag", ["durable", "auto_delete"])
@pytest.mark.parametrize("kind", ["x", "q"])
def test_01_other_words_are_refused(site: Site, kind: str, flag: str, word: str) -> None:
    path = f"/endpoint/{kind}/{site.name()}"
    assert flag in problem(site.http.put(path, params={flag: word}), 400)
    problem(site.http.get(path), 404)


def test_01_arguments_have_types(site: Site) -> None:
    """A redeclare over AMQP is equal only if each known argument is of its type."""
    queue = site.queue(
        **{
            "arg.x-max-length": "5", "arg.x-single-active-consumer": "true",
            "arg.x-dead-letter-exchange": "amq.fanout", "arg.own": "-5", "arg.empty": "",
            "arg.other": "false",
        }
    )  # fmt: skip
    arguments = {
        "x-max-length": 5, "x-single-active-consumer": True,
        "x-dead-letter-exchange": "amq.fanout", "own": "-5", "empty": "", "other": False,
    }  # fmt: skip
    with site.amqp() as channel:
        channel.queue_declare(queue[2:], durable=True, arguments=arguments)
        other = arguments | {"x-max-length": 6}
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
            channel.queue_declare(queue[2:], durable=True, arguments=other)
        assert closed.value.reply_code == 406


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        ("x", {"amqp.exchange_type": "direct"}),
        ("x", {"durable": "false"}),
        ("x", {"auto_delete": "1"}),
        ("x", {"internal": "true"}),
        ("x", {"arg.alternate-exchange": "other"}),
        ("q", {"durable": "0"}),
        ("q", {"auto_delete": "true"}),
        ("q", {"arg.x-max-length": "6"}),
        ("q", {"arg.x-message-ttl": "6"}),
    ],
)
def test_01_given_attributes_are_compared(site: Site, kind: str, query: dict[str, str]) -> None:
    source = site.exchange() if kind == "x" else site.queue(**{"arg.x-max-length": "5"})
    problem(site.http.put(f"/endpoint/{source}", params=query), 409)


def test_01_absent_attributes_are_not_compared(site: Site) -> None:
    exchange = site.exchange(durable="false", auto_delete="true")
    queue = site.queue(**{"durable": "false", "arg.x-max-length": "5"})
    for source in (exchange, queue):
        assert site.http.put(f"/endpoint/{source}").status_code == 204
        assert site.http.put(f"/endpoint/{source}?durable=0").status_code == 204
    assert site.http.put(f"/endpoint/{queue}?arg.x-max-length=5").status_code == 204


# -- 2: names


def test_02_reserved_names(site: Site) -> None:
    problem(site.http.put("/endpoint/q/amq.own"), 400)
    problem(site.http.put("/endpoint/x/amq.own"), 403)
    for name in ("amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match"):
        problem(site.http.delete(f"/endpoint/x/{name}"), 403)
        assert site.http.get(f"/endpoint/x/{name}").status_code == 200


def test_02_a_slash_in_name_and_vhost(site: Site) -> None:
    path = f"{IN_OTHER}/endpoint/q/a%2Fb%2520"
    assert site.http.put(path).status_code == 201
    with site.amqp(OTHER) as channel:
        channel.queue_declare("a/b%20", passive=True)
    assert site.http.delete(path).status_code == 204


def test_02_delete_only_if(site: Site) -> None:
    exchange, queue = site.exchange(), site.queue()
    with site.amqp() as channel:
        channel.queue_bind(queue[2:], exchange[2:], "#")
        channel.basic_consume(queue[2:], lambda *_: None)
        problem(site.http.delete(f"/endpoint/{exchange}?if-unused=true"), 409)
        problem(site.http.delete(f"/endpoint/{queue}?if-unused=1"), 409)
    wait_until(
        lambda: site.http.delete(f"/endpoint/{queue}?if-unused=0&if-empty=1").status_code == 204,
        WAIT_S,
        "the end of the consumer",
    )
    assert site.http.delete(f"/endpoint/{exchange}?if-unused=true").status_code == 204
    queue = site.queue()
    site.publish(queue)
    problem(site.http.delete(f"/endpoint/{queue}?if-empty=true"), 409)
    assert site.depth(queue) == 1
    assert site.http.delete(f"/endpoint/{queue}").status_code == 204


# -- 3: where what was made is


@pytest.mark.parametrize("prefix", ["", "/%2F", "/rabbithub", BASE_PATH, f"{BASE_PATH}/%2f"])
def test_03_location(site: Site, prefix: str) -> None:
    for kind in "xq":
        made = site.http.put(f"{prefix}/endpoint/{kind}/{site.name()}%2Fa")
        assert made.status_code == 201
        where = made.headers["location"]
        assert "/%2F/endpoint" not in where
        assert "/%2f/endpoint" not in where
        assert where.endswith("%2Fa")
        assert httpx.get(where, auth=AUTH).status_code == 200


def test_03_location_in_another_vhost(site: Site) -> None:
    base_url = site.server.http_url
    made = site.http.put(f"{IN_OTHER}/endpoint/x/{site.name()}")
    assert made.headers["location"].startswith(f"{base_url}{IN_OTHER}/endpoint/x/")
    made = site.http.put(f"{IN_OTHER}/endpoint/q/")
    assert made.status_code == 201
    where = made.headers["location"]
    assert where.startswith(f"{base_url}{IN_OTHER}/endpoint/q/")
    name = where.rpartition("/")[2]
    assert name
    with site.amqp(OTHER) as channel:
        channel.queue_declare(name, passive=True)
    problem(site.http.get(f"/endpoint/q/{name}"), 404)
    assert httpx.post(where, auth=AUTH, content=b"1").status_code == 202


def test_03_each_unnamed_queue_gets_its_own_name(site: Site) -> None:
    places = {site.http.put("/endpoint/q/").headers["location"] for _ in range(3)}
    assert len(places) == 3


# -- 4: who

REQUESTS = [
    ("PUT", "/endpoint/x/{}"), ("PUT", "/endpoint/q/{}"), ("DELETE", "/endpoint/q/{}"),
    ("POST", "/endpoint/q/{}"), ("POST", "/endpoint/x/amq.topic"), ("GET", "/endpoint/q/{}"),
    ("GET", "/subscribe/x/amq.topic"),
    ("GET", "/endpoint/q/{}?hub.mode=generate_token&hub.intended_use=subscribe"),
    ("POST", "/subscribe/x/amq.topic?hub.mode=subscribe&hub.callback=http://127.0.0.1:9/&hub.topic=a"),
    ("DELETE", "/subscribe/x/amq.topic?hub.callback=http://127.0.0.1:9/&hub.topic=a"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_04_credentials(site: Site, method: str, path: str) -> None:
    path = path.format(site.queue()[2:])
    known, unknown = site.name(), site.name()  # of the test's own: failed logins are counted
    site.http.put(f"/api/users/{known}", json={"password": "right", "tags": ""})
    for auth in (None, (known, "wrong"), (unknown, "guest")):
        answer = httpx.request(method, site.server.http_url + path, auth=auth)
        problem(answer, 401)
        assert answer.headers["www-authenticate"].startswith("Basic ")


@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_04_virtual_hosts(site: Site, method: str, path: str) -> None:
    problem(site.http.request(method, "/no-such" + path.format("a")), 404)
    with user(site, configure=".*", write=".*", read=".*") as stranger:
        problem(stranger.request(method, IN_OTHER + path.format("a")), 403)


@pytest.mark.parametrize("header", ["Bearer abc", "Basic", "Basic !!!", "Basic Z3Vlc3Q="])
def test_04_no_such_credentials(site: Site, header: str) -> None:
    """RabbitHub answered another scheme with 500."""
    answer = httpx.get(
        f"{site.server.http_url}/endpoint/x/amq.topic", headers={"Authorization": header}
    )
    problem(answer, 401)


def test_04_a_colon_in_a_password(site: Site) -> None:
    """RabbitHub answered 500."""
    site.http.put("/api/users/colon", json={"password": "a:b:c", "tags": ""})
    rights = {"configure": "", "write": "", "read": ".*"}
    site.http.put("/api/permissions/%2F/colon", json=rights)
    url = f"{site.server.http_url}/endpoint/x/amq.topic"
    assert httpx.get(url, auth=("colon", "a:b:c")).status_code == 200


# -- 5: descriptions


def test_05_names_are_text_in_every_form(site: Site) -> None:
    name = "<script>alert(1)</script>&\"'"
    path = f"/endpoint/q/{quote(name, safe='')}"
    assert site.http.put(path).status_code == 201
    assert "<script>alert" not in site.http.get(path, headers={"Accept": "text/html"}).text
    assert ElementTree.fromstring(site.http.get(path).content).findtext("name") == name
    assert site.http.get(path, headers=JSON).json()["name"] == name


# -- 6: persistence


@pytest.mark.parametrize(
    ("query", "mode"),
    [({}, 2), ({"hub.persistmsg": "0"}, 1), ({"hub.persistmsg": "false"}, 1),
     ({"hub.persistmsg": "1"}, 2), ({"hub.persistmsg": "true"}, 2),
     ({"hub.persistmsg": "0", "amqp.delivery_mode": "2"}, 2)],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["x", "q"])
def test_06_persistent_unless(site: Site, kind: str, query: dict[str, str], mode: int) -> None:
    queue = site.queue()
    site.publish(bound(site, queue) if kind == "x" else queue, query=query)
    _, properties, body = site.taken(queue)
    assert (properties.delivery_mode, body) == (mode, b"1")


def bound(site: Site, queue: str) -> str:
    """An exchange of which the queue gets all."""
    exchange = site.exchange()
    with site.amqp() as channel:
        channel.queue_bind(queue[2:], exchange[2:], "#")
    return exchange


def test_06_other_words(site: Site) -> None:
    problem(site.http.post(f"/endpoint/{site.queue()}?hub.persistmsg=maybe", content=b"1"), 400)


# -- 7: properties

PROPERTIES = {
    "content_type": "text/x-query", "content_encoding": "own", "correlation_id": "c/1",
    "reply_to": "somewhere", "expiration": "60000", "message_id": "m é",
    "type": "kind", "user_id": "guest", "app_id": "app",
}  # fmt: skip
NUMBERS = {"delivery_mode": 1, "priority": 7, "timestamp": 1_700_000_000}


@pytest.mark.parametrize("kind", ["x", "q"])
def test_07_properties_in_the_query_override_headers(site: Site, kind: str) -> None:
    queue = site.queue()
    source = bound(site, queue) if kind == "x" else queue
    query = {f"amqp.{name}": str(value) for name, value in {**PROPERTIES, **NUMBERS}.items()}
    headers = {
        "Content-Type": "text/x-header", "X-Amqp-Priority": "1", "X-Amqp-Type": "other",
        "X-Amqp-Correlation-Id": "other",
    }  # fmt: skip
    answer = site.http.post(f"/endpoint/{source}", params=query, headers=headers, content=b"1")
    assert answer.status_code == 202, answer.text
    _, properties, _ = site.taken(queue)
    found = {name: getattr(properties, name) for name in {**PROPERTIES, **NUMBERS}}
    assert found == {**PROPERTIES, **NUMBERS}


def test_07_each_property_by_header(site: Site) -> None:
    """It wins over the plain field."""
    queue, given = site.queue(), {**PROPERTIES, **NUMBERS}
    headers = [
        (f"X-Amqp-{name.replace('_', '-').title()}".encode(), str(value).encode())
        for name, value in given.items()
    ]
    headers.append((b"Content-Type", b"text/plain"))
    answer = site.http.post(f"/endpoint/{queue}", headers=headers, content=b"1")
    assert answer.status_code == 202, answer.text
    _, properties, _ = site.taken(queue)
    assert {name: getattr(properties, name) for name in given} == given


@pytest.mark.parametrize("kind", ["x", "q"])
def test_07_message_headers(site: Site, kind: str) -> None:
    queue = site.queue()
    source = bound(site, queue) if kind == "x" else queue
    headers = [
        (b"x-rabbithub-msg_header", b"a = 1, b=2"),
        (b"X-Amqp-Header-Own-One", b"with space, comma"),
        (b"x-amqp-header-two", "é".encode()),
    ]
    answer = site.http.post(f"/endpoint/{source}", headers=headers, content=b"1")
    assert answer.status_code == 202, answer.text
    _, properties, _ = site.taken(queue)
    found = {name.lower(): value for name, value in properties.headers.items()}
    assert found == {"a": "1", "b": "2", "own-one": "with space, comma", "two": "é"}


def test_07_absent_content_type_is_not_added(site: Site) -> None:
    queue = site.queue()
    site.publish(queue, b"")
    _, properties, body = site.taken(queue)
    assert (properties.content_type, properties.headers or {}, body) == (None, {}, b"")


@pytest.mark.parametrize(
    "query",
    ["amqp.priority=256", "amqp.priority=-1", "amqp.delivery_mode=3", "amqp.timestamp=soon",
     "amqp.expiration=soon", "amqp.expiration=-1", "amqp.nonsense=1", "amqp.type=%00",
     "amqp.message_id=" + 256 * "a", "amqp.mandatory=perhaps", "amqp.priority=x",
     "amqp.priority=%D9%A1", "amqp.timestamp=18446744073709551615", "amqp.headers=a",
     "amqp.timestamp=" + 100 * "9", "amqp.message_id=a%0D%0Ab", "amqp.correlation_id=a%00b",
     "amqp.type=%FF", "amqp.user_id=other", "hub.topic=%FF", "hub.mode=publish",
     "&".join(f"a{number}=b" for number in range(101))],
)  # fmt: skip
@pytest.mark.parametrize("source", ["x/amq.topic", "q"])
def test_07_invalid_values(site: Site, source: str, query: str) -> None:
    source = source if source != "q" else site.queue()
    answer = site.http.post(f"/endpoint/{source}?{query}", content=b"1")
    assert 400 <= answer.status_code < 500, answer.status_code
    assert answer.headers["content-type"] == "application/problem+json"
    if source.startswith("q"):
        assert site.depth(source) == 0


# -- 8 and 9: mandatory, topics of queues


def test_08_mandatory(site: Site) -> None:
    exchange, queue = site.exchange(), site.queue()
    path = f"/endpoint/{exchange}?amqp.mandatory=true&hub.topic=a"
    problem(site.http.post(path, content=b"1"), 404)
    assert site.http.post(path.replace("=true", "=false"), content=b"1").status_code == 202
    with site.amqp() as channel:
        channel.queue_bind(queue[2:], exchange[2:], "a")
    assert site.http.post(path, content=b"1").status_code == 202
    assert site.depth(queue) == 1
    site.publish(queue, query={"amqp.mandatory": "true"})
    assert site.depth(queue) == 2


@pytest.mark.parametrize("key", ["", "eu.fr", "é ü/#", 255 * "a"])
def test_09_topic_is_the_routing_key(site: Site, key: str) -> None:
    queue = site.queue()
    site.publish(queue, topic=key)
    method, properties, _ = site.taken(queue)
    assert method.routing_key == key
    assert "x-hub-topic" not in (properties.headers or {})


def test_09_a_topic_that_is_too_long(site: Site) -> None:
    params = {"hub.topic": 256 * "a"}
    problem(site.http.post("/endpoint/x/amq.topic", params=params, content=b"1"), 400)


# -- 10: what is not taken


@pytest.mark.parametrize("kind", ["x", "q"])
def test_10_rejected_by_a_full_queue(site: Site, kind: str) -> None:
    queue = site.queue(**{"arg.x-max-length": "1", "arg.x-overflow": "reject-publish"})
    source = bound(site, queue) if kind == "x" else queue
    site.publish(source, b"first")
    answer = site.http.post(f"/endpoint/{source}", content=b"second")
    problem(answer, 503)
    assert int(answer.headers["retry-after"]) > 0
    assert site.taken(queue)[2] == b"first"
    site.publish(source, b"third")


def test_10_disk_alarm() -> None:
    """Subscribing and all else goes on. (Memory: tests/app/test_alarms.py.)"""
    with (
        WarrenServer(dev=True, args=["--disk-free-limit", "1000TiB"]) as server,
        Site(server) as site,
        Callback() as callback,
    ):
        queue = site.queue()
        problem(site.http.post(f"/endpoint/{queue}", content=b"1"), 507)
        site.subscribe(queue, callback)
        assert len(site.listed(callback)) == 1
        assert site.http.delete(f"/endpoint/{queue}").status_code == 204


# -- 11: what subscribing refuses


@pytest.mark.parametrize(
    "url",
    ["", "callback", "/callback", "ftp://127.0.0.1/", "http://", "http:///a", "//127.0.0.1/a",
     "http://user@127.0.0.1/", "http://127.0.0.1:99999/", "http://127.0.0.1:port/",
     "javascript:alert(1)", "http://127.0.0.1/\r\nX: 1", "http://[::1/", "http://exa mple/"],
)  # fmt: skip
def test_11_invalid_callbacks(site: Site, url: str) -> None:
    given = form("subscribe", url, "a")
    assert "hub.callback" in problem(site.http.post("/subscribe/x/amq.topic", data=given), 422)


@pytest.mark.parametrize(
    "mode", [None, "", "publish", "Subscribe", "generate_token", "subscribe,unsubscribe"]
)
def test_11_modes(site: Site, mode: str | None) -> None:
    """RabbitHub never answered a body without one."""
    given = form(mode or "", NOWHERE, "a")
    if mode is None:
        del given["hub.mode"]
    problem(site.http.post("/subscribe/x/amq.topic", data=given), 400)


@pytest.mark.parametrize(
    "option",
    [{"verify": "carrier"}, {"signature_method": "md5"}, {"format": "xml"}, {"order": "any"},
     {"in_flight": "1001"}, {"max_tps": "x"}, {"secret": 200 * "s"}, {"ha_mode": "x"},
     {"basic_auth": "x"}, {"contact_name": "without an app"}],
)  # fmt: skip
def test_11_unknown_values(site: Site, callback: Callback, option: dict[str, str]) -> None:
    (name,) = option
    given = form("subscribe", callback.url, "a", **option)
    answer = site.http.post("/subscribe/x/amq.topic", data=given)
    field = {"contact_name": "app_name"}.get(name, name)
    assert f"hub.{field}" in problem(answer, 400)
    assert callback.requests == []


@pytest.mark.parametrize(
    ("kind", "status"),
    [("application/x-www-form-urlencoded", 204),
     ("application/x-www-form-urlencoded; charset=utf-8", 204),
     ("Application/X-WWW-Form-Urlencoded;charset=UTF-8", 204),
     ("text/plain", 415), ("application/xml", 415), ("multipart/form-data; boundary=a", 415),
     (None, 204)],
)  # fmt: skip
def test_11_content_types(site: Site, callback: Callback, kind: str | None, status: int) -> None:
    body = f"hub.mode=subscribe&hub.topic=a&hub.callback={quote(callback.url, safe='')}"
    headers = {} if kind is None else {"Content-Type": kind}
    answer = site.http.post("/subscribe/x/amq.topic", content=body.encode(), headers=headers)
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize("source", ["x/none", "q/none"])
@pytest.mark.parametrize("mode", ["subscribe", "unsubscribe"])
def test_11_no_such_source(site: Site, callback: Callback, source: str, mode: str) -> None:
    problem(site.http.post(f"/subscribe/{source}", data=form(mode, callback.url, "a")), 404)
    assert callback.requests == []


def test_11_query_or_body(site: Site, callback: Callback) -> None:
    """All in the query or all in the body, never merged (rabbithub.md 3)."""
    whole = form("subscribe", callback.url, "a")
    assert site.http.post("/subscribe/x/amq.topic", params=whole).status_code == 204
    assert len(site.listed(callback)) == 1
    half = {name: whole.pop(name) for name in ("hub.mode", "hub.topic")}
    problem(site.http.post("/subscribe/x/amq.topic", params=half, data=whole), 400)


def test_11_repeated_verify(site: Site, callback: Callback) -> None:
    """The first of them that is known."""
    pairs = [*form("subscribe", callback.url, "a").items()]
    pairs += [("hub.verify", "carrier"), ("hub.verify", "async,sync")]
    body = "&".join(f"{name}={quote(value, safe='')}" for name, value in pairs)
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = site.http.post("/subscribe/x/amq.topic", content=body.encode(), headers=kind)
    assert answer.status_code == 202
    wait_until(lambda: bool(site.listed(callback)), WAIT_S, "subscription")


# -- 12: leases and secrets


@pytest.mark.parametrize("kind", ["x", "q"])
def test_12_a_secret_signs(site: Site, callback: Callback, kind: str) -> None:
    source = site.exchange() if kind == "x" else site.queue()
    site.subscribe(source, callback, secret="s3cret")
    site.publish(source, b"body")
    (delivery,) = callback.wait(1)
    digest = hmac.new(b"s3cret", b"body", hashlib.sha256).hexdigest()
    assert delivery.headers["X-Hub-Signature"] == f"sha256={digest}"
    assert "s3cret" not in json.dumps(site.listed(callback))


@story
def test_12_the_end_of_a_lease_ends_the_subscription(site: Site) -> None:
    """For exchange and queue, and the callback is told (rabbithub.md 8)."""
    with Callback() as of_exchange, Callback() as of_queue:
        exchange, queue = site.exchange(), site.queue()
        site.subscribe(exchange, of_exchange, lease_seconds="1")
        site.subscribe(queue, of_queue, lease_seconds="1")
        wait_until(lambda: bool(of_exchange.denials), WAIT_S, "word of the end")
        wait_until(lambda: bool(of_queue.denials), WAIT_S, "word of the end")
        for source, callback in ((exchange, of_exchange), (queue, of_queue)):
            assert callback.denials[0].query["hub.reason"]
            assert site.listed(callback) == []
            site.publish(source)
        assert site.depth(queue) == 1
        assert of_exchange.deliveries == of_queue.deliveries == []


# -- 13: tokens and shortcuts


def test_13_every_name_of_the_own_endpoint(site: Site) -> None:
    port = site.server.http_port
    source = site.exchange()
    for host in (f"127.0.0.1:{port}", f"LOCALHOST:{port}"):
        for prefix in ("", "/%2F", "/rabbithub", BASE_PATH):
            sink = site.queue()
            url = f"http://{host}{prefix}/endpoint/{sink}"
            given = form("subscribe", url, "a", verify_token=site.token(sink))
            headers = {"Host": host}
            answer = site.http.post(f"/subscribe/{source}", data=given, headers=headers)
            assert answer.status_code == 204, (url, answer.text)
            site.publish(source, topic="a")
            assert site.depth(sink) == 1, url


@pytest.mark.parametrize("wrong", ["other resource", "other callback", "no token", "bad token"])
def test_13_a_token_is_for_its_own_endpoint(site: Site, callback: Callback, wrong: str) -> None:
    source, sink, other = site.exchange(), site.queue(), site.queue()
    own = f"{site.server.http_url}/endpoint/{sink}"
    token = site.token(other if wrong == "other resource" else sink)
    token = {"bad token": token[:-4] + "AAAA"}.get(wrong, token)
    given = form("subscribe", callback.url if wrong == "other callback" else own, "#")
    if wrong != "no token":
        given["hub.verify_token"] = token
    answer = site.http.post(f"/subscribe/{source}", data=given)
    assert answer.status_code in ((400,) if wrong.startswith("other") else (400, 422))
    assert callback.requests == []
    site.publish(source)
    assert (site.depth(sink), site.depth(other)) == (0, 0)
    assert site.listed(own) == site.listed(callback) == []


def test_13_rights(site: Site) -> None:
    """Write on the sink, read on the source."""
    source, sink = site.exchange(), site.queue()
    given = form(
        "subscribe", f"{site.server.http_url}/endpoint/{sink}", "a", verify_token=site.token(sink)
    )
    with user(site, write=".*") as writer, user(site, read=".*") as reader:
        problem(writer.post(f"/subscribe/{source}", data=given), 403)
        problem(reader.post(f"/subscribe/{source}", data=given), 403)
    assert site.listed(given["hub.callback"]) == []
    with user(site, write=".*", read=".*") as both:
        assert both.post(f"/subscribe/{source}", data=given).status_code == 204
    site.publish(source, topic="a")
    assert site.depth(sink) == 1


@story
def test_13_subscription_ends_with_its_lease(site: Site) -> None:
    source, sink = site.exchange(), site.queue()
    own = f"{site.server.http_url}/endpoint/{sink}"
    site.subscribe(source, own, verify_token=site.token(sink), lease_seconds="600")
    (found,) = site.listed(own)
    assert (found["pseudo_queue"], found["lease_seconds"]) == (sink[2:], 600)
    site.subscribe(source, own, verify_token=site.token(sink), lease_seconds="1")
    wait_until(lambda: site.listed(own) == [], WAIT_S, "the end of the lease")
    site.publish(source)
    assert site.depth(sink) == 0


def test_13_callbacks_have_no_token(site: Site) -> None:
    for query in ("hub.intended_use=publish", "hub.intended_use="):
        path = f"/endpoint/{site.queue()}?hub.mode=generate_token&{query}"
        problem(site.http.get(path), 400)


# -- 14: listing


def test_14_filters_and_pages(site: Site, callback: Callback) -> None:
    exchange, queue = site.exchange(), site.queue()
    site.http.put(f"{IN_OTHER}/endpoint/q/listed")
    site.subscribe(exchange, callback, "a", lease_seconds="600")
    site.subscribe(exchange, callback, "b")
    site.subscribe(queue, callback, "a")
    given = form("subscribe", callback.url, "a")
    assert site.http.post(f"{IN_OTHER}/subscribe/q/listed", data=given).status_code == 204

    def count(**query: str | int) -> int:
        return len(site.get("/subscriptions", callback=callback.url, **query)["subscriptions"])

    assert count() == 4
    assert count(vhost=OTHER) == 1
    assert count(resource_type="exchange") == 2
    assert count(resource_type="queue") == 2
    assert count(resource_name=queue[2:]) == 1
    assert count(topic="a") == 3
    assert count(status="active") == 4
    assert count(status="inactive") == 0
    assert count(**{"hub.expires": 1}) == 1
    assert count(**{"hub.expires": 31}) == 4
    pages = [count(page=number, page_size=3) for number in (1, 2, 3)]
    assert pages == [3, 1, 0]
    (only,) = site.get(
        f"/subscriptions/{exchange}", **{"hub.callback": callback.url, "hub.topic": "b"}
    )["subscriptions"]
    assert (only["topic"], only["resource_type"]) == ("b", "exchange")


def test_14_no_credential_is_shown(site: Site, callback: Callback) -> None:
    """RabbitHub exported them in clear."""
    basic = base64.b64encode(b"me:hidden-one").decode()
    site.subscribe("x/amq.topic", callback, secret="hidden-two", basic_auth=basic)
    for path in ("/subscriptions", "/api/hub/subscriptions", "/subscriptions/errors"):
        text = site.http.get(path).text
        assert "hidden-two" not in text
        assert basic not in text


# -- 15: how many at once, and in which order


@pytest.mark.parametrize("kind", ["x", "q"])
def test_15_one_in_flight_in_order(site: Site, kind: str) -> None:
    source = site.exchange() if kind == "x" else site.queue()
    with SteppedCallback() as target:
        site.subscribe(source, target)
        bodies = [b"%d" % number for number in range(5)]
        for body in bodies:
            site.publish(source, body)
        for count in range(1, 6):
            assert len(target.wait(count)) == count
            target.let()
        assert [one.body for one in target.deliveries] == bodies
        assert target.most == 1


def test_15_more_in_flight(site: Site) -> None:
    queue = site.queue()
    with SteppedCallback() as target:
        site.subscribe(queue, target, in_flight="3")
        for _ in range(5):
            site.publish(queue)
        target.wait(3)
        target.let(5)
        target.wait(5)
        assert target.most == 3


@pytest.mark.parametrize("order", ["loose", "strict"])
@story
def test_15_after_a_failure(site: Site, callback: Callback, order: str) -> None:
    queue = site.queue()
    callback.script(500)
    site.subscribe(queue, callback, order=order)
    for body in (b"1", b"2"):
        site.publish(queue, body)
    bodies = [one.body for one in callback.wait(3)]
    assert bodies == {"loose": [b"1", b"2", b"1"], "strict": [b"1", b"1", b"2"]}[order]


# -- 16: what an answer means

FAILURES = (300, 301, 302, 304, 307, 400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503)


@story
def test_16_other_statuses_are_retried(site: Site) -> None:
    """After 1 to 5 s the first time. Redirects are not followed."""
    exchange = site.exchange()
    with Callback() as elsewhere:
        targets = [Callback() for _ in FAILURES]
        try:
            for target, status in zip(targets, FAILURES, strict=True):
                target.__enter__()
                target.script(Answer(status, {"Location": elsewhere.url}))
                site.subscribe(exchange, target)
            site.publish(exchange, b"1")
            for target in targets:
                first, second = target.wait(2, WAIT_S)
                assert first.headers["webhook-id"] == second.headers["webhook-id"]
                failed, done = site.attempts(target, 2)
                assert (failed["number"], done["number"]) == (1, 2)
                assert done["outcome"] == "delivered"
                # An attempt is recorded when its retry is stored, which may take a moment.
                assert seconds(done["at"]) - seconds(failed["at"]) >= 0.5
        finally:
            for target in targets:
                target.__exit__(None, None, None)
        assert elsewhere.requests == []


def test_16_connection_refused(site: Site) -> None:
    queue = site.queue()
    with Callback() as callback:
        site.subscribe(queue, callback)
        url = callback.url
    site.publish(queue)
    attempt = site.attempts(url, 1)[0]
    assert (attempt["status"], attempt["outcome"]) == (None, "retried")


def test_16_410_gives_back_to_the_queue(site: Site, callback: Callback) -> None:
    queue = site.queue()
    callback.default = Answer(410)
    site.subscribe(queue, callback, in_flight="2")
    for body in (b"1", b"2", b"3"):
        site.publish(queue, body)
    callback.wait(1)
    wait_until(lambda: site.listed(callback) == [], WAIT_S, "the end of the subscription")
    wait_until(lambda: site.depth(queue) == 3, WAIT_S, "what it held")
    assert [site.taken(queue)[2] for _ in range(3)] == [b"1", b"2", b"3"]


@story
def test_16_410_after_a_failure_gives_back_too(site: Site, callback: Callback) -> None:
    """The one that waits for its retry is the queue's as well."""
    queue = site.queue()
    callback.script(500)
    callback.default = Answer(410)
    site.subscribe(queue, callback)
    for body in (b"1", b"2"):
        site.publish(queue, body)
    callback.wait(2)
    wait_until(lambda: site.listed(callback) == [], WAIT_S, "the end of the subscription")
    wait_until(lambda: site.depth(queue) == 2, WAIT_S, "what it held")
    taken = [site.taken(queue) for _ in range(2)]
    assert sorted(body for *_, body in taken) == [b"1", b"2"]


@story
def test_16_retry_after(site: Site) -> None:
    """In seconds and as a date: not before."""
    wait_s = 7
    queue = site.queue()
    other = site.queue()
    with Callback() as counted, Callback() as dated:
        at = time.time() + wait_s
        counted.script(Answer(503, {"Retry-After": str(wait_s)}))
        dated.script(Answer(429, {"Retry-After": formatdate(at, usegmt=True)}))
        for source, target in ((queue, counted), (other, dated)):
            site.subscribe(source, target)
            site.publish(source)
        first, second = (site.attempts(target, 2) for target in (counted, dated))
    # Parking takes it half a second early.
    assert seconds(first[1]["at"]) - seconds(first[0]["at"]) >= wait_s - 0.6
    assert seconds(second[1]["at"]) >= int(at) - 0.6


# -- 17: what every delivery carries


@pytest.mark.parametrize("secret", [None, "s3cret"])
@story
def test_17_id_and_time(site: Site, callback: Callback, secret: str | None) -> None:
    callback.script(500)
    queue = site.queue()
    site.subscribe(queue, callback, **({"secret": secret} if secret else {}))
    site.publish(queue, b"1")
    first, second = callback.wait(2, WAIT_S)
    site.publish(queue, b"1")
    third = callback.wait(3)[2]
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.headers["webhook-id"] != third.headers["webhook-id"]
    times = [int(one.headers["webhook-timestamp"]) for one in (first, second)]
    assert times[0] < times[1]
    for one in (first, second):
        assert ("webhook-signature" in one.headers) is (secret is not None)
        assert ("X-Hub-Signature" in one.headers) is (secret is not None)


@pytest.mark.parametrize(
    ("key", "header"),
    [
        ("", ""),
        ("eu.fr", "eu.fr"),
        ("é.#", "%C3%A9.#"),
        ("a b&c=d?", "a b&c=d?"),
        ("%C3%A9", "%C3%A9"),
        ("日本", "%E6%97%A5%E6%9C%AC"),
    ],
)
@pytest.mark.parametrize("kind", ["x", "q"])
def test_17_routing_keys(site: Site, callback: Callback, kind: str, key: str, header: str) -> None:
    source = site.exchange() if kind == "x" else site.queue()
    site.subscribe(source, callback)
    site.publish(source, topic=key)
    (delivery,) = callback.wait(1)
    assert delivery.headers["X-AMQP-Routing-Key"] == header
    assert delivery.query["hub.topic"] == key
    assert delivery.raw_path == f"/callback?hub.topic={quote(key, safe='')}"


# -- rabbithub.md 4: what of an AMQP message is delivered


@pytest.mark.parametrize("kind", ["x", "q"])
def test_deliveries_of_amqp_messages(site: Site, callback: Callback, kind: str) -> None:
    source = site.exchange() if kind == "x" else site.queue()
    site.subscribe(source, callback)
    properties = pika.BasicProperties(
        content_type="text/x-own", headers={"k": "v", "n": "2"}, delivery_mode=1, message_id="m1"
    )
    exchange = source[2:] if kind == "x" else ""
    key = "eu.fr" if kind == "x" else source[2:]
    with site.amqp() as channel:
        channel.confirm_delivery()
        channel.basic_publish(exchange, key, b"\0\xff", properties)
    (delivery,) = callback.wait(1)
    assert (delivery.body, delivery.headers["Content-Type"]) == (b"\0\xff", "text/x-own")
    assert delivery.headers["X-AMQP-Routing-Key"] == key
    assert delivery.headers.get("X-AMQP-Exchange", "") == exchange
    assert delivery.headers.get("X-AMQP-Queue", "") == (source[2:] if kind == "q" else "")
    assert delivery.headers["X-AMQP-Redelivered"] == "false"
    pairs = {pair.strip() for pair in delivery.headers["x-rabbithub-msg_header"].split(",")}
    assert pairs == {"k = v", "n = 2"}
