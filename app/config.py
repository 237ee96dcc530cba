"""Every setting, where it comes from, and what is wrong with it.

A flag wins over `WARREN_NAME` in the environment, that over the configuration file (TOML, the
same names), that over the default. An unknown name or a bad value is a `ConfigError`: a typing
error must not become a default in silence.
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
from . import setting_descriptions as expected
from . import setting_parsers as texts
from .setting_types import BasePath, BaseUrl, HeaderName, Port, ProxyUrl, Seconds, Url
from .suggestions import suggestion

ENVIRONMENT_PREFIX = "WARREN_"
AUTOMATIC: Final = "auto"
NONE: Final = "none"
AMQPS_PORT = 5671
PLATFORM = "168.63.129.16,169.254.169.254,169.254.170.2,100.100.100.200,192.0.0.192,fd00:ec2::254"
"""Where machines in a cloud ask for their credentials and settings."""
RATE_PER_ORIGIN = 1_000
_SERVICE_LINK = re.compile(r"(.+_)?SERVICE_(HOST|PORT(_.+)?)|(.+_)?PORT(_\d+_(TCP|UDP)(_.+)?)?")
"""What Kubernetes and Docker set by themselves for a service that is called warren."""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One field a setting; `DESCRIPTIONS` says what each does."""

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
    tls_hosts: str | dict[str, texts.HostFiles] = ""
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
        # Read here to be complained of with their source, as every other bad value.
        self.memory_amount()
        self.disk_free_amount()
        self.segment_size()
        self.hosts()
        self.proxies()
        self.proxies_of_http()
        self.networks_of_callbacks()
        self.networks_denied()
        self.prefixes_of_nat64()
        self.ports_of_callbacks()
        self.name_servers()
        self.content_of_strangers()
        texts.origins(self.websocket_origins)
        if self.database:
            read_url(self.database)

    def memory_amount(self) -> Amount:
        return read_amount(str(self.memory_limit))

    def disk_free_amount(self) -> Amount | None:
        """None for `auto`."""
        text = str(self.disk_free_limit)
        return None if text == AUTOMATIC else read_amount(text)

    def segment_size(self) -> int:
        return texts.segment_size(self.segment_bytes)

    def hosts(self) -> dict[str, texts.HostFiles]:
        return texts.hosts(self.tls_hosts)

    def proxies(self) -> list[texts.Network]:
        return texts.networks(self.proxy_protocol_from)

    def proxies_of_http(self) -> list[texts.Network]:
        return texts.networks(self.http_proxies)

    def networks_of_callbacks(self) -> tuple[texts.Network, ...]:
        return tuple(texts.callback_networks(self.allow_networks))

    def networks_denied(self) -> tuple[texts.Network, ...]:
        return tuple(texts.networks(self.deny_networks))

    def prefixes_of_nat64(self) -> tuple[IPv6Network, ...]:
        return tuple(texts.nat64_prefixes(self.nat64_prefixes))

    def ports_of_callbacks(self) -> frozenset[int] | None:
        """None for `any`."""
        return texts.ports(str(self.callback_ports))

    def name_servers(self) -> tuple[str, ...]:
        """`ADDRESS:PORT` each; none for the system's."""
        return tuple(texts.name_servers(self.dns_servers))

    def content_of_strangers(self) -> int:
        """In bytes an hour."""
        return texts.size(self.hub_anonymous_content)

    def rate_per_origin(self) -> int:
        """0 for no limit. One that nobody has set bounds what a hub can be made to send to a host
        that never asked for it."""
        if self.max_rate_per_origin == AUTOMATIC:
            return 0 if self.dev else RATE_PER_ORIGIN
        return int(self.max_rate_per_origin)

    def lets_guest_in_over_http(self) -> bool:
        """Everybody knows the password of `guest`, and what a proxy on this machine passes on can
        look like a request of a program on it: HAProxy adds nothing by default."""
        return self.dev or self.allow_guest

    def port_of_amqps(self) -> int | None:
        """None for no AMQPS."""
        if self.amqps_port == AUTOMATIC:
            return AMQPS_PORT if self.tls_cert else None
        return None if self.amqps_port == NONE else int(self.amqps_port)


DESCRIPTIONS = {
    "data": "Data directory; made if missing, used by one process at a time.",
    "database": "URL of a PostgreSQL database for subscriptions, instead of SQLite in `data`.",
    "hub_key_file": "File of the key of stored secrets; `hub.key` in `data` if empty.",
    "host": "Address or name to listen on; `localhost` is 127.0.0.1 and ::1.",
    "amqp_port": "AMQP port; 0 takes a free one, `none` leaves AMQP to AMQPS and WebSocket.",
    "http_port": "HTTP port, AMQP over WebSocket too; 0 takes a free one.",
    "amqps_port": "AMQPS port; `auto` is 5671 if there is a certificate, `none` is none.",
    "https_port": "HTTPS port, with the same certificates.",
    "tls_cert": "PEM file: the certificate, and those that lead to its root. SIGHUP reads anew.",
    "tls_key": "PEM file: its key, without password.",
    "tls_hosts": "Other certificates by host name: HOST=CERT:KEY,... or a table in the file.",
    "tls_ca": "PEM file: who signs the certificates of AMQPS clients.",
    "tls_verify_clients": "Certificates of AMQPS clients with tls_ca: none, optional or required.",
    "tls_login_from": "User of a client with certificate: its common_name or distinguished_name.",
    "proxy_protocol_from": "Networks of proxies that pass AMQP on, with a PROXY header each time.",
    "http_proxies": "Networks of HTTP proxies whose Forwarded or X-Forwarded-For is believed.",
    "websocket_origins": "Origins of other web pages that may connect; `*` for all.",
    "dev": "Allow callbacks on loopback addresses, and any number of wrong logins from there.",
    "default_user": "Administrator of a new data directory; `guest` may log in from loopback only.",
    "default_pass": "Its password.",
    "allow_guest": "Take `guest` over HTTP without `dev`; start beyond loopback with its password.",
    "allow_weak_password": "Start beyond loopback with a first password that is easily guessed.",
    "allow_plaintext": "Take passwords without TLS from other machines.",
    "allow_networks": "Private networks that callbacks and topics may be in: 10.1.0.0/16,...",
    "deny_networks": "Networks that they can't be in, whatever else allows them.",
    "nat64_prefixes": "Prefixes of NAT64 at this site: 2001:db8:64::/96,...",
    "callback_ports": "Ports that callbacks and topics may have, or `any`.",
    "egress_proxy": "HTTP proxy through which all goes out (CONNECT): http://proxy.internal:4750.",
    "dns_servers": "Name servers to ask instead of the system's: 192.0.2.53, [2001:db8::53]:5353.",
    "base_path": "Serve the HTTP paths below this one too, `/hub` for example.",
    "public_url": "How others reach the HTTP port, base path included; else host and port.",
    "set_correlation_id": "Request header that becomes correlation_id and is echoed on the 202.",
    "set_message_id": "Header of the 202 that carries a generated message_id.",
    "segment_bytes": "Largest file of the log, as 16MiB; a smaller one suits a small disk.",
    "max_message_bytes": "Largest message body, over AMQP and over HTTP.",
    "heartbeat_s": "Heartbeat offered to AMQP clients; 0 offers none.",
    "frame_max": "Largest AMQP frame offered, in bytes.",
    "channel_max": "Channels offered to each AMQP connection.",
    "consumer_timeout": "Milliseconds that a delivery may wait for its ack; 0 is for ever.",
    "strict_arguments": "Refuse unknown x-arguments instead of keeping them.",
    "login_throttle": "Refuse or slow logins after five wrong passwords a minute.",
    "memory_limit": "Memory for messages and buffers; more, and publishers wait (see Limits).",
    "disk_free_limit": "Free space for the data directory; less, and publishers wait.",
    "default_lease_s": "Lease of a subscription that asks for none.",
    "max_lease_s": "Longest lease granted.",
    "secret_overlap_s": "Time that the secret before the last one signs deliveries too.",
    "hub_default_lease_s": "Lease of a subscription at /hub that asks for none.",
    "hub_max_lease_s": "Longest lease granted at /hub.",
    "hub_user": "User whose rights requests without credentials have at /hub; empty for none.",
    "hub_foreign_topics": "Take subscriptions at /hub to topics that are not this hub's own.",
    "hub_anonymous": "Take those without credentials too; `dev` has both of these on.",
    "hub_anonymous_subscriptions": "Of these, for one client, callback domain or topic domain.",
    "hub_anonymous_content": "Content published for them in an hour, on the same terms.",
    "hub_check_topics": "Deny subscriptions at /hub to URLs that can't be fetched.",
    "hub_moved_to": "URL of another hub, to which /hub sends everybody (308).",
    "hub_publisher_secret": "Secret of publishers that send content with their pings to /hub.",
    "verify_timeout_s": "Time a callback has to confirm a subscription.",
    "connect_timeout_s": "Time to connect to a callback.",
    "delivery_timeout_s": "Time a callback has to answer a delivery.",
    "max_attempts": "Deliveries of one message before it is a dead letter.",
    "attempt_retention_s": "How long attempts to deliver are kept in the database.",
    "max_attempt_rows": "How many attempts are kept at most; the oldest go first.",
    "attempt_body_bytes": "Bytes of the body of each callback's answer, kept with its attempt.",
    "in_flight_per_subscription": "Deliveries under way for one subscription; 1 keeps the order.",
    "max_in_flight": "Deliveries under way in all.",
    "max_rate": "Deliveries a second in all; 0 for no limit.",
    "max_rate_per_origin": "Deliveries a second to one host and port; 0: no limit, `auto`: 1,000.",
    "signature_method": "Of X-Hub-Signature, unless a subscriber says hub.signature_method.",
    "fetch_gap_s": "At least so long between two fetches of a topic; pings meanwhile are one.",
    "max_hops": "Hubs and relays that a message may pass; more is taken for a loop (508).",
    "drain_s": "Time that a stop leaves to what is under way.",
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
    "fetch_gap_s": "Topics of others, and loops",
    "drain_s": "Stop and log",
}
"""Headings of the help, each by the first setting below it."""
NAMES = Settings.__struct_fields__
SECRETS = frozenset(("database", "default_pass", "hub_publisher_secret"))
"""Settings whose values no message repeats."""
_TYPES = get_type_hints(Settings, include_extras=True)


def load(flags: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings in force. `flags` holds those given, and `config`, the path of a file.

    Raises `ConfigError` in one line.
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
    """What has no meaning without something else: it was meant, and would not be there."""
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
    """Each value by itself, so that the complaint names where it came from."""
    for name, value in values.items():
        if name not in NAMES:
            hint = suggestion(name, NAMES)
            raise ConfigError(f"{source}: unknown setting {name}{hint}")
        try:
            expected.check(_TYPES[name], value, is_secret=name in SECRETS)
            _convert({name: value})
        except (ConfigError, ValueError) as error:
            raise ConfigError(f"{source}: {name}: {error}") from error
    return values


def _convert(values: dict[str, Any]) -> Settings:
    try:
        return msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(str(error).partition(" - at ")[0]) from error
