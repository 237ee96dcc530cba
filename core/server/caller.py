"""Who is at the other end of a connection, as far as can be known and believed."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple

from ..auth import behind
from ..wire.proxy import Relayed
from .certificate_name import CertificateName

Network = IPv4Network | IPv6Network


class Caller(NamedTuple):
    """`name` is for people; `loopback` says that it is a program on this very machine."""

    name: str
    address: str
    """What its failed logins are counted by."""
    loopback: bool
    certified: str | None = None
    """The user's name in its certificate, if it has one that was verified."""
    private: bool = True
    """Nobody on the way reads what it sends: it is here, speaks TLS, or comes by a listed proxy."""


def caller_of(
    transport: asyncio.BaseTransport, relayed: Relayed | None, certificate_name: CertificateName
) -> Caller:
    """Takes what the proxy said, for a connection that one passes on, and else the socket's word.

    Loopback are those for whom both say so: the own machine of a proxy that is elsewhere is not
    this one, and of whom the proxy knows nothing may be anybody.
    """
    here = transport.get_extra_info("sockname") or ("", 0)
    there = transport.get_extra_info("peername") or ("", 0)
    peer = str(there[0])
    address, loopback = peer, is_loopback(peer)
    if relayed is not None:
        loopback = loopback and relayed.client is not None and is_loopback(relayed.client[0])
        address = _counted(peer, relayed)
        here, there = relayed.server or here, relayed.client or there
    return Caller(
        f"{there[0]}:{there[1]} -> {here[0]}:{here[1]}",
        address,
        loopback,
        _certified(transport, certificate_name),
        relayed is not None
        or is_loopback(peer)
        or transport.get_extra_info("ssl_object") is not None,
    )


def _counted(proxy: str, relayed: Relayed) -> str:
    """The client's address, but that of the proxy for those who have none that tells them from
    the programs of this machine."""
    if relayed.client is None or (is_loopback(relayed.client[0]) and not is_loopback(proxy)):
        return behind(proxy)
    return relayed.client[0]


def _certified(transport: asyncio.BaseTransport, certificate_name: CertificateName) -> str | None:
    handshake = transport.get_extra_info("ssl_object")
    certificate = None if handshake is None else handshake.getpeercert()
    return certificate_name(certificate) if certificate else None


def is_loopback(address: str) -> bool:
    parsed = parsed_address(address)
    return parsed is not None and parsed.is_loopback


def parsed_address(text: str) -> IPv4Address | IPv6Address | None:
    """None for what is no address; one of IPv4 that came by way of IPv6 is itself again."""
    try:
        parsed = ip_address(text)
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed
