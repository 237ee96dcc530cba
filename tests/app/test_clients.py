"""Whose request it is that a proxy passes on."""

from __future__ import annotations

import pytest
from starlette.types import Scope

from warrenmq.app.access.clients import Clients
from warrenmq.app.configuration.parsers import networks

PROXIES = "10.0.0.0/8, 127.0.0.1, 2001:db8:1::/48"


def client_of(peer: str, *fields: tuple[str, str]) -> str:
    headers = [(name.encode(), value.encode("latin-1")) for name, value in fields]
    scope: Scope = {"client": (peer, 1234), "headers": headers}
    Clients(networks(PROXIES)).reveal(scope)
    return str(scope["client"][0])


@pytest.mark.parametrize(
    ("value", "client"),
    [
        ("203.0.113.1", "203.0.113.1"),
        ("198.51.100.9, 203.0.113.1", "203.0.113.1"),
        ("203.0.113.1, 10.1.1.1,10.2.2.2", "203.0.113.1"),
        ("10.3.3.3, 10.1.1.1", "10.3.3.3"),
        ("203.0.113.1:5678", "203.0.113.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("::ffff:203.0.113.1", "203.0.113.1"),
        ("203.0.113.1, unknown", "10.9.9.9"),
        ("203.0.113.1, ", "10.9.9.9"),
        ("\xe9", "10.9.9.9"),
    ],
)
def test_x_forwarded_for(value: str, client: str) -> None:
    assert client_of("10.9.9.9", ("x-forwarded-for", value)) == client


@pytest.mark.parametrize(
    ("value", "client"),
    [
        ("for=203.0.113.1", "203.0.113.1"),
        ("by=10.0.0.1; For=203.0.113.1;proto=https", "203.0.113.1"),
        ('for="[2001:db8::1]:4711"', "2001:db8::1"),
        ("for=198.51.100.9, for=203.0.113.1;host=a, for=10.1.1.1", "203.0.113.1"),
        ("for=203.0.113.1, for=_hidden", "10.9.9.9"),
        ("for=203.0.113.1, proto=https", "10.9.9.9"),
        ("for=203.0.113.1;for=203.0.113.2", "10.9.9.9"),
    ],
)
def test_forwarded(value: str, client: str) -> None:
    assert client_of("10.9.9.9", ("forwarded", value)) == client


def test_several_fields_are_one_list() -> None:
    fields = [("x-forwarded-for", "198.51.100.9"), ("x-forwarded-for", "203.0.113.1")]
    assert client_of("10.9.9.9", *fields) == "203.0.113.1"


def test_two_fields_have_to_agree() -> None:
    told, made_up = ("x-forwarded-for", "203.0.113.1"), ("forwarded", "for=198.51.100.9")
    assert client_of("10.9.9.9", told, made_up) == "10.9.9.9"
    assert client_of("10.9.9.9", told, ("forwarded", "for=203.0.113.1")) == "203.0.113.1"


@pytest.mark.parametrize("peer", ["203.0.113.7", "2001:db8:2::1", ""])
def test_fields_of_other_peers_are_ignored(peer: str) -> None:
    assert client_of(peer, ("x-forwarded-for", "198.51.100.9")) == peer


def test_a_proxy_without_fields() -> None:
    assert client_of("10.9.9.9", ("via", "1.1 proxy")) == "10.9.9.9"
