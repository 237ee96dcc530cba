from __future__ import annotations

import pytest

from warrenmq.hub.guard.own import endpoint_of, is_own
from warrenmq.hub.requests import Resource

BASES = ("http://localhost:15672", "https://hub.example.org/base/")
IN = Resource("/", "q", "in")


@pytest.mark.parametrize(
    ("url", "resource"),
    [
        ("http://localhost:15672/endpoint/q/in", IN),
        ("http://LOCALHOST:15672/endpoint/q/in", IN),
        ("http://localhost:15672/rabbithub/endpoint/q/in", IN),
        ("http://localhost.:15672/endpoint/q/in", IN),
        ("https://hub.example.org/base/endpoint/q/in", IN),
        ("http://hub.example.org/endpoint/q/in", IN),
        ("http://localhost:15672/endpoint/x/a%2Fb%2520", Resource("/", "x", "a/b%20")),
        ("http://localhost:15672/%2Fshop/endpoint/x/a", Resource("/shop", "x", "a")),
        ("http://localhost:15672/endpoint/q/in?x=1", None),
        ("http://localhost:15672/endpoint/q/in/", None),
        ("http://localhost:15672/endpoint/z/in", None),
        ("http://localhost:15672/subscribe/q/in", None),
        ("http://localhost:15673/endpoint/q/in", None),
        ("http://other.example.org/endpoint/q/in", None),
        ("http://u:p@localhost:15672/endpoint/q/in", None),
        ("ftp://localhost:15672/endpoint/q/in", None),
        ("http://[/endpoint/q/in", None),
    ],
)
def test_endpoint_urls(url: str, resource: Resource | None) -> None:
    assert endpoint_of(url, BASES) == resource


def test_own_hosts() -> None:
    assert is_own("http://hub.example.org/any", BASES)
    assert is_own("https://Hub.Example.org./any", BASES)
    assert is_own("http://localhost/any", ("http://localhost.",))
    assert not is_own("http://hub.example.org:81/any", BASES)
    assert not is_own("http://[", BASES)
