"""The settings, each declared once: type and bounds, default, help text and heading.

The flag, the variable `WARREN_NAME` and the key of the configuration file follow from the name, and
the help text and the errors from the declaration. `loading.py` loads them. The module is long since
there are 70 of them, and a setting is to be found in one place.
"""

from __future__ import annotations

from ipaddress import IPv6Network
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from ...core.context import DEFAULT_LIMITS
from ...core.resources.amount import Amount, read_amount
from ...hub.engine.amqp.address import EngineAddress, read_address
from ...hub.storage.database_url import read_url
from . import parsers
from .types import (
    SECRET,
    SIZE,
    BasePath,
    BaseUrl,
    HeaderName,
    Heading,
    LogFormat,
    MetricsReaders,
    NotNegative,
    Port,
    Positive,
    PositiveSize,
    ProxyUrl,
    Seconds,
    TunnelDomain,
    Url,
)

AUTOMATIC: Final = "auto"
NONE: Final = "none"
EMBEDDED: Final = "embedded"
AMQPS_PORT: Final = 5671
CLOUD_METADATA: Final = (
    "168.63.129.16,169.254.169.254,169.254.170.2,100.100.100.200,192.0.0.192,fd00:ec2::254"
)
"""The metadata services of cloud providers, which hand out credentials."""
RATE_PER_ORIGIN: Final = 1_000


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The values; each annotation ends with the help text of its setting."""

    data: Annotated[
        str, Heading("Data"), "Data directory; created if missing, used by one process at a time."
    ] = "./warren-data"
    database: Annotated[
        str, SECRET, "URL of a PostgreSQL database for subscriptions, instead of SQLite in `data`."
    ] = ""
    engine: Annotated[
        str,
        SECRET,
        "Where messages are: `embedded`, in `data`, or a RabbitMQ cluster, by its URL "
        "amqp://USER:PASSWORD@HOST,HOST/ (docs/scaling.md).",
    ] = EMBEDDED
    engine_management: Annotated[
        str,
        "URLs of that cluster's management API; default http://HOST:15672 for each host.",
    ] = ""
    hub_key_file: Annotated[
        str, "File with the key that encrypts stored secrets; default `hub.key` in `data`."
    ] = ""

    hub_address: Annotated[
        str,
        "HOST:PORT where other hubs find this one's HTTP port; default `host`, or the machine's "
        "name where that is all addresses (docs/scaling.md).",
    ] = ""

    host: Annotated[
        str,
        Meta(min_length=1),
        Heading("Addresses and ports"),
        "Address or name to listen on; `localhost` is 127.0.0.1 and ::1.",
    ] = "localhost"
    amqp_port: Annotated[
        Port | Literal["none"],
        "AMQP port; 0 chooses a free one, `none` allows only AMQPS and WebSocket.",
    ] = 5672
    http_port: Annotated[Port, "HTTP port, also for AMQP over WebSocket; 0 chooses a free one."] = (
        15672
    )
    amqps_port: Annotated[
        Port | Literal["auto", "none"],
        "AMQPS port; `auto` is 5671 with a certificate and none without; or `none`.",
    ] = AUTOMATIC
    https_port: Annotated[
        Port | Literal["none"], "HTTPS port, with the same certificates; or `none`."
    ] = NONE
    prometheus_port: Annotated[
        Port | Literal["none"],
        "Another HTTP port, for /metrics alone, such as RabbitMQ's 15692; or `none`.",
    ] = NONE

    tls_cert: Annotated[
        str,
        Heading("TLS"),
        "PEM file with certificate and intermediate certificates. SIGHUP reloads it.",
    ] = ""
    tls_key: Annotated[str, "PEM file with the private key, not encrypted."] = ""
    tls_hosts: Annotated[
        str | dict[str, parsers.HostFiles],
        "More certificates by host name: HOST=CERT:KEY,... or a table in the file.",
    ] = ""
    tls_ca: Annotated[str, "PEM file with the CA of the client certificates (AMQPS)."] = ""
    tls_verify_clients: Annotated[
        Literal["none", "optional", "required"],
        "With tls_ca, client certificates are none, optional or required.",
    ] = "optional"
    tls_login_from: Annotated[
        Literal["common_name", "distinguished_name"],
        "User name in a client certificate: common_name or distinguished_name.",
    ] = "common_name"

    proxy_protocol_from: Annotated[
        str,
        Heading("Proxies and web pages"),
        "Networks of AMQP proxies; they must send a PROXY header.",
    ] = ""
    http_proxies: Annotated[
        str, "Networks of HTTP proxies whose Forwarded or X-Forwarded-For is trusted."
    ] = ""
    websocket_origins: Annotated[
        str, "Origins of other web pages that may connect; `*` for all."
    ] = ""
    cors_origins: Annotated[
        str,
        "Origins of pages that may use bearer tokens; `*` for all, `null` for files.",
    ] = ""

    dev: Annotated[
        bool,
        Heading("Users and development"),
        "Allow `guest` over HTTP, callbacks on loopback addresses, and unlimited failed logins "
        "from there.",
    ] = False
    default_user: Annotated[
        str,
        Meta(min_length=1, max_length=255),
        "First administrator of a new data directory; `guest` is created and may log in on "
        "loopback only.",
    ] = "guest"
    default_pass: Annotated[str, Meta(min_length=1), SECRET, "Password of default_user."] = "guest"
    allow_guest: Annotated[
        bool, "Accept `guest` over HTTP without `dev`, and its default password beyond loopback."
    ] = False
    allow_weak_password: Annotated[
        bool, "Accept an easily guessed default_pass beyond loopback."
    ] = False
    allow_plaintext: Annotated[bool, "Accept passwords without TLS from other machines."] = False

    allow_networks: Annotated[
        str,
        Heading("Callbacks"),
        "Private networks allowed for callbacks and topics: 10.1.0.0/16,...",
    ] = ""
    deny_networks: Annotated[
        str, "Networks denied for callbacks and topics; overrides allow_networks."
    ] = CLOUD_METADATA
    nat64_prefixes: Annotated[str, "NAT64 prefixes of this site: 2001:db8:64::/96,..."] = ""
    callback_ports: Annotated[str | int, "Ports allowed for callbacks and topics, or `any`."] = (
        "80,443"
    )
    egress_proxy: Annotated[
        ProxyUrl, "HTTP proxy (CONNECT) for all outgoing requests: http://proxy.internal:4750."
    ] = ""
    dns_servers: Annotated[
        str, "Name servers instead of the system's: 192.0.2.53, [2001:db8::53]:5353."
    ] = ""

    base_path: Annotated[
        BasePath,
        Heading("HTTP"),
        "Serve the HTTP paths also below this path, for example `/warren`.",
    ] = ""
    public_url: Annotated[
        BaseUrl, "External URL of the HTTP port, with base path; default: host and port."
    ] = ""
    set_correlation_id: Annotated[
        HeaderName, "Request header that sets correlation_id; echoed in the 202."
    ] = ""
    set_message_id: Annotated[
        HeaderName, "Response header of the 202 for a generated message_id."
    ] = ""

    segment_bytes: Annotated[
        int,
        Meta(ge=65_536, le=2**31),
        SIZE,
        Heading("Messages and AMQP"),
        "Maximum size of a log file, such as 16MiB; use a smaller one on a small disk.",
    ] = 64 * 1024 * 1024
    max_message_bytes: Annotated[
        int,
        Meta(ge=1, le=512 * 1024 * 1024),
        SIZE,
        "Maximum size of a message body, over AMQP and HTTP, such as 128MiB.",
    ] = DEFAULT_LIMITS.max_message_bytes
    heartbeat_s: Annotated[
        int, Meta(ge=0, le=65535), "Heartbeat offered to AMQP clients; 0 disables it."
    ] = DEFAULT_LIMITS.heartbeat_s
    frame_max: Annotated[
        int, Meta(ge=4096, le=2**31 - 1), SIZE, "Maximum AMQP frame size offered, in bytes."
    ] = DEFAULT_LIMITS.frame_max
    channel_max: Annotated[
        int, Meta(ge=1, le=65535), "Maximum number of channels per AMQP connection."
    ] = DEFAULT_LIMITS.channel_max
    consumer_timeout: Annotated[
        int,
        Meta(ge=0, le=2**32 - 1),
        "Milliseconds until a delivery must be acked; 0 disables the timeout.",
    ] = DEFAULT_LIMITS.consumer_timeout_ms
    strict_arguments: Annotated[bool, "Refuse unknown x-arguments instead of storing them."] = False
    login_throttle: Annotated[
        bool, "Refuse or delay logins after five wrong passwords per minute."
    ] = True
    session_idle_s: Annotated[Positive, "How long a browser's login lasts without a request."] = (
        1_800
    )
    session_max_age_s: Annotated[Positive, "How long a browser's login lasts at most."] = 43_200

    memory_limit: Annotated[
        str | float,
        Heading("Memory and disk"),
        "Memory for messages and buffers; above it publishers wait (see Limits).",
    ] = "0.6"
    disk_free_limit: Annotated[
        str | float, "Minimum free disk space for data; below it publishers wait."
    ] = AUTOMATIC

    default_lease_s: Annotated[
        Positive, Heading("Subscriptions"), "Default lease of a subscription."
    ] = 30 * 86_400
    max_lease_s: Annotated[Positive, "Maximum lease of a subscription."] = 365 * 86_400
    secret_overlap_s: Annotated[
        NotNegative, "How long a replaced secret still signs deliveries."
    ] = 86_400
    hub_default_lease_s: Annotated[Positive, "Default lease of a subscription at /hub."] = (
        10 * 86_400
    )
    hub_max_lease_s: Annotated[Positive, "Maximum lease of a subscription at /hub."] = 90 * 86_400
    hub_user: Annotated[
        str, Meta(max_length=255), "User for requests without credentials at /hub; empty for none."
    ] = ""
    hub_foreign_topics: Annotated[
        bool, "Accept subscriptions at /hub to topics of other servers."
    ] = False
    hub_anonymous: Annotated[bool, "Accept these without credentials too; `dev` enables both."] = (
        False
    )
    hub_anonymous_subscriptions: Annotated[
        Positive, "Maximum anonymous subscriptions per client and domain."
    ] = 1_000
    hub_anonymous_content: Annotated[
        PositiveSize, "Maximum content per hour for them, in bytes, per client and domain."
    ] = 64 * 1024 * 1024
    hub_check_topics: Annotated[
        bool, "Deny subscriptions at /hub to URLs that can't be fetched."
    ] = False
    hub_moved_to: Annotated[Url, "URL of another hub, to which /hub redirects (308)."] = ""
    hub_publisher_secret: Annotated[
        str, SECRET, "Secret of publishers that send content with their pings to /hub."
    ] = ""

    verify_timeout_s: Annotated[
        Seconds, Heading("Deliveries"), "Timeout for a callback to confirm a subscription."
    ] = 10.0
    connect_timeout_s: Annotated[Seconds, "Timeout for connecting to a callback."] = 5.0
    delivery_timeout_s: Annotated[Seconds, "Timeout for a callback to answer a delivery."] = 15.0
    max_attempts: Annotated[
        int, Meta(ge=1, le=1000), "Delivery attempts per message before it is dead-lettered."
    ] = 12
    attempt_retention_s: Annotated[
        Positive, "How long delivery attempts are kept in the database."
    ] = 7 * 86_400
    max_attempt_rows: Annotated[
        Positive, "Maximum number of delivery attempts kept; the oldest are deleted first."
    ] = 1_000_000
    audit_retention_s: Annotated[Positive, "How long the audit log keeps changes and logins."] = (
        90 * 86_400
    )
    max_audit_rows: Annotated[
        Positive, "Maximum number of entries in the audit log; the oldest are deleted first."
    ] = 100_000
    attempt_body_bytes: Annotated[
        int,
        Meta(ge=0, le=65_536),
        SIZE,
        "Bytes of each callback's response body kept with its attempt.",
    ] = 2_048
    attempt_requests: Annotated[
        Literal["none", "failed", "all"],
        "Which attempts keep their request, so that it can be shown and sent again: `none`, "
        "`failed` or `all`.",
    ] = "failed"
    attempt_request_bytes: Annotated[
        int,
        Meta(ge=0, le=1_048_576),
        SIZE,
        "Bytes of each kept request's body; larger ones are not sent again.",
    ] = 8_192
    publish_attempts: Annotated[
        bool, "Also publish delivery attempts to the exchange `hub.attempts`."
    ] = False
    max_staged_bytes: Annotated[
        PositiveSize,
        "Disk space of rows that are staged for transactions (`/transactions`), in bytes.",
    ] = 4 * 1024 * 1024 * 1024
    staged_lifetime_s: Annotated[
        Positive, "How long staged rows are kept that no transaction has published."
    ] = 3_600
    max_transaction_bytes: Annotated[
        PositiveSize, "Memory that the rows of one transaction may take; more are refused."
    ] = 512 * 1024 * 1024
    archives: Annotated[
        str,
        "Directory of archives, from which dropped messages of streams are read; empty for none.",
    ] = ""
    in_flight_per_subscription: Annotated[
        int, Meta(ge=1, le=1000), "Concurrent deliveries per subscription; 1 preserves the order."
    ] = 1
    max_in_flight: Annotated[int, Meta(ge=1, le=100_000), "Concurrent deliveries in total."] = 2_000
    max_rate: Annotated[NotNegative, "Deliveries per second in total; 0 for no limit."] = 0
    max_rate_per_origin: Annotated[
        NotNegative | Literal["auto"],
        "Deliveries per second to one host and port; 0: no limit, `auto`: 1,000.",
    ] = AUTOMATIC
    signature_method: Annotated[
        Literal["sha1", "sha256", "sha384", "sha512"],
        "Method of X-Hub-Signature, unless hub.signature_method is given.",
    ] = "sha256"

    fetch_gap_s: Annotated[
        Seconds,
        Heading("External topics and loops"),
        "Minimum time between two fetches of a topic; pings meanwhile are merged.",
    ] = 3.0
    feed_min_interval_s: Annotated[
        int, Meta(ge=1), "Minimum time between two polls of a feed, unless registered with another."
    ] = 300
    feed_items_kept: Annotated[
        int, Meta(ge=1, le=1000), "Items of each feed and output whose content is kept."
    ] = 100
    max_feeds_per_user: Annotated[Positive, "Maximum number of feeds that a user registers."] = (
        20_000
    )
    max_hops: Annotated[
        int, Meta(ge=1, le=1000), "Maximum number of hubs a message may pass; more is a loop (508)."
    ] = 20

    tunnels: Annotated[
        bool, Heading("Tunnels"), "Give programs behind a firewall public URLs, at /reversehttp."
    ] = True
    tunnel_domain: Annotated[
        TunnelDomain,
        "Domain below which each tunnel has a host; on another site than this server's own pages.",
    ] = "tun.localhost"
    tunnel_body_bytes: Annotated[
        PositiveSize, "Maximum body of a tunnelled request and of its reply, such as 4MiB."
    ] = 1024 * 1024
    tunnel_labels_per_user: Annotated[Positive, "Maximum labels of a user."] = 1_000
    relay_hosts: Annotated[
        str, "Hosts that users may send plain HTTP requests to by /reversehttp/_relay; empty: none."
    ] = ""
    tunnel_poll_hold_s: Annotated[
        Seconds, "How long a poll of an application waits for a request."
    ] = 25.0
    tunnel_reply_wait_s: Annotated[
        Seconds, "How long a request waits for the reply of an application."
    ] = 60.0

    drain_s: Annotated[
        Seconds,
        Heading("Shutdown and log"),
        "How long a stop waits for requests and deliveries in progress.",
    ] = 10.0
    metrics_readers: Annotated[
        MetricsReaders,
        "Who may read /metrics: `local` (programs on this machine, and users with the tag "
        "monitoring), `users` (those alone) or `anyone`.",
    ] = "local"
    access_log: Annotated[bool, "Log each HTTP request, without query and secrets."] = False
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], "debug, info, warning or error."
    ] = "warning"
    log_format: Annotated[
        LogFormat, "Log lines for people (`text`) or as JSON objects (`json`)."
    ] = "text"

    def __post_init__(self) -> None:
        # Parsed here so that errors name the source of the value, as for all other settings.
        self.memory_amount()
        self.disk_free_amount()
        self.tls_host_files()
        self.amqp_proxy_networks()
        self.http_proxy_networks()
        self.allowed_callback_networks()
        self.denied_callback_networks()
        self.nat64_prefix_list()
        self.allowed_callback_ports()
        self.name_servers()
        self.relayed_hosts()
        parsers.origins(self.websocket_origins)
        self.page_origins()
        self.engine_address()
        if self.hub_address:
            parsers.host_and_port(self.hub_address)
        if self.database:
            read_url(self.database)

    def engine_address(self) -> EngineAddress | None:
        """Returns where the engine's cluster is; None for the embedded engine."""
        if self.engine == EMBEDDED:
            return None
        return read_address(self.engine, self.engine_management)

    def page_origins(self) -> str:
        """Returns `cors_origins`, in development with the pages that are opened from files."""
        found = parsers.origins(self.cors_origins, takes_null=True)
        return ",".join([*found, "null"] if self.dev else found)

    def memory_amount(self) -> Amount:
        """Returns the memory limit."""
        return read_amount(str(self.memory_limit))

    def disk_free_amount(self) -> Amount | None:
        """Returns the limit of free disk space; None for `auto`."""
        text = str(self.disk_free_limit)
        return None if text == AUTOMATIC else read_amount(text)

    def tls_host_files(self) -> dict[str, parsers.HostFiles]:
        """Returns certificate and key by host name."""
        return parsers.hosts(self.tls_hosts)

    def certificate_paths(self) -> list[Path]:
        """Returns the files with the certificates that TLS clients are shown."""
        files = [self.tls_cert, *(one.cert for one in self.tls_host_files().values())]
        return [Path(file) for file in files if file]

    def amqp_proxy_networks(self) -> list[parsers.Network]:
        """Returns the networks of proxies that send a PROXY header."""
        return parsers.networks(self.proxy_protocol_from)

    def http_proxy_networks(self) -> list[parsers.Network]:
        """Returns the networks of trusted HTTP proxies."""
        return parsers.networks(self.http_proxies)

    def allowed_callback_networks(self) -> tuple[parsers.Network, ...]:
        """Returns the private networks that callbacks and topics may be in."""
        return tuple(parsers.callback_networks(self.allow_networks))

    def denied_callback_networks(self) -> tuple[parsers.Network, ...]:
        """Returns the networks that callbacks and topics must not be in."""
        return tuple(parsers.networks(self.deny_networks))

    def nat64_prefix_list(self) -> tuple[IPv6Network, ...]:
        """Returns the NAT64 prefixes of this site."""
        return tuple(parsers.nat64_prefixes(self.nat64_prefixes))

    def allowed_callback_ports(self) -> frozenset[int] | None:
        """Returns the ports of callbacks and topics; None for `any`."""
        return parsers.ports(str(self.callback_ports))

    def name_servers(self) -> tuple[str, ...]:
        """Returns each name server as `ADDRESS:PORT`; empty for the system's."""
        return tuple(parsers.name_servers(self.dns_servers))

    def relayed_hosts(self) -> tuple[str, ...]:
        """Returns the hosts that requests are relayed to, each with a port if it is not 80."""
        return tuple(parsers.relay_hosts(self.relay_hosts))

    def rate_per_origin(self) -> int:
        """Returns deliveries per second to one origin; 0 for no limit.

        `auto` is a limit except in development mode: it bounds the traffic that a hub can be made
        to send to a host that did not subscribe.
        """
        if self.max_rate_per_origin == AUTOMATIC:
            return 0 if self.dev else RATE_PER_ORIGIN
        return int(self.max_rate_per_origin)

    def allows_guest_over_http(self) -> bool:
        """Returns whether `guest` may log in over HTTP from this machine.

        Not by default: a request through a proxy on this machine can look local, since HAProxy adds
        no header by default.
        """
        return self.dev or self.allow_guest

    def effective_amqps_port(self) -> int | None:
        """Returns the AMQPS port; None for no AMQPS."""
        if self.amqps_port == AUTOMATIC:
            return AMQPS_PORT if self.tls_cert else None
        return None if self.amqps_port == NONE else int(self.amqps_port)
