"""The hub's settings, with the unit of each in its name and the reason of each default."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network

from .workers.limits import Limits

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class HubSettings:
    """Defaults suit one machine; `app/config.py` fills in what a user has set."""

    base_urls: tuple[str, ...] = ()
    """Where the hub is reachable, base path included: `http://hub.example/base`. A callback
    there is the hub itself and needs a token."""

    key_file: str = ""
    """Of the key of secrets at rest, `hub.key` in the data directory if empty: elsewhere, a copy of
    the data alone opens none."""
    allow_loopback: bool = False
    """Set by `--dev`: callbacks on loopback addresses, at any port."""
    egress_proxy: str = ""
    """`http://HOST:PORT` of a proxy through which everything goes out; empty for none."""
    callback_ports: frozenset[int] | None = frozenset({80, 443})
    """None for any: whoever may subscribe can then have every port asked and posted to."""
    allowed_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Networks that callbacks may be in although the guard's own list refuses them; loopback
    is not among them, whatever they hold."""
    denied_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Networks that callbacks can't be in, whatever else allows them."""
    nat64_prefixes: tuple[IPv6Network, ...] = ()
    """Through which addresses of IPv4 are reached from here: these are what is looked at."""
    own_ports: frozenset[int] = frozenset()
    """Where this process listens for HTTP, at whichever of the machine's addresses."""

    default_lease_s: int = 30 * DAY_S
    max_lease_s: int = 365 * DAY_S
    hub_default_lease_s: int = 10 * DAY_S
    """At `/hub`; WebSub 5.3.1 calls ten days a good default."""
    hub_max_lease_s: int = 90 * DAY_S
    """A subscriber that is gone for good is forgotten in a season."""
    hub_user: str = ""
    """Who asks for this hub's own topics at `/hub` without credentials; empty for nobody."""
    hub_foreign_topics: bool = False
    """Whether topics of others can be subscribed: their content comes from anywhere."""
    hub_anonymous: bool = False
    """Whether they can be without credentials."""
    hub_anonymous_max_lease_s: int = 10 * DAY_S
    """Of who came without credentials: nobody else would end what was forgotten."""
    max_per_anonymous_client: int = 1_000
    """Subscriptions without credentials for one client, one callback domain or one topic domain;
    ten times as many in all."""
    anonymous_dead_after_s: float = DAY_S
    """How long a callback of theirs may fail, without a success between, until it is paused."""
    anonymous_bytes_per_hour: int = 64 * 1024 * 1024
    """Of content that is published for them alone, or copied for another attempt, on the same
    terms; four times as much in all."""
    hub_check_topics: bool = False
    """Whether subscriptions to topics of others are refused that can't be fetched, or that
    name another URL as their own (WebSub 5.2)."""
    hub_moved_to: str = ""
    """Where `/hub` sends everybody with a 308 (WebSub 5.1); empty while this is the hub."""
    hub_publisher_secret: str = ""
    """Of publishers that send content with their pings; empty for none."""
    secret_overlap_s: int = DAY_S
    """How long the secret before the last one signs too (Standard Webhooks, rotation)."""
    max_pending_verifications: int = 10_000
    """Accepted and not yet asked, some kB each."""
    max_pending_anonymous: int = 8_000
    """Of them for requests without credentials."""
    max_pending_per_domain: int = 1_000
    """Of them for callbacks below one registered domain: enough for a reader's whole list of
    feeds."""
    max_pending_per_client: int = 1_000
    """Of them for one client without credentials."""
    token_lifetime_s: int = 300

    dns_servers: tuple[str, ...] = ()
    """`ADDRESS:PORT` of those that are asked for names; empty for the system's."""
    resolve_timeout_s: float = 5.0
    connect_timeout_s: float = 5.0
    total_timeout_s: float = 15.0
    verify_timeout_s: float = 10.0
    verify_concurrency: int = 50
    fetch_timeout_s: float = 20.0
    """Of a topic of others, redirects and body included, as feed readers have it."""
    fetch_max_bytes: int = 10 * 1024 * 1024
    """Of a topic's content, as it comes and decoded."""
    fetch_concurrency: int = 20
    fetch_per_domain: int = 2
    """Of these for one registered domain, which may serve thousands of topics."""
    fetch_gap_s: float = 3.0
    """At least so long between two fetches of a topic: pings meanwhile are one."""
    workers: Limits = field(default_factory=Limits)
    """Of the processes that read documents fetched from others."""
    max_response_bytes: int = 64 * 1024

    in_flight_per_subscription: int = 1
    """More than one gives up the order of deliveries."""
    quick_slots: int = 1_000
    """Deliveries under way to targets that answered in time last time."""
    new_slots: int = 500
    """To targets of which nothing is known yet, or that failed last time."""
    slow_slots: int = 250
    """Deliveries to targets that were slow last time wait for these and for no others."""
    max_in_flight: int = 2_000
    """Sockets in use at once, slow ones included."""
    max_rate_per_origin: int = 0
    """Deliveries a second to one scheme, host and port, whatever number of subscriptions lead
    there; 0 for no limit."""
    max_rate: int = 0
    """Deliveries a second in all, 0 for no limit: the slots bound what is under way."""
    part_after_s: float = 0.5
    """How long a delivery may hold a slot that is not one for slow targets."""
    slow_after_s: float = 2.0
    """How long one takes whose target counts as slow. Well above `part_after_s`, so that a
    stall of this machine does not send its quick targets to wait among the slow ones."""

    max_attempts: int = 12
    attempt_retention_s: int = 7 * DAY_S
    """How long attempts are told of: the four days of retries, and a weekend to notice."""
    max_attempt_rows: int = 1_000_000
    """About 300 MB, and what the answers' bodies take; an older attempt goes before the retention
    is over."""
    attempt_body_bytes: int = 2_048
    """Of each answer's body, kept with the attempt."""
    signature_method: str = "sha256"
    max_hops: int = 20
    """Hubs, and relays from queues, that a message may pass before it counts as looping: more
    than any chain that is meant, and a loop of two ends within a second."""
    upstream_answer_s: float = 300.0
    """How long another hub may take to ask back; those that queue the question need minutes."""
    upstream_again_s: float = 5.0
    """Wait before the second try at another hub; it doubles up to an hour."""
    prepare_after_s: float = 1.0
    """Between the start and the imports, some 0.7 s of one processor, that subscribing needs."""
    source_poll_s: float = 2.0
    """How often a subscription whose source is gone looks whether it is back."""
    drain_s: float = 10.0
