"""Settings that are more than a word or a number."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from warrenmq.app.configuration.parsers import (
    HostFiles,
    callback_networks,
    hosts,
    networks,
    origins,
    ports,
)


def test_networks() -> None:
    assert networks("") == []
    assert networks("10.0.0.0/8, 192.0.2.1,2001:db8::/32") == [
        ip_network("10.0.0.0/8"), ip_network("192.0.2.1/32"), ip_network("2001:db8::/32"),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["10.0.0.1/8", "localhost", "10.0.0.0/33", "10.0.0.0/8 ::1"])
def test_bad_networks_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a network like 10\.0\.0\.0/8"):
        networks(text)


@pytest.mark.parametrize(
    ("text", "plain"),
    [("::ffff:10.0.0.0/104", r"10\.0\.0\.0/8"), ("::ffff:192.0.2.7", r"192\.0\.2\.7/32")],
)
def test_ipv4_written_as_ipv6(text: str, plain: str) -> None:
    with pytest.raises(ValueError, match=rf"'{text}' is an IPv4-mapped network: write {plain}"):
        networks(text)


def test_origins() -> None:
    assert origins("") == []
    assert origins("*") == ["*"]
    assert origins("https://app.example.org, http://[::1]:3000") == [
        "https://app.example.org", "http://[::1]:3000",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["app.example.org", "https://a/path", "ftp://a", "https://", "null", "https://a b"]
)
def test_bad_origins_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is neither an origin like"):
        origins(text)


def test_hosts() -> None:
    assert hosts("") == {}
    assert hosts("a.example.org=a.pem:a.key, *.example.net=n.pem:n.key") == {
        "a.example.org": HostFiles("a.pem", "a.key"),
        "*.example.net": HostFiles("n.pem", "n.key"),
    }
    table = {"a.example.org": HostFiles("a.pem", "a.key")}
    assert hosts(table) == table


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a.example.org", "is not of the form HOST=CERT:KEY"),
        ("a.example.org=a.pem", "is not of the form HOST=CERT:KEY"),
        ("a b=a.pem:a.key", "'a b' is not a host name"),
        ("a.*.org=a.pem:a.key", r"'a\.\*\.org' is not a host name"),
        ("a=:a.key", "'a' needs a certificate and its key"),
        ({"a": HostFiles("a.pem", "")}, "'a' needs a certificate and its key"),
        ("a=a.pem:a.key,b=b.pem:b.key,a=c.pem:c.key", "'a' is given twice"),
        ({"a": HostFiles("a", "a"), "A": HostFiles("b", "b")}, "'a' is given twice"),
    ],
)
def test_bad_hosts_are_refused(value: str | dict[str, HostFiles], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hosts(value)


def test_networks_of_callbacks() -> None:
    assert callback_networks("10.0.0.0/8,fd00::/8") == [
        ip_network("10.0.0.0/8"), ip_network("fd00::/8"),
    ]  # fmt: skip
    for loopback in ("127.0.0.0/8", "10.0.0.0/8,127.0.0.1", "::1"):
        with pytest.raises(ValueError, match="is loopback, which only `dev` allows"):
            callback_networks(loopback)


def test_ports() -> None:
    assert ports("80, 443,8080") == frozenset({80, 443, 8080})
    assert ports("65535") == frozenset({65_535})
    assert ports(" any ") is None


@pytest.mark.parametrize("text", ["0", "65536", "80,http", "-1", "100000", "\u0664", "any,80"])
def test_bad_ports_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a port from 1 to 65535"):
        ports(text)


def test_an_empty_list_of_ports_is_refused() -> None:
    with pytest.raises(ValueError, match="names no port; `any` allows all"):
        ports(" , ")
