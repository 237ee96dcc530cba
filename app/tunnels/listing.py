"""The labels that a user sees, as JSON, never with their tokens."""

from __future__ import annotations

from typing import Any

from ...core.auth import ADMINISTRATOR, User
from ...hub.tunnels.tunnel import Tunnel
from ...hub.tunnels.tunnels import Tunnels
from ..responses.times import rfc3339


def listing(tunnels: Tunnels, user: User) -> dict[str, Any]:
    """Returns the labels of the user, all for administrators, by label."""
    return {
        "tunnels": [
            _described(one, tunnels) for one in _by_label(tunnels.labels.all()) if sees(user, one)
        ],
        "blocked": [
            _blocked(one) for one in _by_label(tunnels.labels.blocked()) if sees(user, one)
        ],
    }


def sees(user: User, tunnel: Tunnel) -> bool:
    return ADMINISTRATOR in user.tags or tunnel.registration.owner == user.name


def _by_label(found: list[Tunnel]) -> list[Tunnel]:
    return sorted(found, key=lambda one: one.registration.label)


def _described(tunnel: Tunnel, tunnels: Tunnels) -> dict[str, Any]:
    found = tunnel.registration
    left_s = 0.0 if tunnel.is_lapsed else max(0.0, found.lease_s - tunnel.idle_s())
    return {
        "label": found.label,
        "url": tunnels.addresses.public_url(found.label),
        "owner": found.owner,
        "waiting_polls": tunnel.poll_count,
        "queued": tunnel.queued_count,
        "in_flight": tunnel.in_flight_count,
        "lease_s": found.lease_s,
        "expires_in_s": round(left_s, 1),
        "requests": tunnel.request_count,
        "since": rfc3339(found.made_at),
    }


def _blocked(tunnel: Tunnel) -> dict[str, Any]:
    found = tunnel.registration
    return {
        "label": found.label,
        "owner": found.owner,
        "until": rfc3339(found.blocked_until),
    }
