"""Every setting, where it comes from, and what is wrong with it.

A flag wins over `WARREN_NAME` in the environment, that over the configuration file (TOML, the
same names), that over the default. An unknown name or a bad value is a `ConfigError`: a typing
error must not become a default in silence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ..core.amount import Amount, read_amount
from ..core.errors import ConfigError

Port = Annotated[int, Meta(ge=0, le=65535)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
HeaderName = Annotated[str, Meta(pattern=r"^([A-Za-z0-9-]{1,64})?$")]

ENVIRONMENT_PREFIX = "WARREN_"
AUTOMATIC = "auto"
_SERVICE_LINK = re.compile(r"(.+_)?SERVICE_(HOST|PORT(_.+)?)|(.+_)?PORT(_\d+_(TCP|UDP)(_.+)?)?")
"""What Kubernetes and Docker set by themselves for a service that is called warren."""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One field a setting; `DESCRIPTIONS` says what each does."""

    data: str = "./warren-data"
    host: Annotated[str, Meta(min_length=1)] = "localhost"
    amqp_port: Port = 5672
    http_port: Port = 15672
    dev: bool = False
    default_user: Annotated[str, Meta(min_length=1, max_length=255)] = "guest"
    default_pass: Annotated[str, Meta(min_length=1)] = "guest"

    base_path: Annotated[str, Meta(pattern=r"^((/[A-Za-z0-9._~-]+)+)?$")] = ""
    public_url: Annotated[str, Meta(pattern=r"^(https?://[^\s?#@]*[^\s?#@/])?$")] = ""
    set_correlation_id: HeaderName = ""
    set_message_id: HeaderName = ""

    segment_bytes: Annotated[int, Meta(ge=65_536, le=2**31)] = 64 * 1024 * 1024
    max_message_bytes: Annotated[int, Meta(ge=1, le=512 * 1024 * 1024)] = 16 * 1024 * 1024
    heartbeat_s: Annotated[int, Meta(ge=0, le=65535)] = 60
    frame_max: Annotated[int, Meta(ge=4096, le=2**31 - 1)] = 131_072
    channel_max: Annotated[int, Meta(ge=1, le=65535)] = 2047

    memory_limit: str | float = "0.6"
    disk_free_limit: str | float = AUTOMATIC

    default_lease_s: Annotated[int, Meta(ge=1)] = 30 * 86_400
    max_lease_s: Annotated[int, Meta(ge=1)] = 365 * 86_400
    verify_timeout_s: Seconds = 10.0
    connect_timeout_s: Seconds = 5.0
    delivery_timeout_s: Seconds = 15.0
    max_attempts: Annotated[int, Meta(ge=1, le=1000)] = 12
    in_flight_per_subscription: Annotated[int, Meta(ge=1, le=1000)] = 1
    max_in_flight: Annotated[int, Meta(ge=1, le=100_000)] = 2_000
    drain_s: Seconds = 10.0

    log_level: Annotated[str, Meta(pattern="^(debug|info|warning|error)$")] = "warning"

    def __post_init__(self) -> None:
        # Read here to be complained of with their source, as every other bad value.
        self.memory_amount()
        self.disk_free_amount()

    def memory_amount(self) -> Amount:
        return read_amount(str(self.memory_limit))

    def disk_free_amount(self) -> Amount | None:
        """None for `auto`."""
        text = str(self.disk_free_limit)
        return None if text == AUTOMATIC else read_amount(text)


DESCRIPTIONS = {
    "data": "Data directory; made if missing, used by one process at a time.",
    "host": "Address or name to listen on; `localhost` is 127.0.0.1 and ::1.",
    "amqp_port": "AMQP port; 0 takes a free one.",
    "http_port": "HTTP port; 0 takes a free one.",
    "dev": "Allow callbacks on loopback addresses.",
    "default_user": "Administrator of a new data directory; `guest` may log in from loopback only.",
    "default_pass": "Its password.",
    "base_path": "Serve the HTTP paths below this one too, `/hub` for example.",
    "public_url": "How others reach the HTTP port, base path included; else host and port.",
    "set_correlation_id": "Request header that becomes correlation_id and is echoed on the 202.",
    "set_message_id": "Header of the 202 that carries a generated message_id.",
    "segment_bytes": "Largest file of the log; a smaller one suits a small disk.",
    "max_message_bytes": "Largest message body, over AMQP and over HTTP.",
    "heartbeat_s": "Heartbeat offered to AMQP clients; 0 offers none.",
    "frame_max": "Largest AMQP frame offered, in bytes.",
    "channel_max": "Channels offered to each AMQP connection.",
    "memory_limit": "Memory for messages and buffers; more, and publishers wait (see Limits).",
    "disk_free_limit": "Free space for the data directory; less, and publishers wait.",
    "default_lease_s": "Lease of a subscription that asks for none.",
    "max_lease_s": "Longest lease granted.",
    "verify_timeout_s": "Time a callback has to confirm a subscription.",
    "connect_timeout_s": "Time to connect to a callback.",
    "delivery_timeout_s": "Time a callback has to answer a delivery.",
    "max_attempts": "Deliveries of one message before it is a dead letter.",
    "in_flight_per_subscription": "Deliveries under way for one subscription; 1 keeps the order.",
    "max_in_flight": "Deliveries under way in all.",
    "drain_s": "Time that a stop leaves to what is under way.",
    "log_level": "debug, info, warning or error.",
}
NAMES = Settings.__struct_fields__


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
    return settings


def _environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for variable, value in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX)
        if name.lower() in NAMES or name == "CONFIG":
            found[name.lower()] = value
        elif not _SERVICE_LINK.fullmatch(name):
            raise ConfigError(f"environment: unknown setting {variable}")
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
            raise ConfigError(f"{source}: unknown setting {name}")
        try:
            _convert({name: value})
        except ConfigError as error:
            raise ConfigError(f"{source}: {name}: {error}") from error
    return values


def _convert(values: dict[str, Any]) -> Settings:
    try:
        return msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(str(error).partition(" - at ")[0]) from error
