"""The public IP addresses, by a list of networks that are not public.

`ipaddress.is_global` is not enough: it accepts 64:ff9b::/96 and 2002::/16, which contain IPv4
addresses, fec0::/10 and multicast.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_REFUSED_V4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
            "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
            "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
            "224.0.0.0/4", "240.0.0.0/4",
        ),
    )
)  # fmt: skip

_UNICAST_V6 = IPv6Network("2000::/3")
"""All others are refused: ::, ::1, ::ffff:0:0/96, 64:ff9b::/96, fc00::/7, ff00::/8..."""

_REFUSED_V6 = tuple(
    map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))
)  # fmt: skip


def parse_address(text: str) -> Address:
    """Returns the address, an IPv4-mapped one as IPv4. Raises `ValueError`."""
    address = ip_address(text)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def is_public(address: Address) -> bool:
    """Returns whether the address is in no refused network."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    return address in _UNICAST_V6 and not any(address in network for network in _REFUSED_V6)


def embedded(address: Address, prefixes: Iterable[IPv6Network]) -> IPv4Address | None:
    """Returns the address that a NAT64 with one of the prefixes translates it to (RFC 6052 2.2)."""
    for prefix in prefixes:
        if isinstance(address, IPv6Address) and address in prefix:
            digits = address.packed[:8] + address.packed[9:]  # octet 8 is not part of it
            first = prefix.prefixlen // 8
            whole = digits[first:] if prefix.prefixlen < 96 else address.packed[12:]
            return IPv4Address(whole[:4])
    return None


def is_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)


def is_this_machine(address: Address) -> bool:
    """Returns whether one of this machine's interfaces has the address, so that it can be bound."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True
