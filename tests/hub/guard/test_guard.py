"""Reliability.md section 6, numbers 48-56, and what lies around them.

Over HTTP they are in `tests/conformance/test_bad_callbacks.py`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator
from ipaddress import IPv6Network, ip_network
from typing import Any

import pytest

from tests.hub.support import Posting, until
from tests.support.dns import Name, Zone, dns
from tests.support.http import Callback
from tests.support.settings import hub_settings
from warrenmq.hub.errors import CallbackRefused
from warrenmq.hub.guard import guard as module
from warrenmq.hub.guard.addresses import embedded, is_public, is_this_machine, parse_address
from warrenmq.hub.guard.callback_url import MAX_CALLBACK_LENGTH
from warrenmq.hub.guard.guard import NOT_REACHED, Guard
from warrenmq.hub.guard.lookups import Purpose
from warrenmq.hub.sender.http_sender import HttpSender
from warrenmq.hub.sender.port import SendError
from warrenmq.hub.settings import HubSettings
from warrenmq.hub.verification.verify import Verifier

OWN = ("http://hub.example.org", "http://127.0.0.1:15672/base")


def guard(**settings: Any) -> Guard:
    return Guard(hub_settings(**{"base_urls": OWN, **settings}))


PASSING = """
    http://example.org  https://example.org/cb?a=1&b=%2F  http://example.org:443/
    http://a_b.example.org/  http://xn--bcher-kva.example/  http://8.8.8.8/
    http://[2606:4700::1111]/  http://example.org./  https://example.org.:443/a?b  http://8.8.8.8./
"""
REFUSED = """
    http://127.1/  http://0x7f000001/  http://2130706433/  http://0177.0.0.1/  http://0/
    http://1.2.3.4.5/  http://[::ffff:127.0.0.1]/  http://[64:ff9b::7f00:1]/  http://[::1]/
    http://[fec0::1]/  http://[2002:7f00:1::]/  http://[ff02::1]/  http://[fe80::1%25eth0]/
    http://169.254.169.254/  http://100.64.0.1/  http://user:pw@example.org/
    http://user@example.org/  file:///etc/passwd  gopher://example.org/  //example.org/
    example.org  http://  http:example.org  http:///path  http://example.org:6379/
    http://example.org:0/  http://example.org:65536/  http://example.org:http/
    http://[::1]example.org/  http://[v1.x]/  http://example.org\\@127.0.0.1/
    http://example.org/#fragment  http://-example.org/  http://example..org/
    http://hub.example.org/endpoint/q/in  https://hub.example.org/other
    http://hub.example.org./endpoint/q/in  https://HUB.example.org.:443/  http://127.0.0.1./
    http://169.254.169.254./  http://127.1./  http://example.org../  http://./  http://.example.org/
    http://example\u3002org/  http://example.org/caf\u00e9
"""
UNSPLIT = [
    "", "http://exa mple.org/", "http://example.org/\r\nX: y", "http://example.org/\x00",
    "http://" + "a" * 64 + ".org/", "http://example.org/" + "a" * MAX_CALLBACK_LENGTH,
]  # fmt: skip


@pytest.mark.parametrize("url", PASSING.split())
def test_public_callbacks_pass(url: str) -> None:
    guard().check(url)


@pytest.mark.parametrize("url", [*REFUSED.split(), *UNSPLIT])
def test_other_callbacks_are_refused(url: str) -> None:
    with pytest.raises(CallbackRefused) as caught:
        guard().check(url)
    assert (caught.value.field, caught.value.status) == ("hub.callback", 422)


def test_an_empty_url_is_called_empty() -> None:
    with pytest.raises(CallbackRefused) as caught:
        guard().check("")
    assert caught.value.reason == "is empty"


INNER = """
    0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1
    127.255.255.255 169.254.0.1 172.16.0.0 172.31.255.255 192.0.0.1 192.88.99.1 192.168.0.1
    198.18.0.0 198.19.255.255 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1
    ::ffff:10.0.0.1 ::7f00:1 fc00::1 fdff::1 fe80::1 febf::1 fec0::1 ff02::1 64:ff9b::808:808
    64:ff9b:1::1 100::1 2001:db8::1 2001::1 2002::1 3fff::1 5f00::1 4000::1
"""
OUTER = """
    1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
    172.15.255.255 172.32.0.0 198.17.255.255 198.20.0.0 223.255.255.255 2606:4700::1
    ::ffff:8.8.8.8 2a00::1
"""


@pytest.mark.parametrize(
    ("address", "expected"),
    [*((one, False) for one in INNER.split()), *((one, True) for one in OUTER.split())],
)
def test_public_addresses(address: str, expected: bool) -> None:
    assert is_public(parse_address(address)) is expected


EVERYTHING = (ip_network("0.0.0.0/0"), ip_network("::/0"))


@pytest.mark.parametrize(
    ("settings", "passing", "refused", "reason"),
    [
        (
            {"allow_loopback": True},
            "http://127.0.0.1:5000/ http://[::1]:99/ http://localhost:5000/",
            "http://10.0.0.1/ http://8.8.8.8:5000/ http://127.0.0.1:15672/",
            "",
        ),
        (
            {"allowed_networks": (ip_network("10.1.0.0/16"),), "callback_ports": {80, 8080}},
            "http://10.1.2.3:8080/",
            "http://10.2.0.1/ http://10.1.2.3:9090/",
            "",
        ),
        (
            {
                "allowed_networks": (ip_network("169.254.0.0/16"),),
                "denied_networks": (ip_network("169.254.169.254"), ip_network("8.8.8.0/24")),
            },
            "http://169.254.1.1/",
            "http://169.254.169.254/ http://8.8.8.8/",
            "deny_networks",
        ),
        (  # loopback is in no listed network
            {"allowed_networks": EVERYTHING},
            "http://10.1.2.3/ http://[fc00::1]/",
            "http://127.0.0.1/ http://[::1]/ http://0.0.0.0/ http://[::]/",
            "not public",
        ),
        (
            {"callback_ports": None},
            "http://example.org:1/ http://example.org:65535/ http://8.8.8.8:6379/",
            "http://example.org:0/ http://example.org:65536/ http://10.0.0.1:6379/",
            "",
        ),
    ],
    ids=["development", "allowed", "denied", "everything", "55-ports"],
)
def test_settings(settings: dict[str, Any], passing: str, refused: str, reason: str) -> None:
    configured = guard(**settings)
    for url in passing.split():
        configured.check(url)
    for url in refused.split():
        with pytest.raises(CallbackRefused) as caught:
            configured.check(url)
        assert reason in f"{caught.value} {caught.value.limit}"


@pytest.mark.parametrize(
    ("prefix", "address"),
    [
        ("2001:db8::/32", "2001:db8:c000:221::"),
        ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
        ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
        ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
        ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
        ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"),
    ],
)
def test_ipv4_addresses_are_extracted_from_nat64_prefixes(prefix: str, address: str) -> None:
    """RFC 6052 2.4."""
    found = embedded(parse_address(address), [IPv6Network(prefix)])
    assert str(found) == "192.0.2.33"
    assert embedded(parse_address("2a00::1"), [IPv6Network(prefix)]) is None


def test_56_an_address_of_this_machine_is_refused_at_the_hubs_ports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "is_this_machine", lambda address: str(address) == "8.8.8.8")
    listening = guard(own_ports=frozenset({8080}), callback_ports=frozenset({80, 8080}))
    with pytest.raises(CallbackRefused, match="own address"):
        listening.check("http://8.8.8.8:8080/")
    listening.check("http://8.8.8.8/")
    listening.check("http://8.8.4.4:8080/")


def test_addresses_of_this_machine() -> None:
    addresses = ("127.0.0.1", "192.0.2.1", "2001:db8::1")
    assert [is_this_machine(parse_address(one)) for one in addresses] == [True, False, False]


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("http://10.0.0.1/", "allow_networks"),
        ("http://127.0.0.1/", "setting dev"),
        ("http://example.org:6379/", "ports 80, 443 (setting callback_ports)"),
        ("http://user:pass-word@example.org/", "hub.basic_auth"),
        ("http://hub.example.org/endpoint/q/in", "hub.mode=generate_token"),
        ("example.org", "http, https"),
    ],
)
def test_a_refusal_gives_advice_and_shows_no_credentials(url: str, advice: str) -> None:
    with pytest.raises(CallbackRefused) as caught:
        guard().check(url)
    assert advice in (caught.value.limit or "")
    assert "pass-word" not in f"{caught.value} {caught.value.value}"


@contextlib.asynccontextmanager
async def resolving(
    names: dict[str, list[str] | Name], **settings: Any
) -> AsyncIterator[tuple[Guard, Zone, HubSettings]]:
    with dns(names) as zone:
        given = hub_settings(dns_servers=(zone.server,), **{"base_urls": OWN, **settings})
        own = Guard(given)
        yield own, zone, given
        await own.close()


async def test_53_every_address_of_a_name_must_be_public(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The reason is in the log alone, so that clients learn nothing about the network."""
    names: dict[str, list[str] | Name] = {
        "outer.example": ["8.8.8.8", "1.1.1.1"],
        "mixed.example": ["8.8.8.8", "127.0.0.1"],
        "private.example": ["10.0.0.1", "8.8.8.8"],
        "mapped.example": ["::ffff:127.0.0.1"],
        "platform.example": ["168.63.129.16"],
        "nat64.example": ["2600:64::a00:1"],
        "outer64.example": ["2600:64::808:808"],
    }
    caplog.set_level(logging.INFO)
    settings = {
        "denied_networks": (ip_network("168.63.129.16"),),
        "nat64_prefixes": (ip_network("2600:64::/96"),),
    }
    async with resolving(names, **settings) as (own, _, _):
        assert await own.resolve("outer64.example", 80, Purpose.VERIFY)
        found = await own.resolve("outer.example", 80, Purpose.VERIFY)
        assert {str(one) for one in found} == {"8.8.8.8", "1.1.1.1"}
        for name in ("mixed", "private", "mapped", "platform", "nat64", "none"):
            with pytest.raises(CallbackRefused, match=NOT_REACHED):
                await own.resolve(f"{name}.example", 80, Purpose.VERIFY)
    for part in ("private.example: ", "10.0.0.1", "168.63.129.16", "not found"):
        assert part in caplog.text


async def test_53_a_name_is_vetted_again_for_each_connection(callback: Callback) -> None:
    """The later answers of a rebinding name are not dialled."""
    port, network = callback.port, ip_network("192.0.2.0/24")
    names: dict[str, list[str] | Name] = {"rebind.example": Name(["192.0.2.1"], ttl_s=0)}
    free = resolving(names, callback_ports=None, allowed_networks=(network,))
    async with free as (own, zone, settings):
        found = await own.resolve("rebind.example", port, Purpose.VERIFY)
        assert [str(one) for one in found] == ["192.0.2.1"]
        zone.names["rebind.example"].addresses = ["127.0.0.1"]

        async def is_refused() -> bool:
            try:
                return not await own.resolve("rebind.example", port, Purpose.VERIFY)
            except CallbackRefused:
                return True

        await until(is_refused, "second answer")
        verifier, sender = Verifier(settings, own), HttpSender(settings, own)
        url = f"http://rebind.example:{port}/"
        with pytest.raises(CallbackRefused, match=NOT_REACHED):
            await verifier.notify(url, url)
        with pytest.raises(SendError, match=NOT_REACHED):
            await Posting(sender).post(url, {}, b"x")
        await verifier.close()
        await sender.close()
    assert callback.requests == []


async def test_a_name_needs_1_to_64_addresses() -> None:
    many = [f"8.8.8.{number}" for number in range(65)]
    async with resolving({"many.example": many, "few.example": many[1:]}) as (own, _, _):
        assert len(await own.resolve("few.example", 80, Purpose.VERIFY)) == 64
        for name in ("none.example", "many.example"):
            with pytest.raises(CallbackRefused, match=NOT_REACHED):
                await own.resolve(name, 80, Purpose.VERIFY)
