"""Loads the settings from their sources and validates them.

A flag takes precedence over `WARREN_NAME` in the environment, that over the configuration file
(TOML, the same names), that over the default. An unknown name or a bad value is a `ConfigError`, so
that a misspelt one is not silently ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import urlsplit

import msgspec

from ...core.errors import ConfigError
from ..suggestions import suggestion
from .descriptions import checked
from .settings import AUTOMATIC, NONE, Settings

ENVIRONMENT_PREFIX = "WARREN_"
_SERVICE_LINK = re.compile(r"(.+_)?SERVICE_(HOST|PORT(_.+)?)|(.+_)?PORT(_\d+_(TCP|UDP)(_.+)?)?")
"""Variables that Kubernetes and Docker set for a service named warren."""
OF_CLIENTS = frozenset(
    f"{ENVIRONMENT_PREFIX}{name}"
    for name in ("URL", "USER", "PASSWORD", "TOKEN", "PROFILE", "TUNNEL_TOKEN",
                 "CONFORMANCE_PASSWORD")
)  # fmt: skip
"""Variables of commands that talk to a server; they may be set where one is started."""
NAMES = Settings.__struct_fields__
TYPES: Mapping[str, Any] = get_type_hints(Settings, include_extras=True)
"""The annotation of each setting, with its metadata."""


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
    _check_leases(settings)
    _check_tls(settings)
    if settings.engine_management and settings.engine_address() is None:
        raise ConfigError(f"engine_management is set, but engine is {settings.engine}")
    _check_tunnel_domain(settings)
    return settings


def _check_leases(settings: Settings) -> None:
    """Raises `ConfigError` for a default that is more than the maximum."""
    for prefix in ("", "hub_"):
        default = getattr(settings, f"{prefix}default_lease_s")
        maximum = getattr(settings, f"{prefix}max_lease_s")
        if default > maximum:
            raise ConfigError(
                f"{prefix}default_lease_s is {default}, more than {prefix}max_lease_s {maximum}"
            )


def _check_tunnel_domain(settings: Settings) -> None:
    """Raises `ConfigError` if requests to this server would be taken for a tunnel's."""
    domain = settings.tunnel_domain.partition(":")[0]
    host = urlsplit(settings.public_url).hostname or ""
    if settings.tunnels and f".{host}".endswith(f".{domain}"):
        raise ConfigError(f"tunnel_domain is {domain}, which includes the host of public_url")


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
        elif variable not in OF_CLIENTS and not _SERVICE_LINK.fullmatch(name):
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
    """Returns the values with sizes in bytes, each checked by itself, so that the error names its
    source."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name not in NAMES:
            hint = suggestion(name, NAMES)
            raise ConfigError(f"{source}: unknown setting {name}{hint}")
        try:
            found[name] = checked(TYPES[name], value)
            _convert({name: found[name]})
        except (ConfigError, ValueError) as error:
            raise ConfigError(f"{source}: {name}: {error}") from error
    return found


def _convert(values: dict[str, Any]) -> Settings:
    try:
        return msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(str(error).partition(" - at ")[0]) from error
