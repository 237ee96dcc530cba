"""The hub's settings, with the unit of each in its name."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from typing import Literal

from .tunnels.settings import TunnelSettings
from .workers.limits import WorkerLimits

DAY_S = 86_400
KeptRequests = Literal["none", "failed", "all"]
"""Of which attempts the requests are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSettings:
    """The settings of the hub, made by `app/configuration/parts.py` from those of the server. Each
    field without a default is a setting of the same name there."""

    base_urls: tuple[str, ...] = ()
    """The URLs at which the hub is reachable, base path included: `http://hub.example/base`. A
    callback there is the hub itself and needs a token."""

    key_file: str = ""
    """The file with the key of secrets at rest, `hub.key` in the data directory if empty. If it is
    elsewhere, a copy of the data directory does not disclose secrets."""
    allow_loopback: bool = False
    """Allows callbacks on loopback addresses, at any port; set by `--dev`."""
    egress_proxy: str
    """`http://HOST:PORT` of a proxy for all outgoing requests; empty for none."""
    callback_ports: frozenset[int] | None = frozenset({80, 443})
    """None for any: subscribers can then have requests sent to any port."""
    allowed_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Networks that callbacks may be in although the guard's own list refuses them; never loopback
    addresses."""
    denied_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Networks that callbacks can't be in, also if another setting allows them."""
    nat64_prefixes: tuple[IPv6Network, ...] = ()
    """Prefixes of IPv6 addresses that stand for IPv4 addresses, which are checked instead."""
    own_ports: frozenset[int] = frozenset()
    """The HTTP ports of this process, at any address of the machine."""

    default_lease_s: int
    max_lease_s: int
    hub_default_lease_s: int
    """At `/hub`; WebSub 5.3.1 calls ten days a good default."""
    hub_max_lease_s: int
    """Subscriptions of subscribers that no longer exist end after it."""
    hub_user: str
    """The user of requests without credentials for this hub's own topics at `/hub`; empty for
    none."""
    hub_foreign_topics: bool
    """Whether topics of other sites can be subscribed."""
    hub_anonymous: bool
    """Whether they can be subscribed without credentials."""
    hub_anonymous_max_lease_s: int = 10 * DAY_S
    """The limit for anonymous clients, whose subscriptions have no owner who could end them."""
    max_per_anonymous_client: int = 1_000
    """Subscriptions without credentials for one client, one callback domain or one topic domain;
    ten times as many in all."""
    anonymous_dead_after_s: float = DAY_S
    """How long a callback of an anonymous client may fail until its subscription is paused."""
    anonymous_bytes_per_hour: int = 64 * 1024 * 1024
    """The limit of content that is published or copied for anonymous clients alone, for each of
    them; four times as much in all."""
    hub_check_topics: bool
    """Whether subscriptions are refused to topics of other sites that can't be fetched, or that
    name another URL as their own (WebSub 5.2)."""
    hub_moved_to: str
    """The URL to which `/hub` redirects with 308 (WebSub 5.1); empty for no redirect."""
    hub_publisher_secret: str
    """The secret of publishers that send content with their pings; empty for none."""
    secret_overlap_s: int
    """How long the previous secret signs too (Standard Webhooks, rotation)."""
    max_transaction_bytes: int
    """Memory of the rows that one commit publishes."""
    max_staged_bytes: int
    """Rows that are stored for commits to come, on disk."""
    staged_lifetime_s: int
    """How long they are stored; a commit comes seconds after its last rows."""
    archives: str
    """The directory below which archives of streams are read; empty to read none."""
    max_pending_verifications: int = 10_000
    """Accepted requests that are not verified yet, some kB each."""
    max_pending_anonymous: int = 8_000
    """The share of requests without credentials."""
    max_pending_per_domain: int = 1_000
    """The share of callbacks below one registered domain: enough for a reader's whole list of
    feeds."""
    max_pending_per_client: int = 1_000
    """The share of one client without credentials."""
    token_lifetime_s: int = 300

    dns_servers: tuple[str, ...] = ()
    """`ADDRESS:PORT` of name servers; empty for the system's."""
    resolve_timeout_s: float = 5.0
    connect_timeout_s: float
    total_timeout_s: float = 15.0
    verify_timeout_s: float
    verify_concurrency: int = 50
    fetch_timeout_s: float = 20.0
    """The time for a topic of another site, redirects and body included."""
    fetch_max_bytes: int = 10 * 1024 * 1024
    """The limit of a topic's content, encoded and decoded."""
    fetch_concurrency: int = 20
    fetch_per_domain: int = 2
    """The share of one registered domain."""
    relay_hosts: tuple[str, ...] = ()
    """`HOST`, `HOST:PORT` or `*.DOMAIN` to which users may have plain HTTP requests sent; empty for
    none."""
    fetch_gap_s: float
    """Between two fetches of a topic at least: pings meanwhile count as one."""
    tunnels: TunnelSettings = field(default_factory=TunnelSettings)
    feed_min_interval_s: int
    """Between two polls of a feed at least, unless it is registered with another time."""
    feed_items_kept: int
    """Items of a feed or output that keep their content, a few kB each: what documents and their
    pages show."""
    max_feeds_per_user: int
    """A feed takes about 3 kB of memory, and some 100 kB of the database."""
    workers: WorkerLimits = field(default_factory=WorkerLimits)
    """The limits of the processes that read documents fetched from others."""
    max_response_bytes: int = 64 * 1024

    in_flight_per_subscription: int
    """More than one are not delivered in order."""
    quick_slots: int = 1_000
    """Deliveries in flight to targets that answered in time last time."""
    new_slots: int = 500
    """Deliveries to targets without an answer so far, or that failed last time."""
    slow_slots: int = 250
    """Deliveries to targets that were slow last time."""
    max_in_flight: int
    """Sockets in use at once, slow ones included."""
    max_rate_per_origin: int = 0
    """Deliveries a second to one scheme, host and port, for all its subscriptions; 0 for no
    limit."""
    max_rate: int
    """Deliveries a second in all; 0 for no limit."""
    part_after_s: float = 0.5
    """How long a delivery occupies a slot that is not for slow targets."""
    slow_after_s: float = 2.0
    """A target counts as slow when a delivery takes so long. Well above `part_after_s`, so that a
    stall of this machine does not make quick targets count as slow."""

    max_attempts: int
    attempt_retention_s: int
    """How long attempts are kept: the four days of retries, and a weekend."""
    max_attempt_rows: int
    """About 300 MB without the bodies of answers; above it the oldest attempts are deleted."""
    audit_retention_s: int
    max_audit_rows: int
    """About 1 kB each; above it the oldest entries are deleted."""
    publish_attempts: bool
    """Whether attempts are also published to an exchange."""
    attempt_body_bytes: int
    """The limit of each answer's body, kept with the attempt."""
    attempt_requests: KeptRequests
    """Not of all: encrypting one takes 9 us with a body of 100 bytes and 50 with one of 8 KiB, a
    tenth to a half of a delivery, and a row is 2 to 16 kB instead of 0.3."""
    attempt_request_bytes: int
    """The limit of each kept request's body."""
    signature_method: str
    max_hops: int
    """Hubs and relays that a message may pass before it counts as looping."""
    upstream_answer_s: float = 300.0
    """How long another hub may take to verify a subscription."""
    upstream_again_s: float = 5.0
    """The wait before the second try at another hub; it doubles up to an hour."""
    prepare_after_s: float = 1.0
    """Between the start and the imports for subscribing, which take some 0.4 s of CPU."""
    source_poll_s: float = 2.0
    """How often missing sources are looked up."""
    drain_s: float
