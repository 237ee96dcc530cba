"""What the settings become in the broker and in the hub."""

from __future__ import annotations

from dataclasses import MISSING, Field, asdict, fields
from typing import Any

import pytest

from tests.support import settings as plain
from warrenmq.app.configuration.parts import broker_limits, hub_settings, tunnel_settings
from warrenmq.app.configuration.settings import Settings
from warrenmq.core.context import BrokerLimits
from warrenmq.hub.settings import HubSettings


def test_every_limit_can_be_set() -> None:
    settings = Settings(
        frame_max=8192, channel_max=7, heartbeat_s=5, max_message_bytes=9, consumer_timeout=0,
        strict_arguments=True,
    )  # fmt: skip
    assert broker_limits(settings) == BrokerLimits(
        frame_max=8192, channel_max=7, heartbeat_s=5, max_message_bytes=9, consumer_timeout_ms=0,
        strict_arguments=True,
    )  # fmt: skip


def test_default_settings_of_the_hub() -> None:
    found = asdict(hub_settings(Settings(), ("http://a",), frozenset({1})))
    defaults = asdict(plain.hub_settings())
    differing = {name: value for name, value in found.items() if value != defaults[name]}
    assert differing.pop("denied_networks") == Settings().denied_callback_networks()
    assert differing == {
        "base_urls": ("http://a",), "own_ports": {1}, "max_rate_per_origin": 1_000, "drain_s": 4.0,
    }  # fmt: skip


CONVERTED = {
    "callback_ports", "dns_servers", "max_rate_per_origin", "nat64_prefixes", "relay_hosts",
    "tunnels",
}  # fmt: skip
"""Settings that are of another type than the field of the same name."""


def test_a_default_is_in_one_place() -> None:
    doubled = {field.name for field in fields(HubSettings) if is_optional(field)}
    assert doubled & {*Settings.__struct_fields__} == CONVERTED


def is_optional(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def test_development_mode_and_renamed_settings_of_the_hub() -> None:
    settings = Settings(
        dev=True, hub_key_file="key", delivery_timeout_s=3.0, hub_anonymous_subscriptions=5,
        hub_anonymous_content=1024, max_attempts=2, callback_ports="any", dns_servers="192.0.2.1",
    )  # fmt: skip
    found = hub_settings(settings, (), frozenset())
    assert (found.allow_loopback, found.hub_foreign_topics, found.hub_anonymous) == (True,) * 3
    assert (found.key_file, found.total_timeout_s, found.max_attempts) == ("key", 3.0, 2)
    assert (found.max_per_anonymous_client, found.anonymous_bytes_per_hour) == (5, 1024)
    assert (found.callback_ports, found.max_rate_per_origin) == (None, 0)
    assert found.dns_servers == ("192.0.2.1:53",)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({}, "http://tun.localhost:15672"),
        ({"tunnel_domain": "tun.localhost:8080"}, "http://tun.localhost:8080"),
        ({"public_url": "https://hub.example.org/base"}, "http://tun.localhost:15672"),
        ({"tunnel_domain": "tun.example.net"}, "http://tun.example.net:15672"),
        (
            {"tunnel_domain": "tun.example.net", "public_url": "https://hub.example.org"},
            "https://tun.example.net",
        ),
        (
            {"tunnel_domain": "tun.example.net:444", "public_url": "https://hub.example.org:8443"},
            "https://tun.example.net:444",
        ),
    ],
)
def test_public_urls_of_tunnels(given: dict[str, str], url: str) -> None:
    assert tunnel_settings(Settings(**given), 15672).url == url  # type: ignore[arg-type]


def test_who_may_enrol_tunnels() -> None:
    strict, open_ = (tunnel_settings(Settings(dev=dev), 80) for dev in (False, True))
    assert (strict.is_open, strict.allows_weak_tokens) == (False, False)
    assert (open_.is_open, open_.allows_weak_tokens) == (True, True)
