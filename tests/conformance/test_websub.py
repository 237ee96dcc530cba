"""The rules of a WebSub hub, by the numbers of docs/websub.md, over HTTP.

A topic is an exchange or queue of the hub, or a document of somebody else, whose publisher pings
the hub; what holds for topics is tested for all three.
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

from .websub import AUTH, PLAIN, TIMEOUT_S, Hub, OthersTopic, OwnTopic, Topic, others_topic

ATOM = "application/atom+xml"
DAY_S = 86_400
TOPICS = ("exchange", "others", "queue")
SHARED = TOPICS[:2]
SIGNATURE = "X-Hub-Signature"


@pytest.fixture(scope="module")
def hub(warren: WarrenServer) -> Hub:
    return Hub(warren)


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
        yield OwnTopic(hub.server, {"exchange": "x", "queue": "q"}[sort])


@pytest.fixture(params=TOPICS)
def topic(hub: Hub, request: pytest.FixtureRequest) -> Iterator[Topic]:
    """Of each sort."""
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
    """Each value with one of the sorts in turn: all with all would take minutes, for the hub
    leaves three seconds between two fetches of a document."""
    pairs = [(value, sorts[place % len(sorts)]) for place, value in enumerate(values)]
    return pytest.mark.parametrize((name, topic), pairs, indirect=[topic])


def only(values: dict[str, list[str]], name: str) -> str:
    (value,) = values[name]
    return value


def query_of(request: Request) -> dict[str, list[str]]:
    return parse_qs(request.raw_path.partition("?")[2], keep_blank_values=True)


def signature(secret: str, body: bytes, method: str = "sha256") -> str:
    return f"{method}={hmac.new(secret.encode(), body, method).hexdigest()}"


# Requests


@spread("kind", "", "; charset=UTF-8")
def test_rule_01_a_form(hub: Hub, callback: Callback, topic: Topic, kind: str) -> None:
    fields = {"hub.mode": "subscribe", "hub.topic": topic.url, "hub.callback": callback.url}
    form = "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())
    content_type = f"application/x-www-form-urlencoded{kind}"
    assert hub.post(form.encode(), Content_Type=content_type).status_code == 202
    callback.wait_verifications(1)


@spread("missing", "mode", "topic", "callback")
def test_rule_01_without_one_of_the_three(
    hub: Hub, callback: Callback, topic: Topic, missing: str
) -> None:
    fields = {"mode": "subscribe", "topic": topic.url, "callback": callback.url}
    given = {f"hub.{name}": value for name, value in fields.items() if name != missing}
    answer = hub.post(given)
    assert answer.status_code == 400
    assert f"hub.{missing}" in answer.text


def test_rule_01_characters_beyond_ascii(hub: Hub, callback: Callback, topic: Topic) -> None:
    secret = "gr\u00fcn"
    hub.subscribe(callback, topic, secret=secret)
    topic.publish(b"a")
    (request,) = callback.wait(1)
    assert request.headers[SIGNATURE] == signature(secret, b"a")


def test_rule_01_what_is_no_form_or_no_utf_8(hub: Hub, topic: Topic) -> None:
    document = json.dumps({"hub": {"mode": "subscribe", "topic": topic.url}}).encode()
    assert hub.post(document, Content_Type="application/json").status_code == 415
    form = b"hub.mode=subscribe&hub.topic=%ff&hub.callback=%fe"
    kind = "application/x-www-form-urlencoded"
    assert hub.post(form, Content_Type=kind).status_code == 400


@spread("secret", "s" * 200, "\u00fc" * 100, "s" * 5_000)
def test_rule_02_secrets_of_200_bytes(
    hub: Hub, callback: Callback, topic: Topic, secret: str
) -> None:
    """By bytes, and without showing it."""
    answer = hub.ask("subscribe", callback.url, topic.url, secret=secret)
    assert answer.status_code == 400
    assert "199 bytes" in answer.text
    assert secret not in answer.text


@spread("secret", "s" * 199, "\u00fc" * 99 + "s")
def test_rule_02_secrets_of_199_bytes(
    hub: Hub, callback: Callback, topic: Topic, secret: str
) -> None:
    hub.subscribe(callback, topic, secret=secret)
    topic.publish(b"a")
    (request,) = callback.wait(1)
    assert request.headers[SIGNATURE] == signature(secret, b"a")


def test_rule_03_unknown_parameters(hub: Hub, callback: Callback, topic: Topic) -> None:
    answer = hub.post(
        {"hub.mode": "subscribe", "hub.topic": topic.url, "hub.callback": callback.url,
         "foo": "bar", "hub.foo": "bar", "": "", "hub.": "x"}
    )  # fmt: skip
    assert answer.status_code == 202
    (question,) = callback.wait_verifications(1)
    assert set(query_of(question)) == {
        "hub.mode", "hub.topic", "hub.challenge", "hub.lease_seconds"
    }  # fmt: skip


@spread("verify", "sync", "async", "sync,async", "none")
def test_rule_03_old_clients(hub: Hub, callback: Callback, topic: Topic, verify: str) -> None:
    """PubSubHubbub 0.3 has hub.verify and hub.verify_token: the one is ignored, the other
    comes back."""
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
        assert [request.body for request in one.wait(1) + two.wait(1)] == [b"for both"] * 2
        hub.unsubscribe(one, shared)
        shared.publish(b"for two")
        assert [request.body for request in two.wait(2)] == [b"for both", b"for two"]
        other.publish(b"for one")
        assert [request.body for request in one.wait(2)] == [b"for both", b"for one"]


def test_rule_04_again_is_still_one(hub: Hub, callback: Callback, topic: Topic) -> None:
    """One notification for one update."""
    hub.subscribe(callback, topic)
    hub.subscribe(callback, topic)
    topic.publish(b"a")
    callback.wait(1)
    topic.publish(b"b")
    callback.wait(2)
    assert [request.body for request in callback.deliveries] == [b"a", b"b"]


@spread("secret", "new", None)
def test_rule_04_a_renewal_brings_secret_and_lease(
    hub: Hub, callback: Callback, topic: Topic, secret: str | None
) -> None:
    hub.subscribe(callback, topic, secret="old", lease_seconds="1000")
    given = {} if secret is None else {"secret": secret}
    hub.subscribe(callback, topic, lease_seconds="2000", **given)
    topic.publish(b"a")
    (request,) = callback.wait(1)
    expected = None if secret is None else signature(secret, b"a")
    assert request.headers.get(SIGNATURE) == expected
    found = hub.listed(callback.url, topic.url)
    assert found is not None and found["lease_seconds"] == 2000


def test_rule_04_until_it_is_verified_the_old_state_stands(
    hub: Hub, callback: Callback, topic: Topic
) -> None:
    hub.subscribe(callback, topic, secret="old", lease_seconds="1000")
    before = hub.listed(callback.url, topic.url)
    hub.refused("subscribe", callback, topic, secret="new", lease_seconds="2000")
    after = hub.listed(callback.url, topic.url)
    assert after is not None and before is not None
    # What the topic held may be delivered meanwhile.
    delivered = {"last_success_at": None}
    assert after | delivered == before | delivered
    topic.publish(b"a")
    assert callback.wait(1)[0].headers[SIGNATURE] == signature("old", b"a")


def test_rule_05_unsubscribing_is_verified(hub: Hub, callback: Callback, topic: Topic) -> None:
    hub.subscribe(callback, topic)
    query = query_of(hub.unsubscribe(callback, topic))
    assert only(query, "hub.mode") == "unsubscribe"
    assert only(query, "hub.topic") == topic.url
    assert only(query, "hub.challenge")


def test_rule_05_refused_it_lives_on(hub: Hub, callback: Callback, topic: Topic) -> None:
    hub.subscribe(callback, topic)
    hub.refused("unsubscribe", callback, topic)
    topic.publish(b"a")
    assert callback.wait(1)[0].body == b"a"


@spread("lease", "0", "-1", "soon", "9" * 30)
def test_rule_05_leases_are_ignored(hub: Hub, callback: Callback, topic: Topic, lease: str) -> None:
    hub.subscribe(callback, topic)
    hub.unsubscribe(callback, topic, lease_seconds=lease)


def test_rule_05_the_publisher_has_no_say(
    hub: Hub, callback: Callback, others: OthersTopic
) -> None:
    hub.subscribe(callback, others)
    wait_until(lambda: len(others.publisher.requests) == 1, TIMEOUT_S, "a fetch")
    others.show(b"", status=404)
    hub.unsubscribe(callback, others)
    assert len(others.publisher.requests) == 1


def test_rule_05_nothing_to_end(hub: Hub, callback: Callback, topic: Topic) -> None:
    """Accepted as any other: who subscribes to what is nobody's business."""
    hub.accepted("unsubscribe", callback.url, topic.url)


def test_rule_06_unreserved_characters_of_the_topic(
    hub: Hub, callback: Callback, others: OthersTopic
) -> None:
    """Asked for in one spelling and pinged in another; the subscriber sees its own."""
    plain = others.url
    others.url = plain.replace("/topic/", "/%74op%69c/")
    question = hub.subscribe(callback, others)
    assert only(query_of(question), "hub.topic") == others.url
    others.publish(b"a")
    callback.wait(1)
    others.url = plain
    others.publish(b"b")
    assert callback.wait(2)[1].body == b"b"


def test_rule_06_unreserved_characters_of_an_own_topic(hub: Hub, callback: Callback) -> None:
    own = OwnTopic(hub.server, "x", "a.b")
    plain, own.url = (
        own.url,
        own.url.replace("/endpoint/", "/e%6Edp%6fint/").replace("a.b", "a%2Eb"),
    )
    hub.subscribe(callback, own)
    own.url = plain
    own.publish(b"a")
    assert callback.wait(1)[0].body == b"a"


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
    "query", "?a=b", "?hub.mode=mine&hub.topic=mine&hub.challenge=mine", "?a=%20+%2B&&=&b", "?a="
)
def test_rule_07_the_query_is_kept(hub: Hub, callback: Callback, topic: Topic, query: str) -> None:
    hub.accepted("subscribe", callback.url + query, topic.url)
    wait_until(lambda: len(callback.requests) == 1, TIMEOUT_S, "the verification")
    asked = callback.requests[0].raw_path
    assert asked.startswith(f"/callback{query}&hub.mode=subscribe&")
    values = query_of(callback.requests[0])
    assert values["hub.mode"][-1] == "subscribe"
    assert values["hub.topic"][-1] == topic.url


@spread("query", "?a=b", "?hub.mode=mine&hub.topic=mine", "?a=%20+%2B&&=&b")
def test_rule_07_deliveries_have_it_too(
    hub: Hub, callback: Callback, topic: Topic, query: str
) -> None:
    hub.subscribe(callback, topic, query)
    topic.publish(b"a")
    assert callback.wait(1)[0].raw_path == f"/callback{query}"


@spread("path", "/A//b/%2F%3D/", "/;a=b,c/@:!$'()*", "/%7E%41~", "/a%20b/..")
def test_rule_08_the_callback_as_it_was_given(
    hub: Hub, callback: Callback, topic: Topic, path: str
) -> None:
    question = hub.subscribe(callback, topic, path)
    topic.publish(b"a")
    assert question.raw_path.partition("?")[0] == f"/callback{path}"
    assert callback.wait(1)[0].raw_path == f"/callback{path}"


def test_rule_08_scheme_and_host(hub: Hub, topic: Topic) -> None:
    """Host as it is spelled; other schemes are no callbacks."""
    with Callback() as callback:
        spelled = callback.url.replace("127.0.0.1", "LocalHost")
        hub.accepted("subscribe", spelled, topic.url)
        (question,) = callback.wait_verifications(1)
        assert question.headers["Host"].lower() == f"localhost:{callback.port}"
    for url in ("ftp://host.example/", "//host.example/", "host.example", "http:/path"):
        assert hub.ask("subscribe", url, topic.url).status_code in (400, 422)


# Answers


def test_rule_09_202_before_the_callback_is_asked(hub: Hub, topic: Topic) -> None:
    """This callback never answers."""
    with Callback() as callback:
        callback.refusal = Answer(hang=True)
        hub.accepted("subscribe", callback.url, topic.url)
        hub.accepted("unsubscribe", callback.url, topic.url)
        callback.wait_verifications(1)


def test_rule_09_202_whatever_comes_of_it(hub: Hub, callback: Callback, topic: Topic) -> None:
    callback.refusal = Answer(500)
    hub.accepted("subscribe", callback.url, topic.url)
    hub.accepted("subscribe", "http://127.0.0.1:9/nobody", topic.url)
    hub.accepted("subscribe", "http://nowhere.invalid/", topic.url)
    callback.wait_verifications(1)


BAD: list[tuple[dict[str, str], str]] = [
    ({"hub.mode": "dance"}, "hub.mode"),  # reliability.md 6, 43
    ({"hub.secret": "s" * 200}, "hub.secret"),  # 44
    ({"hub.lease_seconds": "0"}, "hub.lease_seconds"),  # 45
    ({"hub.lease_seconds": "-1"}, "hub.lease_seconds"),
    ({"hub.lease_seconds": "1000000000000"}, "hub.lease_seconds"),
    ({"hub.topic": "no URL"}, "hub.topic"),  # 47
    ({"hub.topic": "ftp://host.example/"}, "hub.topic"),
    ({"hub.signature_method": "md5"}, "hub.signature_method"),
]


@pytest.mark.parametrize(("wrong", "field"), BAD)
def test_rule_10_bad_requests(
    hub: Hub, callback: Callback, topic: Topic, wrong: dict[str, str], field: str
) -> None:
    """reliability.md section 6, 43-45 and 47."""
    right = {"hub.mode": "subscribe", "hub.topic": topic.url, "hub.callback": callback.url}
    answer = hub.post(right | wrong)
    assert answer.status_code == 400
    assert field in answer.text


def test_rule_10_the_reason_is_plain_text(hub: Hub, callback: Callback) -> None:
    gone = f"{hub.server.http_url}/endpoint/q/missing"
    for url in ("no URL", f"{hub.server.http_url}/nothing", gone):
        answer = hub.ask("subscribe", callback.url, url)
        assert 400 <= answer.status_code < 500
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert answer.text.strip()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.1/",  # reliability.md 6, 48
        "http://0x7f000001/",
        "http://[::ffff:127.0.0.1]/",  # 49
        "http://169.254.169.254/",  # 50
        "http://user:pw@host.example/",  # 51
        "file:///etc/passwd",  # 52
        "gopher://host.example/",
        "http://host.example:6379/",  # 55
        "http://host.example:65536/",
        "http://127\u30020.0.1/",  # 56
    ],
)
def test_rule_10_callbacks_that_are_not_sent_to(url: str, closed: Hub) -> None:
    """reliability.md section 6, 48-52, 55 and 56: refused, none of them asked."""
    answer = closed.ask("subscribe", url, OwnTopic(closed.server, "x").url)
    assert answer.status_code == 422
    assert "hub.callback" in answer.text


@pytest.mark.parametrize("url", ["file:///etc/passwd", "gopher://host.example/", "no URL"])
def test_rule_10_what_is_pinged_for_is_a_url(hub: Hub, url: str) -> None:
    answer = hub.post({"hub.mode": "publish", "hub.url": url})
    assert answer.status_code == 400
    assert "hub.url" in answer.text


def test_rule_10_encoded_forms(hub: Hub) -> None:
    """reliability.md section 6, 39."""
    for encoding in ("gzip", "br", "gzip, gzip"):
        assert hub.post({"hub.mode": "publish"}, Content_Encoding=encoding).status_code == 415


@pytest.fixture(scope="module")
def closed() -> Iterator[Hub]:
    """As it runs in earnest: not in development mode, where loopback is no target."""
    with WarrenServer(dev=False, env={"WARREN_ALLOW_GUEST": "1"}) as server:
        yield Hub(server)


def test_rule_10_credentials_for_own_topics(hub: Hub, callback: Callback) -> None:
    """Policy: what is read needs the right to read it; topics of others are everybody's."""
    form = {"hub.mode": "subscribe", "hub.callback": callback.url}
    own = form | {"hub.topic": OwnTopic(hub.server, "x").url}
    answer = httpx.post(hub.url, data=own, timeout=TIMEOUT_S)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic")
    with others_topic(hub) as others:
        theirs = form | {"hub.topic": others.url}
        assert httpx.post(hub.url, data=theirs, timeout=TIMEOUT_S).status_code == 202
        callback.wait_verifications(1)


def test_rule_11_to_another_hub(callback: Callback) -> None:
    place = "https://hub.example/websub"
    with WarrenServer(env={"WARREN_HUB_MOVED_TO": place}) as server:
        answer = Hub(server).ask("subscribe", callback.url, "https://topic.example/")
    assert (answer.status_code, answer.headers["Location"]) == (308, place)


# Validation and denial


@pytest.fixture(scope="module")
def asking() -> Iterator[Hub]:
    """A hub that asks publishers before it takes a subscription."""
    with WarrenServer(env={"WARREN_HUB_CHECK_TOPICS": "1"}) as server:
        yield Hub(server)


def denied(callback: Callback) -> dict[str, list[str]]:
    wait_until(lambda: bool(callback.denials), TIMEOUT_S, "the denial")
    return query_of(callback.denials[0])


def test_rule_12_the_topic_is_what_it_calls_itself(asking: Hub, callback: Callback) -> None:
    with others_topic(asking) as others:
        asking.subscribe(callback, others)
        others.itself = others.url + "/itself"
        others.show(b"a")
        with Callback() as second:
            asking.accepted("subscribe", second.url, others.url)
            assert others.itself in only(denied(second), "hub.reason")


def test_rule_12_is_not_asked_unless_it_is_wanted(
    hub: Hub, callback: Callback, others: OthersTopic
) -> None:
    others.itself = others.url + "/itself"
    others.show(b"a")
    hub.subscribe(callback, others)


def test_rule_13_a_topic_that_can_not_be_read(asking: Hub, callback: Callback) -> None:
    with others_topic(asking) as others:
        others.show(b"", status=404)
        asking.accepted("subscribe", callback.url + "?a=b", others.url)
        query = denied(callback)
    (request,) = callback.denials
    assert request.method == "GET"
    assert request.raw_path.startswith("/callback?a=b&")
    assert only(query, "hub.mode") == "denied"
    assert only(query, "hub.topic") == others.url
    assert "404" in only(query, "hub.reason")
    assert len(callback.verifications) == 1


def test_rule_13_any_time(hub: Hub, callback: Callback, topic: Topic) -> None:
    """An operator ends what was accepted long ago."""
    hub.subscribe(callback, topic)
    found = hub.listed(callback.url, topic.url)
    assert found is not None
    url = f"{hub.server.http_url}/api/hub/subscriptions/{found['id']}"
    assert httpx.delete(url, auth=AUTH, timeout=TIMEOUT_S).is_success
    query = denied(callback)
    assert only(query, "hub.topic") == topic.url
    assert only(query, "hub.reason")
    hub.gone(callback, topic)


# Verification


def test_rule_14_what_is_asked(hub: Hub, callback: Callback, topic: Topic) -> None:
    question = hub.subscribe(callback, topic)
    assert question.method == "GET"
    query = query_of(question)
    assert only(query, "hub.mode") == "subscribe"
    assert only(query, "hub.topic") == topic.url
    assert len(only(query, "hub.challenge")) >= 32
    assert only(query, "hub.lease_seconds") == str(10 * DAY_S)


def test_rule_14_challenges_are_new(hub: Hub, callback: Callback, topic: Topic) -> None:
    for _ in range(3):
        hub.subscribe(callback, topic)
    hub.unsubscribe(callback, topic)
    found = {only(query_of(request), "hub.challenge") for request in callback.verifications}
    assert len(found) == len(callback.verifications) == 4


class Stubborn(Callback):
    """Answers verifications with a status and what it makes of the challenge."""

    def __init__(self, status: int, body: bytes, place: str = "") -> None:
        super().__init__()
        self.status = status
        self.body = body
        self.place = place

    def _answer(self, request: web.Request) -> Answer:
        challenge = request.query.get("hub.challenge")
        if challenge is None:
            return super()._answer(request)
        headers = {"Location": self.place} if self.place else {}
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
def test_rule_15_everything_else_is_a_refusal(
    hub: Hub, shared: Topic, answer: tuple[int, bytes]
) -> None:
    """reliability.md section 6, 46: nor is a redirect followed, to where the challenge is."""
    with Callback() as page, Stubborn(*answer, page.url) as callback:
        hub.accepted("subscribe", callback.url, shared.url)
        callback.wait_verifications(1)
        with Callback() as witness:
            hub.subscribe(witness, shared)
            assert hub.listed(callback.url, shared.url) is None
            shared.publish(b"a")
            witness.wait(1)
            assert callback.deliveries == page.requests == []


def test_rule_15_late_is_a_refusal() -> None:
    """reliability.md section 6, 46."""
    env = {"WARREN_VERIFY_TIMEOUT_S": "1", "WARREN_LOG_LEVEL": "info"}
    with WarrenServer(env=env) as server, Callback() as callback:
        hub, topic = Hub(server), OwnTopic(server, "x")
        callback.refusal = Answer(hang=True)
        hub.accepted("subscribe", callback.url, topic.url)
        wait_until(lambda: "did not answer in time" in server.output(), TIMEOUT_S, "the refusal")
        assert hub.listed(callback.url, topic.url) is None


def test_rule_16_the_default_and_the_wish(hub: Hub, callback: Callback, topic: Topic) -> None:
    for asked, granted in ((None, 10 * DAY_S), ("1", 1), ("77", 77), (str(90 * DAY_S), 90 * DAY_S)):
        with Callback() as other:
            given = {} if asked is None else {"lease_seconds": asked}
            hub.accepted("subscribe", other.url, topic.url, **given)
            (question,) = other.wait_verifications(1)
            assert only(query_of(question), "hub.lease_seconds") == str(granted)
    answer = hub.ask("subscribe", callback.url, topic.url, lease_seconds=str(90 * DAY_S + 1))
    assert answer.status_code == 400


def test_rule_16_a_lease_ends(hub: Hub, shared: Topic) -> None:
    """The subscriber is told, for WebSub 5.2 allows it at any time."""
    with Callback() as callback, Callback() as witness:
        hub.subscribe(witness, shared)
        hub.subscribe(callback, shared, lease_seconds="2")
        hub.gone(callback, shared)
        assert "lease" in only(denied(callback), "hub.reason")
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
    """The type in every character, the body in every byte."""
    hub.subscribe(callback, topic)
    body = b"\r\n " + bytes(range(256)) + b" \r\n"
    topic.publish(body, content_type)
    (request,) = callback.wait(1)
    assert request.method == "POST"
    assert request.headers.getall("Content-Type") == [content_type]
    assert request.body == body


def test_rule_18_whole_content(hub: Hub, callback: Callback, topic: Topic) -> None:
    """Also where only the end is new, and however long it is."""
    hub.subscribe(callback, topic)
    bodies = [b"one\n", b"one\ntwo\n", b"one\ntwo\n" * 100_000]
    for count, body in enumerate(bodies, 1):
        topic.publish(body)
        assert callback.wait(count)[-1].body == body


def feed(*numbers: int) -> bytes:
    entries = "".join(
        f"<entry><id>urn:{number}</id><title>t{number}</title></entry>" for number in numbers
    )
    head = '<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id><title>Feed</title>'
    return f"{head}{entries}</feed>".encode()


def test_rule_18_a_feed_comes_whole(hub: Hub, callback: Callback, others: OthersTopic) -> None:
    others.show(feed(1), ATOM)
    hub.subscribe(callback, others)
    others.publish(feed(2, 1), ATOM)
    assert callback.wait(1)[0].body == feed(2, 1)


def test_rule_18_only_new_entries_for_those_who_want_it(
    hub: Hub, callback: Callback, others: OthersTopic
) -> None:
    """What is the feed's own stays."""
    others.show(feed(1), ATOM)
    hub.subscribe(callback, others, content="new")
    others.publish(feed(3, 2, 1), ATOM)
    (request,) = callback.wait(1)
    assert [f"urn:{n}" in request.body.decode() for n in (1, 2, 3)] == [False, True, True]
    assert b"<title>Feed</title>" in request.body
    assert request.headers["Content-Type"] == ATOM


def test_rule_19_links(hub: Hub, callback: Callback, topic: Topic) -> None:
    """hub and self in one field."""
    hub.subscribe(callback, topic)
    topic.publish(b"a")
    (field,) = callback.wait(1)[0].headers.getall("Link")
    assert f'<{hub.url}>; rel="hub"' in field or f"<{hub.url}>; rel=hub" in field
    assert f'<{topic.url}>; rel="self"' in field or f"<{topic.url}>; rel=self" in field


# Deliveries that fail


@spread("status", 200, 201, 202, 204, 299)
def test_rule_20_every_2xx_is_a_success(
    hub: Hub, callback: Callback, topic: Topic, status: int
) -> None:
    """Whatever the body says. In strict order a failure would keep the next one back."""
    callback.default = Answer(status, body=b"" if status == 204 else b"error: again, please")
    hub.subscribe(callback, topic, order="strict")
    for count, body in enumerate((b"a", b"b"), 1):
        topic.publish(body)
        callback.wait(count)
    assert [request.body for request in callback.deliveries] == [b"a", b"b"]


@spread("status", 301, 302, 303, 307, 308)
def test_rule_20_redirects_are_failures(
    hub: Hub, callback: Callback, topic: Topic, status: int
) -> None:
    with Callback() as page:
        callback.script(Answer(status, {"Location": page.url}))
        hub.subscribe(callback, topic)
        topic.publish(b"a")
        first, second = callback.wait(2)
        assert (first.body, second.body) == (b"a", b"a")
        assert page.requests == []


def test_rule_20_410_ends_the_subscription(hub: Hub, callback: Callback, topic: Topic) -> None:
    callback.script(410)
    hub.subscribe(callback, topic)
    topic.publish(b"a")
    callback.wait(1)
    hub.gone(callback, topic)


@spread("status", 400, 404, 500, 503)
def test_rule_21_tried_again(hub: Hub, callback: Callback, topic: Topic, status: int) -> None:
    """The same message, by its id; each attempt has its time (Standard Webhooks)."""
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
    with WarrenServer(env={"WARREN_MAX_ATTEMPTS": "1"}) as server:
        yield Hub(server)


@pytest.mark.parametrize("sort", TOPICS)
def test_rule_22_out_of_retries(hasty: Hub, callback: Callback, sort: str) -> None:
    """That notification is dropped, and the next one tried, again and again."""
    with any_topic(hasty, sort) as topic:
        callback.default = Answer(500)
        hasty.subscribe(callback, topic)
        for count, body in enumerate((b"a", b"b", b"c"), 1):
            topic.publish(body)
            callback.wait(count)
        callback.default = Answer()
        topic.publish(b"d")
        assert [request.body for request in callback.wait(4)] == [b"a", b"b", b"c", b"d"]
        assert hasty.listed(callback.url, topic.url) is not None


@spread("method", "sha1", "sha256", "sha384", "sha512")
def test_rule_23_four_methods(hub: Hub, callback: Callback, topic: Topic, method: str) -> None:
    """Which one is the subscription's choice."""
    hub.subscribe(callback, topic, secret="s3cret", signature_method=method)
    body = b"\r\n " + bytes(range(256)) + b" \r\n"
    topic.publish(body)
    (request,) = callback.wait(1)
    assert request.headers[SIGNATURE] == signature("s3cret", body, method)


def test_rule_23_sha_256_unless_asked(hub: Hub, callback: Callback, topic: Topic) -> None:
    hub.subscribe(callback, topic, secret="s3cret")
    topic.publish(b"a")
    assert callback.wait(1)[0].headers[SIGNATURE] == signature("s3cret", b"a")


def test_rule_23_nothing_without_a_secret(hub: Hub, callback: Callback, topic: Topic) -> None:
    hub.subscribe(callback, topic)
    topic.publish(b"a")
    headers = callback.wait(1)[0].headers
    assert not {SIGNATURE, "webhook-signature"} & set(headers)


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
        answer = hub.post(body, Content_Type="application/x-www-form-urlencoded")
        assert answer.status_code == 204
        for callback in callbacks:
            assert callback.wait(1)[0].body == b"new"


def test_pings_without_subscribers(hub: Hub, others: OthersTopic) -> None:
    answer = hub.post({"hub.mode": "publish", "hub.url": others.url})
    assert answer.status_code == 204


def fetched(topic: OthersTopic, count: int) -> bool:
    return len(topic.publisher.requests) >= count


def test_what_has_not_changed_is_not_sent(
    hub: Hub, callback: Callback, others: OthersTopic
) -> None:
    hub.subscribe(callback, others)
    for body in (b"a", b"a", b"b"):
        before = len(others.publisher.requests)
        others.publish(body)
        wait_until(partial(fetched, others, before + 1), TIMEOUT_S, "a fetch")
    bodies = [request.body for request in callback.wait(2)]
    assert bodies == [b"a", b"b"]


def test_a_callback_in_trouble_holds_nobody_up(hub: Hub, shared: Topic) -> None:
    with ExitStack() as stack:
        slow, broken, well = (stack.enter_context(Callback()) for _ in range(3))
        slow.default, broken.default = Answer(hang=True), Answer(500)
        for callback in (slow, broken, well):
            hub.subscribe(callback, shared)
        for count, body in enumerate((b"a", b"b", b"c"), 1):
            shared.publish(body)
            well.wait(count)
        assert [request.body for request in well.deliveries] == [b"a", b"b", b"c"]
