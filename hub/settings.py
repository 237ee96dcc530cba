"""The hub's settings, with the unit of each in its name and the reason of each default."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class HubSettings:
    """Defaults suit one machine; `app/config.py` fills in what a user has set."""

    base_urls: tuple[str, ...] = ()
    """Where the hub is reachable, base path included: `http://hub.example/base`. A callback
    there is the hub itself and needs a token."""

    allow_loopback: bool = False
    """Set by `--dev`: callbacks on loopback addresses, at any port."""
    callback_ports: frozenset[int] = frozenset({80, 443})
    allowed_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Networks that callbacks may be in although the guard's own list refuses them."""

    default_lease_s: int = 30 * DAY_S
    max_lease_s: int = 365 * DAY_S
    token_lifetime_s: int = 300

    resolve_timeout_s: float = 5.0
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 15.0
    total_timeout_s: float = 15.0
    verify_timeout_s: float = 10.0
    verify_concurrency: int = 50
    max_response_bytes: int = 64 * 1024

    in_flight_per_subscription: int = 1
    """More than one gives up the order of deliveries."""
    fast_slots: int = 1_000
    slow_slots: int = 250
    """Deliveries to targets that were slow last time wait for these and for no others."""
    max_in_flight: int = 2_000
    """Sockets in use at once, slow ones included."""
    part_after_s: float = 0.5
    """How long a delivery may hold a fast slot."""
    slow_after_s: float = 2.0
    """How long one takes whose target counts as slow. Well above `part_after_s`, so that a
    stall of this machine does not send its fast targets to wait among the slow ones."""

    max_attempts: int = 12
    signature_method: str = "sha256"
    max_hops: int = 20
    """Queue-to-exchange and queue-to-queue forwards before a message counts as looping."""
    source_poll_s: float = 2.0
    """How often a subscription whose source is gone looks whether it is back."""
    drain_s: float = 10.0
