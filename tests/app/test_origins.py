"""Whose pages are let in."""

from __future__ import annotations

import pytest

from warrenmq.app.access.origins import AllowedOrigins


@pytest.mark.parametrize(
    ("origin", "host", "allowed"),
    [
        ("http://localhost:15672", "localhost:15672", True),
        ("HTTP://LocalHost:15672", "localhost:15672", True),
        ("http://localhost:15673", "localhost:15673", False),
        ("https://localhost:15672", "localhost:15672", False),
        ("https://app.example.org", "hub:15672", True),
        ("http://app.example.org", "hub:15672", False),
        ("https://app.example.org.evil.example", "hub:15672", False),
        ("http://192.0.2.1:15672", "192.0.2.1:15672", True),
        ("http://[::1]:15672", "[::1]:15672", True),
        ("http://192.0.2.1:80", "192.0.2.1:15672", False),
        # A name of theirs that leads here for the second request.
        ("http://evil.example:15672", "evil.example:15672", False),
        ("http://[", "[", False),
        ("null", "null", False),
        ("192.0.2.1", "192.0.2.1", False),
    ],
)
def test_origins(origin: str, host: str, allowed: bool) -> None:
    origins = AllowedOrigins(["http://localhost:15672/hub"], "https://App.example.org, ")
    assert origins.allow(origin, host) is allowed


@pytest.mark.parametrize(
    ("own", "setting", "origin"),
    [
        ("http://hub.example.org:80/hub", "", "http://hub.example.org"),
        ("https://hub.example.org:443", "", "https://hub.example.org"),
        ("http://localhost:15672", "https://app.example.org:443", "https://app.example.org"),
    ],
)
def test_browsers_leave_out_the_usual_port(own: str, setting: str, origin: str) -> None:
    assert AllowedOrigins([own], setting).allow(origin, "hub")


def test_another_port_is_another_origin() -> None:
    origins = AllowedOrigins(["http://hub.example.org:443", "http://hub.example.org:8080"])
    assert not origins.allow("http://hub.example.org", "hub.example.org")


def test_any_origin() -> None:
    assert AllowedOrigins([], "*").allow("https://evil.example", "hub")
