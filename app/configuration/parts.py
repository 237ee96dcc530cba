"""Derives the settings of the broker and of the hub from those of the program.

A setting that has the name of a field there is passed on as it is, unless it is listed here.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any
from urllib.parse import urlsplit

from ...core.context import BrokerLimits
from ...hub.guard.own import DEFAULT_PORTS
from ...hub.settings import HubSettings
from ...hub.tunnels.settings import TunnelSettings
from .settings import Settings

HUB_DRAIN_SHARE = 0.4
"""The hub drains callbacks, then relays, this part of `drain_s` each; the rest is for closing."""


def broker_limits(settings: Settings) -> BrokerLimits:
    """Returns what the broker allows its clients."""
    return BrokerLimits(
        **_same_names(settings, BrokerLimits) | {"consumer_timeout_ms": settings.consumer_timeout}
    )


def hub_settings(
    settings: Settings,
    base_urls: tuple[str, ...],
    own_ports: frozenset[int],
    http_port: int = 80,
) -> HubSettings:
    """Returns the hub's settings for a server that listens at these URLs and ports."""
    derived = {
        "base_urls": base_urls,
        "own_ports": own_ports,
        "key_file": settings.hub_key_file,
        "allow_loopback": settings.dev,
        "callback_ports": settings.allowed_callback_ports(),
        "allowed_networks": settings.allowed_callback_networks(),
        "denied_networks": settings.denied_callback_networks(),
        "nat64_prefixes": settings.nat64_prefix_list(),
        "dns_servers": settings.name_servers(),
        "total_timeout_s": settings.delivery_timeout_s,
        "hub_foreign_topics": settings.hub_foreign_topics or settings.dev,
        "hub_anonymous": settings.hub_anonymous or settings.dev,
        "max_per_anonymous_client": settings.hub_anonymous_subscriptions,
        "anonymous_bytes_per_hour": settings.hub_anonymous_content,
        "max_rate_per_origin": settings.rate_per_origin(),
        "relay_hosts": settings.relayed_hosts(),
        "tunnels": tunnel_settings(settings, http_port),
        "drain_s": settings.drain_s * HUB_DRAIN_SHARE,
    }
    return HubSettings(**_same_names(settings, HubSettings) | derived)


def tunnel_settings(settings: Settings, http_port: int) -> TunnelSettings:
    """Returns the settings of tunnels for a server that listens at this port."""
    return TunnelSettings(
        url=_tunnel_url(settings, http_port),
        is_on=settings.tunnels,
        is_open=settings.dev,
        allows_weak_tokens=settings.dev,
        max_body_bytes=settings.tunnel_body_bytes,
        max_labels_per_owner=settings.tunnel_labels_per_user,
        poll_hold_s=settings.tunnel_poll_hold_s,
        reply_wait_s=settings.tunnel_reply_wait_s,
    )


def _tunnel_url(settings: Settings, http_port: int) -> str:
    """Returns scheme, domain and port of public URLs: those of `public_url`, or of this server.

    Browsers resolve names below `localhost` to their own machine, where no proxy listens.
    """
    domain = settings.tunnel_domain
    public = urlsplit(settings.public_url)
    if public.scheme and not domain.partition(":")[0].endswith(".localhost"):
        port, scheme = public.port, public.scheme
    else:
        port, scheme = http_port, "http"
    is_usual = port in (None, DEFAULT_PORTS[scheme]) or ":" in domain
    return f"{scheme}://{domain}" + ("" if is_usual else f":{port}")


def _same_names(settings: Settings, kind: type[BrokerLimits] | type[HubSettings]) -> dict[str, Any]:
    """Returns the settings whose names are fields of the class."""
    names = {field.name for field in fields(kind)}
    return {name: getattr(settings, name) for name in names & {*Settings.__struct_fields__}}
