from __future__ import annotations

from dataclasses import replace

import pytest

from warren.core.model import Message, Properties
from warren.hub.deliver.envelope import Envelope
from warren.hub.deliver.post import header_value, make_post
from warren.hub.requests import Resource
from warren.hub.subscription import Subscription

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
    post = make_post(subscription, envelope, message, now_s=1.9, signature_method="sha256")
    return post.headers


def test_the_whole_post() -> None:
    post = make_post(SUBSCRIPTION, ENVELOPE, MESSAGE, now_s=1.9, signature_method="sha256")
    assert post.url == "http://a.b/cb?t=1&hub.topic=eu.fr"
    assert post.body == b"bonjour"
    assert post.headers == {
        "Content-Type": "text/plain; charset=x",
        "X-AMQP-Routing-Key": "eu.fr",
        "X-AMQP-Redelivered": "false",
        "X-AMQP-Exchange": "news",
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
    signed = headers(replace(SUBSCRIPTION, secret="Jefe"))["X-Hub-Signature"]
    assert signed.startswith("sha256=") and len(signed) == 7 + 64


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.b-c%20 #*", "a.b-c%20 #*"),
        ("caf\u00e9", "caf%C3%A9"),
        ("a\r\nb", "a%0D%0Ab"),
        ("100% caf\u00e9", "100%25 caf%C3%A9"),
        ("\x7f", "%7F"),
    ],
)
def test_names_in_headers(text: str, value: str) -> None:
    assert header_value(text) == value
