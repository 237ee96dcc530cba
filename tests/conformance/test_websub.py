"""The rules of a WebSub hub, by the numbers of docs/websub.md, over HTTP.

A topic is an exchange or queue of the hub, or an external document whose publisher pings the hub;
what holds for topics is tested for all three.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from urllib.parse import parse_qs, quote

import httpx
import pytest
from aiohttp import web

from tests.support.http import Answer, Callback, Request
from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .websub import PLAIN, TIMEOUT_S, Hub, OthersTopic, OwnTopic, Topic, others_topic

ATOM = "application/atom+xml"
DAY_S = 86_400
FORM = "application/x-www-form-urlencoded"
OCTETS = b"\r\n " + bytes(range(256)) + b" \r\n"
TOPICS = ("exchange", "others", "queue")
SHARED = TOPICS[:2]
SIGNATURE = "X-Hub-Signature"


@pytest.fixture(scope="module")
def hub(warren: WarrenServer) -> Iterator[Hub]:
    with Hub(warren) as hub:
        yield hub


@pytest.fixture(scope="module")
def checking() -> Iterator[Hub]:
    """A hub that asks publishers before it takes a subscription."""
    with WarrenServer(env={"WARREN_HUB_CHECK_TOPICS": "1"}) as server, Hub(server) as hub:
        yield hub


@pytest.fixture
def others(hub: Hub) -> Iterator[OthersTopic]:
    with others_topic(hub) as topic:
        yield topic


@contextmanager
def any_topic(hub: Hub, sort: str) -> Iterator[Topic]:
    if sort == "others":
        with others_topic(hub) as topic:
            yield topic
    else:
        yield OwnTopic(hub, {"exchange": "x", "queue": "q"}[sort])


@pytest.fixture(params=TOPICS)
def topic(hub: Hub, request: pytest.FixtureRequest) -> Iterator[Topic]:
    """A topic of each sort."""
    with any_topic(hub, request.param) as topic:
        yield topic


@pytest.fixture(params=SHARED)
def shared(hub: Hub, request: pytest.FixtureRequest) -> Iterator[Topic]:
    """A topic whose subscribers all get everything; those of a queue take turns."""
    with any_topic(hub, request.param) as topic:
        yield topic


def spread(
    name: str, *values: object, topic: str = "topic", sorts: Sequence[str] = TOPICS
) -> pytest.MarkDecorator:
    """Each value with one of the sorts in turn: all pairs would take minutes, because the hub
    waits three seconds between two fetches of a document."""
    pairs = [(value, sorts[number % len(sorts)]) for number, value in enumerate(values)]
    return pytest.mark.parametrize((name, topic), pairs, indirect=[topic])


def only(values: dict[str, list[str]], name: str) -> str:
    (value,) = values[name]
    return value


def query_of(request: Request) -> dict[str, list[str]]:
    return parse_qs(request.raw_path.partition("?")[2], keep_blank_values=True)


def denial(callback: Callback) -> dict[str, list[str]]:
    wait_until(lambda: bool(callback.denials), TIMEOUT_S, "the denial")
    return query_of(callback.denials[0])


def signature(secret: str, body: bytes, method: str = "sha256") -> str:
    return f"{method}={hmac.new(secret.encode(), body, method).hexdigest()}"


def bodies(callback: Callback, count: int) -> list[bytes]:
    return [request.body for request in callback.wait(count)]


# Requests


@spread("kind", "", "; charset=UTF-8")
def test_rule_01_a_form(hub: Hub, callback: Callback, topic: Topic, kind: str) -> None:
    fields = {"hub.mode": "subscribe", "hub.topic": topic.url, "hub.callback": callback.url}
    form = "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())
    assert hub.post(form.encode(), Content_Type=FORM + kind).status_code == 202
    callback.wait_verifications(1)


@spread("missing", "mode", "topic", "callback")
def test_rule_01_without_one_of_the_three(
    hub: Hub, callback: Callback, topic: Topic, missing: str
) -> None:
    fields = {"mode": "subscribe", "topic": topic.url, "callback": callback.url}
    answer = hub.post({f"hub.{name}": fields[name] for name in fields if name != missing})
    assert answer.status_code == 400 and f"hub.{missing}" in answer.text


def test_rule_01_json_and_invalid_utf_8_are_refused(hub: Hub, topic: Topic) -> None:
    document = json.dumps({"hub": {"mode": "subscribe", "topic": topic.url}}).encode()
    assert hub.post(document, Content_Type="application/json").status_code == 415
    form = b"hub.mode=subscribe&hub.topic=%ff&hub.callback=%fe"
    assert hub.post(form, Content_Type=FORM).status_code == 400


@spread("secret", "s" * 200, "\u00fc" * 100, "s" * 5_000)
def test_rule_02_secrets_of_200_bytes(
    hub: Hub, callback: Callback, topic: Topic, secret: str
) -> None:
    """Counted in bytes, and not shown."""
    answer = hub.ask("subscribe", callback.url, topic.url, secret=secret)
    assert answer.status_code == 400
    assert "199 bytes" in answer.text and secret not in answer.text


def test_rule_03_unknown_parameters(hub: Hub, callback: Callback, topic: Topic) -> None:
    fields = {"hub.mode": "subscribe", "hub.topic": topic.url, "hub.callback": callback.url}
    unknown = {"foo": "bar", "hub.foo": "bar", "": "", "hub.": "x"}
    assert hub.post(fields | unknown).status_code == 202
    (question,) = callback.wait_verifications(1)
    names = ("mode", "topic", "challenge", "lease_seconds")
    assert set(query_of(question)) == {f"hub.{name}" for name in names}


@spread("verify", "sync", "async", "sync,async", "none")
def test_rule_03_old_clients(hub: Hub, callback: Callback, topic: Topic, verify: str) -> None:
    """Of PubSubHubbub 0.3, hub.verify is ignored, and hub.verify_token comes back."""
    question = hub.subscribe(callback, topic, verify=verify, verify_token="t&k=n")
    assert only(query_of(question), "hub.verify_token") == "t&k=n"
    topic.publish(b"a")
    callback.wait(1)
    question = hub.unsubscribe(callback, topic, verify=verify, verify_token="other")
    assert only(query_of(question), "hub.verify_token") == "other"


# Subscriptions


def test_rule_04_topic_and_callback_are_the_key(hub: Hub, shared: Topic) -> None:
    with Callback() as one, Callback() as two, any_topic(hub, "exchange") as other:
        hub.subscribe(one, shared)
        hub.subscribe(two, shared)
        hub.subscribe(one, other)
        shared.publish(b"for both")
        assert bodies(one, 1) + bodies(two, 1) == [b"for both"] * 2
        hub.unsubscribe(one, shared)
        shared.publish(b"for two")
        assert bodies(two, 2) == [b"for both", b"for two"]
        other.publish(b"for one")
        assert bodies(one, 2) == [b"for both", b"for one"]


@spread("secret", "new", None)
def test_rule_04_a_renewal_brings_secret_and_lease(
    hub: Hub, callback: Callback, topic: Topic, secret: str | None
) -> None:
    """It is still one subscription, with one notification for each update."""
    hub.subscribe(callback, topic, secret="old", lease_seconds="1000")
    given = {} if secret is None else {"secret": secret}
    hub.subscribe(callback, topic, lease_seconds="2000", **given)
    for body in (b"a", b"b"):
        topic.publish(body)
        callback.wait(1 if body == b"a" else 2)
    assert [request.body for request in callback.deliveries] == [b"a", b"b"]
    expected = None if secret is None else signature(secret, b"a")
    assert callback.deliveries[0].headers.get(SIGNATURE) == expected
    found = hub.listed(callback.url, topic.url)
    assert found is not None and found["lease_seconds"] == 2000


def test_rule_04_old_state_applies_until_the_renewal_is_verified(
    hub: Hub, callback: Callback, topic: Topic
) -> None:
    hub.subscribe(callback, topic, secret="old", lease_seconds="1000")
    before = hub.listed(callback.url, topic.url)
    hub.refused("subscribe", callback, topic, secret="new", lease_seconds="2000")
    after = hub.listed(callback.url, topic.url)
    assert after is not None and before is not None
    # The current content may be delivered meanwhile.
    delivered = {"last_success_at": None, "condition": None, "success_ratio": None}
    assert after | delivered == before | delivered
    topic.publish(b"a")
    assert callback.wait(1)[0].headers[SIGNATURE] == signature("old", b"a")


@spread("lease", None, "0", "-1", "soon", "9" * 30)
def test_rule_05_unsubscribing_is_verified(
    hub: Hub, callback: Callback, topic: Topic, lease: str | None
) -> None:
    """A lease is ignored."""
    hub.subscribe(callback, topic)
    given = {} if lease is None else {"lease_seconds": lease}
    query = query_of(hub.unsubscribe(callback, topic, **given))
    assert only(query, "hub.mode") == "unsubscribe"
    assert only(query, "hub.topic") == topic.url
    assert only(query, "hub.challenge")


def test_rule_05_a_refused_unsubscribe(hub: Hub, callback: Callback, topic: Topic) -> None:
    hub.subscribe(callback, topic)
    hub.refused("unsubscribe", callback, topic)
    topic.publish(b"a")
    assert bodies(callback, 1) == [b"a"]


def test_rule_05_the_publisher_is_not_asked(
    hub: Hub, callback: Callback, others: OthersTopic
) -> None:
    hub.subscribe(callback, others)
    wait_until(lambda: len(others.publisher.requests) == 1, TIMEOUT_S, "a fetch")
    others.show(b"", status=404)
    hub.unsubscribe(callback, others)
    assert len(others.publisher.requests) == 1


def test_rule_05_unsubscribe_of_an_unknown_callback_is_accepted(
    hub: Hub, callback: Callback, topic: Topic
) -> None:
    """Accepted, so that nobody learns who subscribes."""
    hub.accepted("unsubscribe", callback.url, topic.url)


def test_rule_06_unreserved_characters_of_the_topic(
    hub: Hub, callback: Callback, others: OthersTopic
) -> None:
    """Subscribed in one spelling and pinged in another; the subscriber gets its own."""
    plain = others.url
    others.url = plain.replace("/topic/", "/%74op%69c/")
    question = hub.subscribe(callback, others)
    assert only(query_of(question), "hub.topic") == others.url
    others.publish(b"a")
    callback.wait(1)
    others.url = plain
    others.publish(b"b")
    assert bodies(callback, 2) == [b"a", b"b"]


def test_rule_06_unreserved_characters_of_an_own_topic(hub: Hub, callback: Callback) -> None:
    own = OwnTopic(hub, "x", "a.b")
    plain = own.url
    own.url = plain.replace("/endpoint/", "/e%6Edp%6fint/").replace("a.b", "a%2Eb")
    hub.subscribe(callback, own)
    own.url = plain
    own.publish(b"a")
    assert bodies(callback, 1) == [b"a"]


def test_rule_06_unreserved_characters_of_the_callback(
    hub: Hub, callback: Callback, topic: Topic
) -> None:
    """Two spellings are one subscriber."""
    hub.subscribe(callback, topic)
    spelled = callback.url.replace("/callback", "/%63allb%61ck")
    hub.accepted("unsubscribe", spelled, topic.url)
    callback.wait_verifications(2)
    hub.gone(callback, topic)


@spread(
    "suffix", "?a=b", "?hub.mode=mine&hub.topic=mine", "?a=%20+%2B&&=&b",
    "/A//b/%2F%3D/", "/;a=b,c/@:!$'()*", "/%7E%41~", "/a%20b/..",
)  # fmt: skip
def test_rules_07_and_08_the_callback_as_it_was_given(
    hub: Hub, callback: Callback, topic: Topic, suffix: str
) -> None:
    """With its query, in verifications and deliveries."""
    question = hub.subscribe(callback, topic, suffix)
    appended = "&" if "?" in suffix else "?"
    assert question.raw_path.startswith(f"/callback{suffix}{appended}hub.mode=subscribe&")
    values = query_of(question)
    assert (values["hub.mode"][-1], values["hub.topic"][-1]) == ("subscribe", topic.url)
    topic.publish(b"a")
    assert callback.wait(1)[0].raw_path == f"/callback{suffix}"


def test_rule_08_scheme_and_host(hub: Hub, topic: Topic) -> None:
    """The host is used as it is spelled, with a final dot too; other schemes are no callbacks."""
    for host in ("LocalHost", "localhost.", "127.0.0.1."):
        with Callback() as callback:
            spelled = callback.url.replace("127.0.0.1", host)
            hub.accepted("subscribe", spelled, topic.url)
            (question,) = callback.wait_verifications(1)
            assert question.headers["Host"].lower() == f"{host.lower()}:{callback.port}"
    for url in ("ftp://host.example/", "//host.example/", "host.example", "http:/path"):
        assert hub.ask("subscribe", url, topic.url).status_code in (400, 422)


# Answers


def test_rule_09_202_before_verification(hub: Hub, callback: Callback, topic: Topic) -> None:
    """And whatever its result is; one callback never answers."""
    with Callback() as hanging:
        hanging.refusal, callback.refusal = Answer(hang=True), Answer(500)
        hub.accepted("subscribe", hanging.url, topic.url)
        hub.accepted("unsubscribe", hanging.url, topic.url)
        for url in (callback.url, "http://127.0.0.1:9/nobody", "http://nowhere.invalid/"):
            hub.accepted("subscribe", url, topic.url)
        hanging.wait_verifications(1)
        callback.wait_verifications(1)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hub.mode", "dance"),
        ("hub.lease_seconds", "0"),
        ("hub.lease_seconds", "-1"),
        ("hub.topic", "no URL"),
        ("hub.topic", "ftp://host.example/"),
        ("hub.signature_method", "md5"),
    ],
)
def test_rule_10_bad_requests(
    hub: Hub, callback: Callback, topic: Topic, field: str, value: str
) -> None:
    """reliability.md section 6, 43-45 and 47."""
    right = {"hub.mode": "subscribe", "hub.topic": topic.url, "hub.callback": callback.url}
    answer = hub.post(right | {field: value})
    assert answer.status_code == 400 and field in answer.text


def test_rule_10_the_reason_is_plain_text(hub: Hub, callback: Callback) -> None:
    missing = f"{hub.server.http_url}/endpoint/q/missing"
    for url in ("no URL", f"{hub.server.http_url}/nothing", missing):
        answer = hub.ask("subscribe", callback.url, url)
        assert 400 <= answer.status_code < 500
        assert answer.headers["Content-Type"].startswith("text/plain") and answer.text.strip()


def test_rule_10_refused_callbacks() -> None:
    """reliability.md section 6, 48-56; `test_bad_callbacks.py` has more of them."""
    env = {"WARREN_ALLOW_GUEST": "1"}
    with WarrenServer(dev=False, env=env) as server, Hub(server) as hub:
        topic = OwnTopic(hub, "x")
        for url in ("http://169.254.169.254/", "http://a.example:6379/", "file:///etc/passwd"):
            answer = hub.ask("subscribe", url, topic.url)
            assert answer.status_code == 422 and "hub.callback" in answer.text


@pytest.mark.parametrize("url", ["file:///etc/passwd", "gopher://host.example/", "no URL"])
def test_rule_10_pings_need_a_url(hub: Hub, url: str) -> None:
    answer = hub.post({"hub.mode": "publish", "hub.url": url})
    assert answer.status_code == 400 and "hub.url" in answer.text


def test_rule_10_encoded_forms(hub: Hub) -> None:
    """reliability.md section 6, 39."""
    for encoding in ("gzip", "br", "gzip, gzip"):
        assert hub.post({"hub.mode": "publish"}, Content_Encoding=encoding).status_code == 415


def test_rule_10_credentials_for_own_topics(hub: Hub, callback: Callback) -> None:
    """Own topics need the permission to read them; external ones are public."""
    form = {"hub.mode": "subscribe", "hub.callback": callback.url}
    own = form | {"hub.topic": OwnTopic(hub, "x").url}
    answer = httpx.post(hub.url, data=own, timeout=TIMEOUT_S)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic")
    with others_topic(hub) as others:
        theirs = form | {"hub.topic": others.url}
        assert httpx.post(hub.url, data=theirs, timeout=TIMEOUT_S).status_code == 202
        callback.wait_verifications(1)


def test_rule_11_to_another_hub(callback: Callback) -> None:
    target = "https://hub.example/websub"
    with WarrenServer(env={"WARREN_HUB_MOVED_TO": target}) as server, Hub(server) as hub:
        answer = hub.ask("subscribe", callback.url, "https://topic.example/")
    assert (answer.status_code, answer.headers["Location"]) == (308, target)


# Validation and denial


def test_rule_12_the_topic_is_its_own_self(hub: Hub, checking: Hub, callback: Callback) -> None:
    """Only if the hub is configured to check that."""
    with others_topic(checking) as others:
        checking.subscribe(callback, others)
        others.itself = others.url + "/itself"
        others.show(b"a")
        with Callback() as second:
            checking.accepted("subscribe", second.url, others.url)
            assert others.itself in only(denial(second), "hub.reason")
            hub.subscribe(second, others)


def test_rule_13_a_topic_that_can_not_be_read(checking: Hub, callback: Callback) -> None:
    with others_topic(checking) as others:
        others.show(b"", status=404)
        checking.accepted("subscribe", callback.url + "?a=b", others.url)
        query = denial(callback)
    (request,) = callback.denials
    assert request.method == "GET" and request.raw_path.startswith("/callback?a=b&")
    assert only(query, "hub.mode") == "denied"
    assert only(query, "hub.topic") == others.url
    assert "404" in only(query, "hub.reason")
    assert len(callback.verifications) == 1


def test_rule_13_at_any_time(hub: Hub, callback: Callback, topic: Topic) -> None:
    """Here by an operator, long after the subscription was verified."""
    hub.subscribe(callback, topic)
    found = hub.listed(callback.url, topic.url)
    assert found is not None
    url = f"{hub.server.http_url}/api/hub/subscriptions/{found['id']}"
    assert hub.http.delete(url).is_success
    query = denial(callback)
    assert only(query, "hub.topic") == topic.url and only(query, "hub.reason")
    hub.gone(callback, topic)


# Verification


def test_rule_14_verification(hub: Hub, callback: Callback, topic: Topic) -> None:
    """Each has a new challenge."""
    question = hub.subscribe(callback, topic)
    assert question.method == "GET"
    query = query_of(question)
    assert only(query, "hub.mode") == "subscribe"
    assert only(query, "hub.topic") == topic.url
    assert len(only(query, "hub.challenge")) >= 32
    assert only(query, "hub.lease_seconds") == str(10 * DAY_S)
    hub.subscribe(callback, topic)
    hub.unsubscribe(callback, topic)
    assert len({only(query_of(one), "hub.challenge") for one in callback.verifications}) == 3


class Stubborn(Callback):
    """Answers verifications with a status, and a body in which C is the challenge."""

    def __init__(self, status: int, body: bytes, location: str = "") -> None:
        super().__init__()
        self.status = status
        self.body = body
        self.location = location

    def _answer(self, request: web.Request) -> Answer:
        challenge = request.query.get("hub.challenge")
        if challenge is None:
            return super()._answer(request)
        headers = {"Location": self.location} if self.location else {}
        return Answer(self.status, headers, self.body.replace(b"C", challenge.encode()))


@spread("status", 200, 201, 202, 203, 299)
def test_rule_15_2xx_with_the_challenge(hub: Hub, topic: Topic, status: int) -> None:
    with Stubborn(status, b"C") as callback:
        hub.subscribe(callback, topic)
        topic.publish(b"a")
        callback.wait(1)


REFUSALS = [
    (200, b""), (200, b"C\n"), (200, b" C"), (200, b"CC"), (200, b"<html>C</html>"), (204, b""),
    (301, b"C"), (302, b"C"), (307, b"C"), (400, b"C"), (404, b"C"), (500, b"C"),
]  # fmt: skip


@spread("answer", *REFUSALS, topic="shared", sorts=("exchange", "exchange", "others"))
def test_rule_15_all_else_is_a_refusal(hub: Hub, shared: Topic, answer: tuple[int, bytes]) -> None:
    """reliability.md section 6, 46. No redirect is followed, even to the challenge."""
    with Callback() as page, Stubborn(*answer, page.url) as callback, Callback() as witness:
        hub.accepted("subscribe", callback.url, shared.url)
        callback.wait_verifications(1)
        hub.subscribe(witness, shared)
        assert hub.listed(callback.url, shared.url) is None
        shared.publish(b"a")
        witness.wait(1)
        assert callback.deliveries == page.requests == []


def test_rule_15_late_is_a_refusal() -> None:
    """reliability.md section 6, 46."""
    env = {"WARREN_VERIFY_TIMEOUT_S": "1", "WARREN_LOG_LEVEL": "info"}
    with WarrenServer(env=env) as server, Hub(server) as hub, Callback() as callback:
        topic = OwnTopic(hub, "x")
        callback.refusal = Answer(hang=True)
        hub.accepted("subscribe", callback.url, topic.url)
        wait_until(lambda: "did not answer in time" in server.output(), TIMEOUT_S, "the refusal")
        assert hub.listed(callback.url, topic.url) is None


@spread("asked", "1", "77", str(90 * DAY_S), str(90 * DAY_S + 1), "9" * 30)
def test_rule_16_leases_as_requested(
    hub: Hub, callback: Callback, topic: Topic, asked: str
) -> None:
    """Up to the longest one, and the verification says how long it is."""
    hub.accepted("subscribe", callback.url, topic.url, lease_seconds=asked)
    (question,) = callback.wait_verifications(1)
    granted_s = min(int(asked), 90 * DAY_S)
    assert only(query_of(question), "hub.lease_seconds") == str(granted_s)


def test_rule_16_a_lease_ends(hub: Hub, shared: Topic) -> None:
    """With a denial, which WebSub 5.2 allows at any time."""
    with Callback() as callback, Callback() as witness:
        hub.subscribe(witness, shared)
        hub.subscribe(callback, shared, lease_seconds="2")
        hub.gone(callback, shared)
        assert "lease" in only(denial(callback), "hub.reason")
        shared.publish(b"a")
        witness.wait(1)
        assert callback.deliveries == []


# Content


@spread(
    "content_type",
    PLAIN,
    "application/octet-stream",
    'application/vnd.example+json; profile="a, b";charset=UTF-8',
    "TEXT/Html",
)
def test_rule_17_type_and_body(
    hub: Hub, callback: Callback, topic: Topic, content_type: str
) -> None:
    """Unchanged in every octet; without a secret there is no signature."""
    hub.subscribe(callback, topic)
    topic.publish(OCTETS, content_type)
    (request,) = callback.wait(1)
    assert (request.method, request.body) == ("POST", OCTETS)
    assert request.headers.getall("Content-Type") == [content_type]
    assert not {SIGNATURE, "webhook-signature"} & set(request.headers)


def test_rule_18_whole_content(hub: Hub, callback: Callback, topic: Topic) -> None:
    """Even if only the end is new."""
    hub.subscribe(callback, topic)
    for count, body in enumerate((b"one\n", b"one\ntwo\n", b"one\ntwo\n" * 100_000), 1):
        topic.publish(body)
        assert callback.wait(count)[-1].body == body


def feed(*numbers: int) -> bytes:
    entries = "".join(
        f"<entry><id>urn:{number}</id><title>t{number}</title></entry>" for number in numbers
    )
    head = '<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id><title>Feed</title>'
    return f"{head}{entries}</feed>".encode()


@pytest.mark.parametrize("content", ["full", "new"])
def test_rule_18_feeds(hub: Hub, callback: Callback, others: OthersTopic, content: str) -> None:
    """The whole feed, or its own elements and the new entries."""
    others.show(feed(1), ATOM)
    hub.subscribe(callback, others, content=content)
    wait_until(lambda: bool(callback.ignored_count), TIMEOUT_S, "the entry that is there already")
    others.publish(feed(3, 2, 1), ATOM)
    (request,) = callback.wait(1)
    assert request.body == (feed(3, 2, 1) if content == "full" else feed(3, 2))
    assert request.headers["Content-Type"] == ATOM


def test_rule_19_links(hub: Hub, callback: Callback, topic: Topic) -> None:
    """hub and self in one field."""
    hub.subscribe(callback, topic)
    topic.publish(b"a")
    (field,) = callback.wait(1)[0].headers.getall("Link")
    unquoted = field.replace('"', "")
    assert f"<{hub.url}>; rel=hub" in unquoted and f"<{topic.url}>; rel=self" in unquoted


# Deliveries that fail


@spread("status", 200, 201, 202, 204, 299)
def test_rule_20_every_2xx_is_a_success(
    hub: Hub, callback: Callback, topic: Topic, status: int
) -> None:
    """With any body. With strict order a failure would delay the next notification."""
    callback.default = Answer(status, body=b"" if status == 204 else b"error: again, please")
    hub.subscribe(callback, topic, order="strict")
    for count, body in enumerate((b"a", b"b"), 1):
        topic.publish(body)
        callback.wait(count)
    assert bodies(callback, 2) == [b"a", b"b"]


@spread("status", 301, 302, 303, 307, 308)
def test_rule_20_redirects_are_failures(
    hub: Hub, callback: Callback, topic: Topic, status: int
) -> None:
    with Callback() as page:
        callback.script(Answer(status, {"Location": page.url}))
        hub.subscribe(callback, topic)
        topic.publish(b"a")
        assert bodies(callback, 2) == [b"a", b"a"]
        assert page.requests == []


def test_rule_20_410_ends_the_subscription(hub: Hub, callback: Callback, topic: Topic) -> None:
    callback.script(410)
    hub.subscribe(callback, topic)
    topic.publish(b"a")
    callback.wait(1)
    hub.gone(callback, topic)


@spread("status", 400, 404, 500, 503)
def test_rule_21_repeated(hub: Hub, callback: Callback, topic: Topic, status: int) -> None:
    """With the same id and another time (Standard Webhooks)."""
    callback.script(status)
    hub.subscribe(callback, topic, secret="s")
    topic.publish(b"a")
    attempts = callback.wait(2)
    assert {request.body for request in attempts} == {b"a"}
    assert len({request.headers["webhook-id"] for request in attempts}) == 1
    assert len({request.headers["webhook-timestamp"] for request in attempts}) == 2
    assert {request.headers[SIGNATURE] for request in attempts} == {signature("s", b"a")}
    topic.publish(b"b")
    other = callback.wait(3)[2]
    assert other.headers["webhook-id"] != attempts[0].headers["webhook-id"]


@pytest.fixture(scope="module")
def hasty() -> Iterator[Hub]:
    """A hub that tries each notification once."""
    with WarrenServer(env={"WARREN_MAX_ATTEMPTS": "1"}) as server, Hub(server) as hub:
        yield hub


@pytest.mark.parametrize("sort", TOPICS)
def test_rule_22_out_of_retries(hasty: Hub, callback: Callback, sort: str) -> None:
    """That notification is dropped, and the next one is tried."""
    with any_topic(hasty, sort) as topic:
        callback.default = Answer(500)
        hasty.subscribe(callback, topic)
        for count, body in enumerate((b"a", b"b", b"c"), 1):
            topic.publish(body)
            callback.wait(count)
        callback.default = Answer()
        topic.publish(b"d")
        assert bodies(callback, 4) == [b"a", b"b", b"c", b"d"]
        assert hasty.listed(callback.url, topic.url) is not None


@spread(
    "signed", ("sha1", "s3cret"), ("sha256", "s3cret"), ("sha384", "s3cret"), ("sha512", "s3cret"),
    ("", "s" * 199), ("", "\u00fc" * 99 + "s"), ("", "gr\u00fcn"),
)  # fmt: skip
def test_rule_23_signatures(
    hub: Hub, callback: Callback, topic: Topic, signed: tuple[str, str]
) -> None:
    """By the method of the subscription, SHA-256 without one, and secrets up to 199 bytes."""
    method, secret = signed
    given = {"signature_method": method} if method else {}
    hub.subscribe(callback, topic, secret=secret, **given)
    topic.publish(OCTETS)
    (request,) = callback.wait(1)
    assert request.headers[SIGNATURE] == signature(secret, OCTETS, method or "sha256")


# Pings


@pytest.mark.parametrize(
    "form",
    ["hub.url={0}&hub.url={1}", "hub.topic={0}&hub.topic={1}", "hub.url[]={0}&hub.url[]={1}",
     "hub.url={0},{1}", "hub.url={0}&hub.topic={1}", "hub.topic={0},{1}&hub.url={0}"],
)  # fmt: skip
def test_pings_in_every_known_form(hub: Hub, form: str) -> None:
    with ExitStack() as stack:
        topics = [stack.enter_context(others_topic(hub)) for _ in range(2)]
        callbacks = [stack.enter_context(Callback()) for _ in topics]
        for callback, topic in zip(callbacks, topics, strict=True):
            hub.subscribe(callback, topic)
            topic.show(b"new")
        urls = [quote(topic.url, safe="") for topic in topics]
        body = f"hub.mode=publish&{form.format(*urls)}".encode()
        assert hub.post(body, Content_Type=FORM).status_code == 204
        assert [bodies(callback, 1) for callback in callbacks] == [[b"new"]] * 2


@pytest.mark.parametrize("pinged", ["{0}", "{0},{1}", "{1}, {0}"])
def test_pings_of_a_topic_whose_query_has_a_comma_and_a_url(hub: Hub, pinged: str) -> None:
    with ExitStack() as stack:
        topics = [stack.enter_context(others_topic(hub)) for _ in range(2)]
        callbacks = [stack.enter_context(Callback()) for _ in topics]
        topics[0].url = topics[0].itself = (
            f"{topics[0].url}?of=a,http://b.example/,https://c.example/"
        )
        for callback, topic in zip(callbacks, topics, strict=True):
            topic.show(b"before")
            hub.subscribe(callback, topic)
            topic.show(b"new")
        url = pinged.format(*(topic.url for topic in topics))
        assert hub.post({"hub.mode": "publish", "hub.url": url}).status_code == 204
        for callback in callbacks if "{1}" in pinged else callbacks[:1]:
            assert bodies(callback, 1) == [b"new"]


def test_pings_without_subscribers(hub: Hub, others: OthersTopic) -> None:
    answer = hub.post({"hub.mode": "publish", "hub.url": others.url})
    assert answer.status_code == 204


def test_unchanged_content_is_not_sent(hub: Hub, callback: Callback, others: OthersTopic) -> None:
    def is_fetched(count: int) -> bool:
        return len(others.publisher.requests) >= count

    hub.subscribe(callback, others)
    for body in (b"a", b"a", b"b"):
        before = len(others.publisher.requests)
        others.publish(body)
        wait_until(partial(is_fetched, before + 1), TIMEOUT_S, "a fetch")
    assert bodies(callback, 2) == [b"a", b"b"]


def test_a_failing_callback_delays_no_other(hub: Hub, shared: Topic) -> None:
    with ExitStack() as stack:
        slow, broken, well = (stack.enter_context(Callback()) for _ in range(3))
        slow.default, broken.default = Answer(hang=True), Answer(500)
        for callback in (slow, broken, well):
            hub.subscribe(callback, shared)
        for count, body in enumerate((b"a", b"b", b"c"), 1):
            shared.publish(body)
            well.wait(count)
        assert bodies(well, 3) == [b"a", b"b", b"c"]
