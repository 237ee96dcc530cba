"""Which requests are those of a program on this machine."""

from __future__ import annotations

import pytest
from starlette.types import Scope

from warrenmq.app.access.local_requests import (
    RELAYING,
    LocalHosts,
    LocalRequests,
    counted_by,
    is_loopback,
    is_near,
)
from warrenmq.app.access.origins import AllowedOrigins


def request(peer: str | None = "127.0.0.1", **fields: str) -> Scope:
    """With header fields; `_` stands for the dash."""
    headers = [
        (name.replace("_", "-").lower().encode(), value.encode("latin-1"))
        for name, value in fields.items()
    ]
    return {"client": None if peer is None else (peer, 1234), "headers": headers}


@pytest.fixture
def nearness() -> LocalRequests:
    origins = AllowedOrigins(["http://localhost:15672", "https://hub.example.org"])
    return LocalRequests(origins, LocalHosts("Burrow"))


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("::ffff:127.0.0.1", True),
        ("::ffff:10.0.0.1", False), ("10.0.0.1", False), ("::2", False), ("fe80::1%lo", False),
        ("localhost", False), ("", False),
    ],
)  # fmt: skip
def test_loopback(address: str, loopback: bool) -> None:
    assert is_loopback(address) is loopback
    assert is_near(request(address)) is loopback


def test_a_request_without_a_peer() -> None:
    assert not is_near(request(None))
    assert counted_by(request(None), False) == ""


@pytest.mark.parametrize("field", sorted(field.decode() for field in RELAYING))
def test_proxy_fields_make_a_request_remote(nearness: LocalRequests, field: str) -> None:
    scope = request(**{field.replace("-", "_"): "127.0.0.1"})
    assert not is_near(scope)
    assert not nearness.is_near(scope)
    assert counted_by(scope, False) == "behind 127.0.0.1"


def test_no_field_makes_a_request_local(nearness: LocalRequests) -> None:
    for field in ("X_Forwarded_For", "Forwarded", "X_Real_IP", "Via", "Host", "Origin"):
        assert not nearness.is_near(request("10.0.0.1", **{field: "127.0.0.1"}))


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("localhost", True), ("localhost:15672", True), ("LOCALHOST:1", True),
        ("127.0.0.1:15672", True), ("127.1.2.3", True), ("[::1]:15672", True),
        ("burrow:15672", True), ("BURROW", True),
        # Names that lead here for a browser, or the address that a proxy was asked for.
        ("evil.example:15672", False), ("localhost.evil.example", False),
        ("hub.example.org", False), ("192.0.2.1:15672", False), ("[::2]", False),
        ("[", False), ("\xff", False), ("evil.example@localhost:x@y", False),
    ],
)  # fmt: skip
def test_local_hosts(nearness: LocalRequests, host: str, near: bool) -> None:
    assert nearness.is_near(request(Host=host)) is near


def test_http_1_0_names_no_host(nearness: LocalRequests) -> None:
    assert nearness.is_near(request())


@pytest.mark.parametrize(
    ("origin", "near"),
    [
        ("http://localhost:15672", True), ("http://127.0.0.1:15672", True),
        ("http://evil.example", False), ("http://localhost:8080", False), ("null", False),
    ],
)  # fmt: skip
def test_local_origins(nearness: LocalRequests, origin: str, near: bool) -> None:
    scope = request(Host="127.0.0.1:15672", Origin=origin)
    assert nearness.is_near(scope) is near


@pytest.mark.parametrize(
    ("scope", "near", "counted"),
    [
        (request(), True, "127.0.0.1"),
        (request(Host="evil.example"), False, "behind 127.0.0.1"),
        (request("10.0.0.1"), False, "10.0.0.1"),
        (request("10.0.0.1", Via="1.1 proxy"), False, "10.0.0.1"),
    ],
)
def test_address_for_failed_logins(scope: Scope, near: bool, counted: str) -> None:
    assert counted_by(scope, near) == counted


def test_http_1_0_is_not_local(nearness: LocalRequests) -> None:
    """nginx asks the name that it was given, over HTTP/1.0, and adds no field."""
    assert not nearness.is_near({**request(Host="localhost:15672"), "http_version": "1.0"})
    assert nearness.is_near({**request(Host="localhost:15672"), "http_version": "1.1"})


def test_no_request_is_local_if_a_proxy_is_configured() -> None:
    behind_one = LocalRequests(AllowedOrigins([]), LocalHosts("burrow"), has_proxy=True)
    assert not behind_one.is_near(request(Host="localhost:15672"))
