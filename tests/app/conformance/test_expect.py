"""The comparisons that checks make of every verification and delivery."""

from __future__ import annotations

from typing import Any

import pytest
from multidict import CIMultiDict, MultiDict

from warrenmq.app.conformance.callback import Callback
from warrenmq.app.conformance.exchange import Request
from warrenmq.app.conformance.expect import check_target, lease_of, normal
from warrenmq.app.conformance.results import Failed
from warrenmq.app.conformance.transcript import Transcript

URL = "http://me.example/topic/1"


def callback(target: str = "/callback/1") -> Callback:
    return Callback(f"http://me.example{target}", target, Transcript())


def request(target: str) -> Request:
    return Request("POST", target, MultiDict(), CIMultiDict(), b"content", 0.0)


def question(**fields: Any) -> Request:
    given = {"mode": "subscribe", "topic": URL, "challenge": "c", "lease_seconds": "60"} | fields
    query = MultiDict({f"hub.{name}": value for name, value in given.items()})
    return Request("GET", "/callback/1?hub.mode=x", query, CIMultiDict(), b"", 0.0)


def test_the_lease_is_read_in_seconds() -> None:
    assert lease_of(question(lease_seconds="9" * 4_000)) == int("9" * 18)


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


@pytest.mark.parametrize(
    ("url", "same"),
    [("/%61%7e%2D%5f%2E", "/a~-_."), ("/%2f%3d", "/%2F%3D"), ("/%c3%bc", "/%C3%BC"), ("/%", "/%")],
)
def test_unreserved_characters_are_decoded(url: str, same: str) -> None:
    assert normal(url) == same
