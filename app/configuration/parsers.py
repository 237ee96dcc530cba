"""Parsers for settings that are lists, tables or sizes.

Each function raises `ValueError` with the bad value and the expected form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from msgspec import Struct

from ...core.resources.amount import read_amount

Network = IPv4Network | IPv6Network

MAX_PORT = 65_535
NAT64_LENGTHS = (32, 40, 48, 56, 64, 96)
DNS_PORT = 53
ANY = "any"
_MAPPED = IPv6Network("::ffff:0:0/96")
_SERVER = re.compile(r"(?:([0-9.]+)|\[([0-9A-Fa-f:.]+)\])(?::([0-9]+))?")
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_ORIGIN = re.compile(r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")


class HostFiles(Struct, frozen=True, forbid_unknown_fields=True):
    """Paths of a certificate and its key."""

    cert: str
    key: str


def relay_hosts(value: str) -> list[str]:
    """Returns each `HOST`, `HOST:PORT` or `*.DOMAIN`, in lower case."""
    found = [one.strip().lower() for one in value.split(",") if one.strip()]
    for one in found:
        host, _, port = one.partition(":")
        if not _HOST.fullmatch(host) or not (port or "80").isdecimal():
            raise ValueError(f"'{one}' is no host like api.example.org, *.example.org or a:8080")
    return found


def host_and_port(text: str) -> None:
    """Raises `ValueError` for what is not HOST:PORT, with an IPv6 address in brackets."""
    host, _, port = text.rpartition(":")
    if not host or (":" in host) != (host[0] == "[" and host[-1] == "]"):
        raise ValueError(f"'{text}' is not HOST:PORT")
    _port(port)


def size(text: str) -> int:
    """Returns a size with a unit, `16MiB`, in bytes."""
    try:
        amount = read_amount(text)
    except ValueError:
        amount = None
    if amount is None or amount.share:
        raise ValueError(f"'{text}' is neither a number of bytes nor a size like 16MiB")
    return amount.size_bytes


def networks(text: str) -> list[Network]:
    """Parses networks: `10.0.0.0/8, 192.0.2.1, 2001:db8::/32`."""
    return [_network(one) for one in _listed(text)]


def _network(text: str) -> Network:
    try:
        found = ip_network(text)
    except ValueError as error:
        raise ValueError(f"'{text}' is not a network like 10.0.0.0/8: {error}") from error
    if isinstance(found, IPv6Network) and found.subnet_of(_MAPPED):
        # Peers with IPv4-mapped addresses are matched by their IPv4 address.
        plain = f"{found.network_address.ipv4_mapped}/{found.prefixlen - _MAPPED.prefixlen}"
        raise ValueError(f"'{text}' is an IPv4-mapped network: write {plain}")
    return found


def callback_networks(text: str) -> list[Network]:
    """Parses networks; loopback is refused."""
    found = networks(text)
    for one in found:
        if one.is_loopback:
            raise ValueError(f"'{one}' is loopback, which only `dev` allows")
    return found


def nat64_prefixes(text: str) -> list[IPv6Network]:
    """Parses NAT64 prefixes, `2001:db8:64::/96`, of the lengths in RFC 6052."""
    found = networks(text)
    for one in found:
        if not isinstance(one, IPv6Network) or one.prefixlen not in NAT64_LENGTHS:
            raise ValueError(f"'{one}' is not an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits")
    return [one for one in found if isinstance(one, IPv6Network)]


def ports(text: str) -> frozenset[int] | None:
    """Parses ports, `80, 443, 8080`; returns None for `any`."""
    if text.strip() == ANY:
        return None
    found = frozenset(map(_port, _listed(text)))
    if not found:
        raise ValueError(f"'{text}' names no port; `{ANY}` allows all")
    return found


def _port(text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_PORT))
    if not is_number or not 1 <= int(text) <= MAX_PORT:
        raise ValueError(f"'{text}' is not a port from 1 to {MAX_PORT}")
    return int(text)


def name_servers(text: str) -> list[str]:
    """Parses `192.0.2.53, 192.0.2.54:5353, [2001:db8::53]:53`; returns each with its port."""
    return [_name_server(one) for one in _listed(text)]


def _name_server(text: str) -> str:
    match = _SERVER.fullmatch(text)
    try:
        address = ip_address(match[1] or match[2] if match else text)
    except ValueError as error:
        raise ValueError(
            f"'{text}' is not an address like 192.0.2.53 or [2001:db8::53]:53"
        ) from error
    port = _port(match[3]) if match and match[3] else DNS_PORT
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def origins(text: str, *, takes_null: bool = False) -> list[str]:
    """Parses origins: `https://app.example.org, http://localhost:3000`, or `*` for any; `null` is
    the origin of pages in files."""
    found = _listed(text)
    for one in found:
        if one != "*" and not (takes_null and one == "null") and not _ORIGIN.fullmatch(one):
            raise ValueError(f"'{one}' is neither an origin like https://app.example.org nor *")
    return found


def hosts(value: str | Mapping[str, HostFiles]) -> dict[str, HostFiles]:
    """Parses `one.example.org=one.pem:one.key,*.example.net=net.pem:net.key`, or the table of the
    configuration file."""
    found = list(value.items()) if isinstance(value, Mapping) else list(map(_host, _listed(value)))
    _refuse_repeated([name.lower() for name, _ in found])
    for name, files in found:
        if not _HOST.fullmatch(name):
            raise ValueError(f"'{name}' is not a host name")
        if not files.cert or not files.key:
            raise ValueError(f"'{name}' needs a certificate and its key")
    return dict(found)


def _refuse_repeated(names: list[str]) -> None:
    """Raises `ValueError` for a repeated name; `names` are in lower case."""
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise ValueError(f"'{repeated}' is given twice")


def _host(text: str) -> tuple[str, HostFiles]:
    name, equals, files = text.partition("=")
    cert, colon, key = files.partition(":")
    if not equals or not colon:
        raise ValueError(f"'{text}' is not of the form HOST=CERT:KEY")
    return name, HostFiles(cert, key)


def _listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]
