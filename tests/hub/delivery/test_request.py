from __future__ import annotations

import base64
import hmac
import json
from dataclasses import replace

import pytest

from warrenmq.core.message.model import Message, Properties
from warrenmq.hub.delivery.envelope import Envelope
from warrenmq.hub.delivery.request import DeliveryRequest, RequestTemplate
from warrenmq.hub.requests import Resource
from warrenmq.hub.subscriptions.options import Format, Keys, Options
from warrenmq.hub.subscriptions.subscription import Subscription

SUBSCRIPTION = Subscription(
    id="1",
    source=Resource("/", "x", "news"),
    topic="#",
    callback="http://a.b/cb?t=1",
    lease_seconds=60,
    expires_at=0,
    owner="guest",
)
MESSAGE = Message("news", "eu.fr", Properties(content_type="text/plain; charset=x"), b"bonjour")
ENVELOPE = Envelope("msg_1", "news", "eu.fr")


def headers(
    subscription: Subscription = SUBSCRIPTION,
    envelope: Envelope = ENVELOPE,
    message: Message = MESSAGE,
) -> dict[str, str]:
    return make_post(subscription, envelope, message).headers


def make_post(
    subscription: Subscription = SUBSCRIPTION,
    envelope: Envelope = ENVELOPE,
    message: Message = MESSAGE,
    now_s: float = 1.9,
) -> DeliveryRequest:
    return RequestTemplate(subscription, "sha256").make_request(envelope, message, now_s, 0.5)


def test_the_whole_post() -> None:
    post = make_post()
    assert post.url == "http://a.b/cb?t=1&hub.topic=eu.fr"
    assert post.body == b"bonjour"
    assert post.headers == {
        "Content-Type": "text/plain; charset=x",
        "X-AMQP-Routing-Key": "eu.fr",
        "X-AMQP-Redelivered": "false",
        "X-AMQP-Exchange": "news",
        "X-Hub-Hops": "0",
        "webhook-id": "msg_1",
        "webhook-timestamp": "1",
    }


def test_a_queue_subscription_names_the_queue() -> None:
    source = Resource("/", "q", "in")
    assert headers(replace(SUBSCRIPTION, source=source))["X-AMQP-Queue"] == "in"


def test_the_default_exchange_has_no_name_to_tell() -> None:
    assert "X-AMQP-Exchange" not in headers(envelope=replace(ENVELOPE, exchange=""))


def test_a_retry_counts_as_redelivered() -> None:
    assert headers(envelope=replace(ENVELOPE, failures=1))["X-AMQP-Redelivered"] == "true"
    assert headers(message=replace(MESSAGE, redelivered=True))["X-AMQP-Redelivered"] == "true"


@pytest.mark.parametrize("content_type", [None, "", "text/plain\r\nX-Evil: 1", "a\x00"])
def test_without_a_usable_type_it_is_octets(content_type: str | None) -> None:
    message = replace(MESSAGE, properties=Properties(content_type=content_type))
    assert headers(message=message)["Content-Type"] == "application/octet-stream"


def test_a_secret_signs_the_body() -> None:
    signed = headers(replace(SUBSCRIPTION, keys=Keys(secret="Jefe")))["X-Hub-Signature"]
    assert signed.startswith("sha256=") and len(signed) == 7 + 64


def test_both_signatures_can_be_checked() -> None:
    secret = "whsec_" + base64.b64encode(bytes(range(24))).decode()
    signed = headers(replace(SUBSCRIPTION, keys=Keys(secret=secret)))
    text = b"msg_1.1.bonjour"
    expected = base64.b64encode(hmac.digest(bytes(range(24)), text, "sha256")).decode()
    assert signed["webhook-signature"] == f"v1,{expected}"
    whole = hmac.digest(secret.encode(), b"bonjour", "sha256").hex()
    assert signed["X-Hub-Signature"] == f"sha256={whole}"


def test_the_method_is_the_subscribers() -> None:
    chosen = replace(
        SUBSCRIPTION, keys=Keys(secret="Jefe"), options=Options(signature_method="sha1")
    )
    assert headers(chosen)["X-Hub-Signature"].startswith("sha1=")


def test_the_previous_key_signs_too_until_its_time_is_over() -> None:
    keys = Keys(secret="new", previous="old", previous_until=100.0)
    rotating = replace(SUBSCRIPTION, keys=keys)
    before = make_post(rotating, now_s=99.0).headers
    after = make_post(rotating, now_s=100.0).headers
    alone = make_post(replace(SUBSCRIPTION, keys=Keys(secret="old")), now_s=99.0).headers
    assert before["webhook-signature"].split(" ")[1] == alone["webhook-signature"]
    assert " " not in after["webhook-signature"]
    assert before["X-Hub-Signature"] == after["X-Hub-Signature"]


def test_without_a_secret_nothing_is_signed() -> None:
    assert not {"X-Hub-Signature", "webhook-signature"} & headers().keys()


def test_basic_auth() -> None:
    given = replace(SUBSCRIPTION, keys=Keys(basic_auth="Z3Vlc3Q6Z3Vlc3Q="))
    assert headers(given)["Authorization"] == "Basic Z3Vlc3Q6Z3Vlc3Q="


BASED = replace(SUBSCRIPTION, base_url="http://hub.example:8080/base")


def test_links_of_a_subscription_through_the_endpoint() -> None:
    assert headers(BASED)["Link"] == (
        '<http://hub.example:8080/base/hub>; rel="hub", '
        '<http://hub.example:8080/base/endpoint/x/news>; rel="self"'
    )
    assert "Link" not in headers()


def test_links_in_another_virtual_host() -> None:
    source = Resource("a/b", "q", "in box")
    link = headers(replace(BASED, source=source))["Link"]
    assert "<http://hub.example:8080/base/a%2Fb/endpoint/q/in%20box>" in link


TOPIC_URL = "https://feeds.example/a?b=c"
WEBSUB = replace(BASED, topic_url=TOPIC_URL)


def test_a_websub_callback_is_posted_to_as_given() -> None:
    post = make_post(WEBSUB)
    assert post.url == "http://a.b/cb?t=1"
    assert post.headers["Content-Type"] == "text/plain; charset=x"
    assert post.headers["Link"].endswith(f', <{TOPIC_URL}>; rel="self"')


def test_nothing_can_break_out_of_a_link() -> None:
    link = headers(replace(WEBSUB, topic_url='https://a/"><\r\n'))["Link"]
    assert '<https://a/%22%3E%3C%0D%0A>; rel="self"' in link


def test_hops_are_told() -> None:
    assert headers(envelope=replace(ENVELOPE, hops=3))["X-Hub-Hops"] == "3"
    assert headers()["X-Hub-Hops"] == "0"


def test_each_routing_key_has_its_url() -> None:
    plan = RequestTemplate(SUBSCRIPTION, "sha256")
    for number in (1, 2, 1, *range(200)):
        post = plan.make_request(replace(ENVELOPE, routing_key=f"k{number}/"), MESSAGE, 1.0, 0.5)
        assert post.url == f"http://a.b/cb?t=1&hub.topic=k{number}%2F"
        assert post.headers["X-AMQP-Routing-Key"] == f"k{number}/"


def test_one_post_leaves_no_trace_in_the_next() -> None:
    plan = RequestTemplate(BASED, "sha256")
    plan.make_request(replace(ENVELOPE, hops=3, failures=1), MESSAGE, 1.0, 0.5)
    again = plan.make_request(ENVELOPE, MESSAGE, 1.9, 0.5)
    assert again.headers == make_post(BASED).headers


def test_a_binary_cloudevent() -> None:
    post = make_post(replace(BASED, options=Options(format="cloudevents-binary")))
    assert post.body == b"bonjour"
    assert post.headers["Content-Type"] == "text/plain; charset=x"
    assert {name: value for name, value in post.headers.items() if name.startswith("ce-")} == {
        "ce-id": "msg_1",
        "ce-source": "http://hub.example:8080/base/endpoint/x/news",
        "ce-specversion": "1.0",
        "ce-subject": "eu.fr",
        "ce-time": "1970-01-01T00:00:00.500Z",
        "ce-type": "warren.message",
    }


def test_a_structured_cloudevent_is_signed_as_it_is_sent() -> None:
    structured = replace(
        WEBSUB, options=Options(format="cloudevents-structured"), keys=Keys(secret="Jefe")
    )
    post = make_post(structured)
    assert post.headers["Content-Type"] == "application/cloudevents+json"
    document = json.loads(post.body)
    assert document["source"] == TOPIC_URL and document["data"] == "bonjour"
    digest = hmac.digest(b"Jefe", post.body, "sha256").hex()
    assert post.headers["X-Hub-Signature"] == f"sha256={digest}"


@pytest.mark.parametrize("form", ["cloudevents-binary", "cloudevents-structured"])
def test_what_is_an_event_already_passes_as_it_is(form: Format) -> None:
    properties = Properties(content_type="application/cloudevents+json; charset=utf-8")
    event = replace(MESSAGE, properties=properties, body=b'{"id": "theirs"}')
    chosen = replace(SUBSCRIPTION, options=Options(format=form))
    post = make_post(chosen, message=event)
    assert post.body == event.body
    assert post.headers["Content-Type"] == properties.content_type
    assert not any(name.startswith("ce-") for name in post.headers)


OWN = {
    "cloudEvents:specversion": "1.0",
    "cloudEvents:id": "a1",
    "cloudEvents:source": "/shop",
    "cloudEvents:type": "sold",
    "cloudEvents:place": "Euro \u20ac",
}


@pytest.mark.parametrize("form", ["plain", "cloudevents-binary"])
def test_an_event_in_binary_mode_keeps_its_attributes(form: Format) -> None:
    event = replace(MESSAGE, properties=Properties(content_type="a/b", headers=dict(OWN)))
    post = make_post(replace(SUBSCRIPTION, options=Options(format=form)), message=event)
    assert {name: value for name, value in post.headers.items() if name.startswith("ce-")} == {
        "ce-specversion": "1.0",
        "ce-id": "a1",
        "ce-source": "/shop",
        "ce-type": "sold",
        "ce-place": "Euro%20%E2%82%AC",
    }
    assert post.headers["Content-Type"] == "a/b"
    assert post.body == MESSAGE.body
    assert "x-rabbithub-msg_header" not in post.headers


def test_and_in_structured_mode_they_are_in_the_body() -> None:
    event = replace(MESSAGE, properties=Properties(content_type="text/plain", headers=dict(OWN)))
    structured = replace(SUBSCRIPTION, options=Options(format="cloudevents-structured"))
    assert json.loads(make_post(structured, message=event).body) == {
        "specversion": "1.0",
        "id": "a1",
        "source": "/shop",
        "type": "sold",
        "place": "Euro \u20ac",
        "datacontenttype": "text/plain",
        "data": "bonjour",
    }
