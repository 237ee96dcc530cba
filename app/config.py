"""Loads the settings and validates them.

A flag takes precedence over `WARREN_NAME` in the environment, that over the configuration file
(TOML, the same names), that over the default. An unknown name or a bad value is a `ConfigError`, so
that a misspelt one is not silently ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from ipaddress import IPv6Network
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_type_hints

import msgspec
from msgspec import Meta, Struct

from ..core.errors import ConfigError
from ..core.resources.amount import Amount, read_amount
from ..hub.storage.database_url import read_url
from . import setting_descriptions
from . import setting_parsers as parsers
from .setting_types import BasePath, BaseUrl, HeaderName, Port, ProxyUrl, Seconds, Url
from .suggestions import suggestion

ENVIRONMENT_PREFIX = "WARREN_"
AUTOMATIC: Final = "auto"
NONE: Final = "none"
AMQPS_PORT = 5671
PLATFORM = "168.63.129.16,169.254.169.254,169.254.170.2,100.100.100.200,192.0.0.192,fd00:ec2::254"
"""The metadata services of cloud providers, which hand out credentials."""
RATE_PER_ORIGIN = 1_000
_SERVICE_LINK = re.compile(r"(.+_)?SERVICE_(HOST|PORT(_.+)?)|(.+_)?PORT(_\d+_(TCP|UDP)(_.+)?)?")
"""Variables that Kubernetes and Docker set for a service named warren."""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One field per setting; `DESCRIPTIONS` documents them."""

    data: str = "./warren-data"
    database: str = ""
    hub_key_file: str = ""
    host: Annotated[str, Meta(min_length=1)] = "localhost"
    amqp_port: Port | Literal["none"] = 5672
    http_port: Port = 15672
    amqps_port: Port | Literal["auto", "none"] = AUTOMATIC
    https_port: Port | Literal["none"] = NONE
    tls_cert: str = ""
    tls_key: str = ""
    tls_hosts: str | dict[str, parsers.HostFiles] = ""
    tls_ca: str = ""
    tls_verify_clients: Literal["none", "optional", "required"] = "optional"
    tls_login_from: Literal["common_name", "distinguished_name"] = "common_name"
    proxy_protocol_from: str = ""
    http_proxies: str = ""
    websocket_origins: str = ""
    dev: bool = False
    default_user: Annotated[str, Meta(min_length=1, max_length=255)] = "guest"
    default_pass: Annotated[str, Meta(min_length=1)] = "guest"
    allow_guest: bool = False
    allow_weak_password: bool = False
    allow_plaintext: bool = False

    allow_networks: str = ""
    deny_networks: str = PLATFORM
    nat64_prefixes: str = ""
    callback_ports: str | int = "80,443"
    egress_proxy: ProxyUrl = ""
    dns_servers: str = ""

    base_path: BasePath = ""
    public_url: BaseUrl = ""
    set_correlation_id: HeaderName = ""
    set_message_id: HeaderName = ""

    segment_bytes: str | int = 64 * 1024 * 1024
    max_message_bytes: Annotated[int, Meta(ge=1, le=512 * 1024 * 1024)] = 16 * 1024 * 1024
    heartbeat_s: Annotated[int, Meta(ge=0, le=65535)] = 60
    frame_max: Annotated[int, Meta(ge=4096, le=2**31 - 1)] = 131_072
    channel_max: Annotated[int, Meta(ge=1, le=65535)] = 2047
    consumer_timeout: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 30 * 60 * 1000
    strict_arguments: bool = False
    login_throttle: bool = True

    memory_limit: str | float = "0.6"
    disk_free_limit: str | float = AUTOMATIC

    default_lease_s: Annotated[int, Meta(ge=1)] = 30 * 86_400
    max_lease_s: Annotated[int, Meta(ge=1)] = 365 * 86_400
    secret_overlap_s: Annotated[int, Meta(ge=0)] = 86_400
    hub_default_lease_s: Annotated[int, Meta(ge=1)] = 10 * 86_400
    hub_max_lease_s: Annotated[int, Meta(ge=1)] = 90 * 86_400
    hub_user: Annotated[str, Meta(max_length=255)] = ""
    hub_foreign_topics: bool = False
    hub_anonymous: bool = False
    hub_anonymous_subscriptions: Annotated[int, Meta(ge=1)] = 1_000
    hub_anonymous_content: str | int = 64 * 1024 * 1024
    hub_check_topics: bool = False
    hub_moved_to: Url = ""
    hub_publisher_secret: str = ""
    verify_timeout_s: Seconds = 10.0
    connect_timeout_s: Seconds = 5.0
    delivery_timeout_s: Seconds = 15.0
    max_attempts: Annotated[int, Meta(ge=1, le=1000)] = 12
    attempt_retention_s: Annotated[int, Meta(ge=1)] = 7 * 86_400
    max_attempt_rows: Annotated[int, Meta(ge=1)] = 1_000_000
    attempt_body_bytes: Annotated[int, Meta(ge=0, le=65_536)] = 2_048
    in_flight_per_subscription: Annotated[int, Meta(ge=1, le=1000)] = 1
    max_in_flight: Annotated[int, Meta(ge=1, le=100_000)] = 2_000
    max_rate: Annotated[int, Meta(ge=0)] = 0
    max_rate_per_origin: Annotated[int, Meta(ge=0)] | Literal["auto"] = AUTOMATIC
    signature_method: Literal["sha1", "sha256", "sha384", "sha512"] = "sha256"
    fetch_gap_s: Seconds = 3.0
    max_hops: Annotated[int, Meta(ge=1, le=1000)] = 20
    drain_s: Seconds = 10.0

    access_log: bool = False
    log_level: Literal["debug", "info", "warning", "error"] = "warning"

    def __post_init__(self) -> None:
        # Parsed here so that errors name the source of the value, as for all other settings.
        self.memory_amount()
        self.disk_free_amount()
        self.segment_size()
        self.tls_host_files()
        self.amqp_proxy_networks()
        self.http_proxy_networks()
        self.allowed_callback_networks()
        self.denied_callback_networks()
        self.nat64_prefix_list()
        self.allowed_callback_ports()
        self.name_servers()
        self.anonymous_content_bytes()
        parsers.origins(self.websocket_origins)
        if self.database:
            read_url(self.database)

    def memory_amount(self) -> Amount:
        """Returns the memory limit."""
        return read_amount(str(self.memory_limit))

    def disk_free_amount(self) -> Amount | None:
        """Returns the limit of free disk space; None for `auto`."""
        text = str(self.disk_free_limit)
        return None if text == AUTOMATIC else read_amount(text)

    def segment_size(self) -> int:
        """Returns the maximum size of a log segment in bytes."""
        return parsers.segment_size(self.segment_bytes)

    def tls_host_files(self) -> dict[str, parsers.HostFiles]:
        """Returns certificate and key by host name."""
        return parsers.hosts(self.tls_hosts)

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

    def anonymous_content_bytes(self) -> int:
        """Returns the limit of content for anonymous subscribers, in bytes per hour."""
        return parsers.size(self.hub_anonymous_content)

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


DESCRIPTIONS = {
    "data": "Data directory; created if missing, used by one process at a time.",
    "database": "URL of a PostgreSQL database for subscriptions, instead of SQLite in `data`.",
    "hub_key_file": "File with the key that encrypts stored secrets; default `hub.key` in `data`.",
    "host": "Address or name to listen on; `localhost` is 127.0.0.1 and ::1.",
    "amqp_port": "AMQP port; 0 chooses a free one, `none` allows only AMQPS and WebSocket.",
    "http_port": "HTTP port, also for AMQP over WebSocket; 0 chooses a free one.",
    "amqps_port": "AMQPS port; `auto` is 5671 with a certificate and none without; or `none`.",
    "https_port": "HTTPS port, with the same certificates; or `none`.",
    "tls_cert": "PEM file with certificate and intermediate certificates. SIGHUP reloads it.",
    "tls_key": "PEM file with the private key, not encrypted.",
    "tls_hosts": "More certificates by host name: HOST=CERT:KEY,... or a table in the file.",
    "tls_ca": "PEM file with the CA of the client certificates (AMQPS).",
    "tls_verify_clients": "With tls_ca, client certificates are none, optional or required.",
    "tls_login_from": "User name in a client certificate: common_name or distinguished_name.",
    "proxy_protocol_from": "Networks of AMQP proxies; they must send a PROXY header.",
    "http_proxies": "Networks of HTTP proxies whose Forwarded or X-Forwarded-For is trusted.",
    "websocket_origins": "Origins of other web pages that may connect; `*` for all.",
    "dev": "Allow callbacks on loopback addresses and unlimited failed logins from there.",
    "default_user": "Administrator of a new data directory; `guest` may log in from loopback only.",
    "default_pass": "Password of default_user.",
    "allow_guest": "Accept `guest` over HTTP without `dev`, and its default password beyond "
    "loopback.",
    "allow_weak_password": "Accept an easily guessed default_pass beyond loopback.",
    "allow_plaintext": "Accept passwords without TLS from other machines.",
    "allow_networks": "Private networks allowed for callbacks and topics: 10.1.0.0/16,...",
    "deny_networks": "Networks denied for callbacks and topics; overrides allow_networks.",
    "nat64_prefixes": "NAT64 prefixes of this site: 2001:db8:64::/96,...",
    "callback_ports": "Ports allowed for callbacks and topics, or `any`.",
    "egress_proxy": "HTTP proxy (CONNECT) for all outgoing requests: http://proxy.internal:4750.",
    "dns_servers": "Name servers instead of the system's: 192.0.2.53, [2001:db8::53]:5353.",
    "base_path": "Serve the HTTP paths also below this path, for example `/hub`.",
    "public_url": "External URL of the HTTP port, with base path; default: host and port.",
    "set_correlation_id": "Request header that sets correlation_id; echoed in the 202.",
    "set_message_id": "Response header of the 202 for a generated message_id.",
    "segment_bytes": "Maximum size of a log file, such as 16MiB; use a smaller one on a small "
    "disk.",
    "max_message_bytes": "Maximum size of a message body, over AMQP and HTTP.",
    "heartbeat_s": "Heartbeat offered to AMQP clients; 0 disables it.",
    "frame_max": "Maximum AMQP frame size offered, in bytes.",
    "channel_max": "Maximum number of channels per AMQP connection.",
    "consumer_timeout": "Milliseconds until a delivery must be acked; 0 disables the timeout.",
    "strict_arguments": "Refuse unknown x-arguments instead of storing them.",
    "login_throttle": "Refuse or delay logins after five wrong passwords per minute.",
    "memory_limit": "Memory for messages and buffers; above it publishers wait (see Limits).",
    "disk_free_limit": "Minimum free disk space for data; below it publishers wait.",
    "default_lease_s": "Default lease of a subscription.",
    "max_lease_s": "Maximum lease of a subscription.",
    "secret_overlap_s": "How long a replaced secret still signs deliveries.",
    "hub_default_lease_s": "Default lease of a subscription at /hub.",
    "hub_max_lease_s": "Maximum lease of a subscription at /hub.",
    "hub_user": "User for requests without credentials at /hub; empty for none.",
    "hub_foreign_topics": "Accept subscriptions at /hub to topics of other servers.",
    "hub_anonymous": "Accept these without credentials too; `dev` enables both.",
    "hub_anonymous_subscriptions": "Maximum anonymous subscriptions per client and domain.",
    "hub_anonymous_content": "Maximum content per hour for them, in bytes, per client and domain.",
    "hub_check_topics": "Deny subscriptions at /hub to URLs that can't be fetched.",
    "hub_moved_to": "URL of another hub, to which /hub redirects (308).",
    "hub_publisher_secret": "Secret of publishers that send content with their pings to /hub.",
    "verify_timeout_s": "Timeout for a callback to confirm a subscription.",
    "connect_timeout_s": "Timeout for connecting to a callback.",
    "delivery_timeout_s": "Timeout for a callback to answer a delivery.",
    "max_attempts": "Delivery attempts per message before it is dead-lettered.",
    "attempt_retention_s": "How long delivery attempts are kept in the database.",
    "max_attempt_rows": "Maximum number of delivery attempts kept; the oldest are deleted first.",
    "attempt_body_bytes": "Bytes of each callback's response body kept with its attempt.",
    "in_flight_per_subscription": "Concurrent deliveries per subscription; 1 preserves the order.",
    "max_in_flight": "Concurrent deliveries in total.",
    "max_rate": "Deliveries per second in total; 0 for no limit.",
    "max_rate_per_origin": "Deliveries per second to one host and port; 0: no limit, `auto`: "
    "1,000.",
    "signature_method": "Method of X-Hub-Signature, unless hub.signature_method is given.",
    "fetch_gap_s": "Minimum time between two fetches of a topic; pings meanwhile are merged.",
    "max_hops": "Maximum number of hubs a message may pass; more is a loop (508).",
    "drain_s": "How long a stop waits for requests and deliveries in progress.",
    "access_log": "Log each HTTP request, without query and secrets.",
    "log_level": "debug, info, warning or error.",
}
TOPICS = {
    "data": "Data",
    "host": "Addresses and ports",
    "tls_cert": "TLS",
    "proxy_protocol_from": "Proxies and web pages",
    "dev": "Users and development",
    "allow_networks": "Callbacks",
    "base_path": "HTTP",
    "segment_bytes": "Messages and AMQP",
    "memory_limit": "Memory and disk",
    "default_lease_s": "Subscriptions",
    "verify_timeout_s": "Deliveries",
    "fetch_gap_s": "External topics and loops",
    "drain_s": "Shutdown and log",
}
"""Headings of the help text, by the first setting below each."""
NAMES = Settings.__struct_fields__
SECRETS = frozenset(("database", "default_pass", "hub_publisher_secret"))
"""Settings whose values never appear in messages."""
_TYPES = get_type_hints(Settings, include_extras=True)


def load(flags: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Settings:
    """Returns the settings in force.

    `flags` holds the given options, among them `config`, the path of a file. Raises `ConfigError`
    with a text of one line.
    """
    from_environment = _environment(environment)
    config = flags.get("config") or from_environment.pop("config", None)
    from_environment.pop("config", None)
    given = {name: value for name, value in flags.items() if name != "config"}
    merged = _check(_file(config), f"file {config}") if config else {}
    merged |= _check(from_environment, "environment")
    merged |= _check(given, "command line")
    settings = _convert(merged)
    if settings.default_lease_s > settings.max_lease_s:
        raise ConfigError(
            f"default_lease_s is {settings.default_lease_s}, "
            f"more than max_lease_s {settings.max_lease_s}"
        )
    if settings.hub_default_lease_s > settings.hub_max_lease_s:
        raise ConfigError(
            f"hub_default_lease_s is {settings.hub_default_lease_s}, "
            f"more than hub_max_lease_s {settings.hub_max_lease_s}"
        )
    _check_tls(settings)
    return settings


def _check_tls(settings: Settings) -> None:
    """Raises `ConfigError` for TLS settings that have no effect without others."""
    if bool(settings.tls_cert) is not bool(settings.tls_key):
        given, missing = ("cert", "key") if settings.tls_cert else ("key", "cert")
        raise ConfigError(f"tls_{given} is set, but tls_{missing} is not")
    if settings.tls_verify_clients == "required" and not settings.tls_ca:
        raise ConfigError("tls_verify_clients is required, but tls_ca is not set")
    if settings.tls_login_from == "distinguished_name" and not settings.tls_ca:
        raise ConfigError("tls_login_from is distinguished_name, but tls_ca is not set")
    if settings.tls_cert:
        return
    for name in ("amqps_port", "https_port"):
        if getattr(settings, name) not in (AUTOMATIC, NONE):
            raise ConfigError(f"{name} is set, but tls_cert and tls_key are not")
    for name in ("tls_hosts", "tls_ca"):
        if getattr(settings, name):
            raise ConfigError(f"{name} is set, but tls_cert and tls_key are not")


def _environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for variable, value in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX)
        if name.lower() in NAMES or name == "CONFIG":
            found[name.lower()] = value
        elif not _SERVICE_LINK.fullmatch(name):
            hint = suggestion(name.lower(), NAMES, lambda known: ENVIRONMENT_PREFIX + known.upper())
            raise ConfigError(f"environment: unknown setting {variable}{hint}")
    return found


def _file(path: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"file {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"file {path}: {error}") from error


def _check(values: dict[str, Any], source: str) -> dict[str, Any]:
    """Checks each value by itself, so that the error names its source."""
    for name, value in values.items():
        if name not in NAMES:
            hint = suggestion(name, NAMES)
            raise ConfigError(f"{source}: unknown setting {name}{hint}")
        try:
            setting_descriptions.check(_TYPES[name], value, is_secret=name in SECRETS)
            _convert({name: value})
        except (ConfigError, ValueError) as error:
            raise ConfigError(f"{source}: {name}: {error}") from error
    return values


def _convert(values: dict[str, Any]) -> Settings:
    try:
        return msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(str(error).partition(" - at ")[0]) from error
