"""The comparisons that checks make of every verification and delivery."""

from __future__ import annotations

import hmac
from typing import Any

import pytest
from multidict import CIMultiDict, MultiDict

from warrenmq.app.conformance.callback import Callback
from warrenmq.app.conformance.exchange import Request
from warrenmq.app.conformance.expect import (
    check_delivery,
    check_links,
    check_signature,
    check_target,
    check_verification,
    lease_of,
    normal,
)
from warrenmq.app.conformance.results import Failed
from warrenmq.app.conformance.topic import Topic
from warrenmq.app.conformance.transcript import Transcript

HUB = "http://hub.example/"
URL = "http://me.example/topic/1"
BODY = b"content"
OF_ANOTHER = "sha256=" + "0" * 64


def topic() -> Topic:
    return Topic(URL, HUB, Transcript(), "text/plain", BODY)


def callback(target: str = "/callback/1") -> Callback:
    return Callback(f"http://me.example{target}", target, Transcript())


def request(target: str = "/callback/1", method: str = "POST", **headers: str) -> Request:
    links = f'<{HUB}>; rel="hub", <{URL}>; rel="self"'
    fields = {"Content-Type": "text/plain", "Link": links}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method, target, MultiDict(), CIMultiDict(fields), BODY, 0.0)


def question(**fields: Any) -> Request:
    given = {"mode": "subscribe", "topic": URL, "challenge": "c", "lease_seconds": "60"} | fields
    query = MultiDict({f"hub.{name}": value for name, value in given.items()})
    return Request("GET", "/callback/1?hub.mode=x", query, CIMultiDict(), b"", 0.0)


def test_verification() -> None:
    check_verification(question(), "subscribe", URL, callback())
    check_verification(question(mode="unsubscribe"), "unsubscribe", URL, callback())


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "unsubscribe"},
        {"topic": URL + "/"},
        {"challenge": ""},
        {"lease_seconds": "0"},
        {"lease_seconds": "-5"},
        {"lease_seconds": "1.5"},
        {"lease_seconds": ""},
    ],
)
def test_wrong_verification(wrong: dict[str, str]) -> None:
    with pytest.raises(Failed, match="hub."):
        check_verification(question(**wrong), "subscribe", URL, callback())


def test_lease() -> None:
    assert lease_of(question(lease_seconds="9" * 4_000)) == int("9" * 18)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("/c", "/c?hub.mode=x"),
        ("/c?a=b", "/c?a=b&hub.mode=x"),
        ("/c?", "/c?hub.mode=x"),
        ("/c?a&", "/c?a&hub.mode=x"),
    ],
)
def test_query_is_appended(given: str, used: str) -> None:
    check_target(request(used), callback(given), "verification")


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("/c?a=b", "/c?hub.mode=x&a=b"),
        ("/c?a=b", "/c?a=b?hub.mode=x"),
        ("/c?a=b", "/c?a=b"),
        ("/c", "/d?hub.mode=x"),
        ("/c?a=%20", "/c?a=+&hub.mode=x"),
    ],
)
def test_query_is_not_kept(given: str, used: str) -> None:
    with pytest.raises(Failed, match="but the callback given was"):
        check_target(request(used), callback(given), "verification")


def test_delivery() -> None:
    check_delivery(request(), callback(), topic(), HUB, None)
    check_delivery(request(X_Hub_Signature=sign()), callback(), topic(), HUB, "secret")


@pytest.mark.parametrize(
    ("target", "headers", "reason"),
    [
        ("/callback/1?hub.topic=x", {}, "the delivery went to"),
        ("/callback/1", {"Content_Type": "text/plain; charset=utf-8"}, "Content-Type"),
        ("/callback/1", {"Link": ""}, "rel=hub"),
        ("/callback/1", {"X_Hub_Signature": OF_ANOTHER}, "no secret to sign with"),
    ],
)
def test_wrong_delivery(target: str, headers: dict[str, str], reason: str) -> None:
    with pytest.raises(Failed, match=reason):
        check_delivery(request(target, **headers), callback(), topic(), HUB, None)


def test_another_body() -> None:
    other = topic()
    other.body = b"content\n"
    with pytest.raises(Failed, match="not the topic's content: 'content'"):
        check_delivery(request(), callback(), other, HUB, None)


@pytest.mark.parametrize(
    "links",
    [
        f'<{HUB}x>; rel="hub", <{URL}>; rel="self"',
        f'<{HUB}x>; rel="hub", <{HUB}>; rel="hub", <{URL}>; rel="self"',
        f'<{HUB}>; rel="hub"',
        f'<{HUB}>; rel="hub", <{URL}>; rel="self", <{URL}>; rel="self"',
        f'<{HUB}>; rel="hub", <{URL}/other>; rel="self"',
    ],
)
def test_wrong_links(links: str) -> None:
    with pytest.raises(Failed, match="of the Link headers"):
        check_links(request(Link=links), topic(), HUB)


def sign(method: str = "sha256") -> str:
    return f"{method}={hmac.new(b'secret', BODY, method).hexdigest()}"


@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512"])
def test_signature(method: str) -> None:
    assert check_signature(request(X_Hub_Signature=sign(method)), "secret") == method
    upper = sign(method).split("=")[1].upper()
    assert check_signature(request(X_Hub_Signature=f"{method}={upper}"), "secret") == method


@pytest.mark.parametrize("field", ["", "sha256", "sha256=", sign("md5"), sign()[:-1], OF_ANOTHER])
def test_wrong_signature(field: str) -> None:
    with pytest.raises(Failed, match="X-Hub-Signature"):
        check_signature(request(X_Hub_Signature=field), "secret")


def test_missing_signature() -> None:
    with pytest.raises(Failed, match="is missing"):
        check_signature(request(), "secret")


@pytest.mark.parametrize(
    ("url", "same"),
    [("/%61%7e%2D%5f%2E", "/a~-_."), ("/%2f%3d", "/%2F%3D"), ("/%c3%bc", "/%C3%BC"), ("/%", "/%")],
)
def test_normal(url: str, same: str) -> None:
    assert normal(url) == same
