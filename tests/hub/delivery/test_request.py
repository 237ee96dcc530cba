from __future__ import annotations

from dataclasses import replace

import pytest

from tests.hub.support import subscription
from warrenmq.core.message.model import Message, Properties
from warrenmq.hub.delivery.envelope import Envelope
from warrenmq.hub.delivery.request import DeliveryRequest, RequestTemplate
from warrenmq.hub.requests import Resource
from warrenmq.hub.subscriptions.options import Format, Keys, Options
from warrenmq.hub.subscriptions.subscription import Subscription

SUBSCRIPTION = subscription(callback="http://a.b/cb?t=1")
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


@pytest.mark.parametrize("content_type", [None, "", "text/plain\r\nX-Evil: 1", "a\x00"])
def test_without_a_usable_type_it_is_octets(content_type: str | None) -> None:
    message = replace(MESSAGE, properties=Properties(content_type=content_type))
    assert headers(message=message)["Content-Type"] == "application/octet-stream"


def test_the_previous_key_signs_until_its_end() -> None:
    keys = Keys(secret="new", previous="old", previous_until=100.0)
    rotating = replace(SUBSCRIPTION, keys=keys)
    before = make_post(rotating, now_s=99.0).headers
    after = make_post(rotating, now_s=100.0).headers
    alone = make_post(replace(SUBSCRIPTION, keys=Keys(secret="old")), now_s=99.0).headers
    assert before["webhook-signature"].split(" ")[1] == alone["webhook-signature"]
    assert " " not in after["webhook-signature"]
    assert before["X-Hub-Signature"] == after["X-Hub-Signature"]


BASED = replace(SUBSCRIPTION, base_url="http://hub.example:8080/base")
BASE = "http://hub.example:8080/base"
HUB_LINK = f'<{BASE}/hub>; rel="hub", '


TOPIC_URL = "https://feeds.example/a?b=c"
WEBSUB = replace(BASED, topic_url=TOPIC_URL)


@pytest.mark.parametrize(
    ("subscription", "envelope", "header", "value"),
    [
        (SUBSCRIPTION, replace(ENVELOPE, exchange=""), "X-AMQP-Exchange", None),
        (replace(SUBSCRIPTION, keys=Keys(basic_auth="Z3Vlc3Q=")), ENVELOPE, "Authorization",
         "Basic Z3Vlc3Q="),
        (SUBSCRIPTION, ENVELOPE, "Link", None),
        (BASED, ENVELOPE, "Link", f'{HUB_LINK}<{BASE}/endpoint/x/news>; rel="self"'),
        (replace(BASED, source=Resource("a/b", "q", "in box")), ENVELOPE, "Link",
         f'{HUB_LINK}<{BASE}/a%2Fb/endpoint/q/in%20box>; rel="self"'),
        (replace(WEBSUB, topic_url='https://a/"><\r\n'), ENVELOPE, "Link",
         f'{HUB_LINK}<https://a/%22%3E%3C%0D%0A>; rel="self"'),
    ],
)  # fmt: skip
def test_headers(
    subscription: Subscription, envelope: Envelope, header: str, value: str | None
) -> None:
    assert headers(subscription, envelope).get(header) == value


def test_each_routing_key_has_its_url() -> None:
    plan = RequestTemplate(SUBSCRIPTION, "sha256")
    for number in (1, 2, 1, *range(200)):
        post = plan.make_request(replace(ENVELOPE, routing_key=f"k{number}/"), MESSAGE, 1.0, 0.5)
        assert post.url == f"http://a.b/cb?t=1&hub.topic=k{number}%2F"
        assert post.headers["X-AMQP-Routing-Key"] == f"k{number}/"


def test_requests_share_no_state() -> None:
    plan = RequestTemplate(BASED, "sha256")
    plan.make_request(replace(ENVELOPE, hops=3, failures=1), MESSAGE, 1.0, 0.5)
    again = plan.make_request(ENVELOPE, MESSAGE, 1.9, 0.5)
    assert again.headers == make_post(BASED).headers


@pytest.mark.parametrize("form", ["cloudevents-binary", "cloudevents-structured"])
def test_an_event_is_sent_unchanged(form: Format) -> None:
    properties = Properties(content_type="application/cloudevents+json; charset=utf-8")
    event = replace(MESSAGE, properties=properties, body=b'{"id": "theirs"}')
    chosen = replace(SUBSCRIPTION, options=Options(format=form))
    post = make_post(chosen, message=event)
    assert post.body == event.body
    assert post.headers["Content-Type"] == properties.content_type
    assert not any(name.startswith("ce-") for name in post.headers)
