"""Identifies the client of a connection: address, loopback, TLS, certificate, proxy header."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple

from ..auth import address_behind
from ..wire.proxy import Relayed
from .certificate_name import CertificateName

Network = IPv4Network | IPv6Network


class Caller(NamedTuple):
    """The client of a connection; `name` is for logs, `loopback` means on this machine."""

    name: str
    address: str
    """The address by which its failed logins are counted."""
    loopback: bool
    certified: str | None = None
    """The user name in its verified certificate, if any."""
    private: bool = True
    """Whether passwords can't be read in transit: loopback, TLS, or a listed proxy."""


def caller_of(
    transport: asyncio.BaseTransport, relayed: Relayed | None, certificate_name: CertificateName
) -> Caller:
    """Returns the client by the proxy's header, if there is one, else by the socket.

    `loopback` needs both: a loopback client of a remote proxy is on the proxy's machine, and one
    that the proxy does not name may be anywhere.
    """
    local = transport.get_extra_info("sockname") or ("", 0)
    remote = transport.get_extra_info("peername") or ("", 0)
    peer = str(remote[0])
    address, loopback = peer, is_loopback(peer)
    if relayed is not None:
        loopback = loopback and relayed.client is not None and is_loopback(relayed.client[0])
        address = _counted(peer, relayed)
        local, remote = relayed.server or local, relayed.client or remote
    return Caller(
        f"{remote[0]}:{remote[1]} -> {local[0]}:{local[1]}",
        address,
        loopback,
        _certified(transport, certificate_name),
        relayed is not None
        or is_loopback(peer)
        or transport.get_extra_info("ssl_object") is not None,
    )


def _counted(proxy: str, relayed: Relayed) -> str:
    """Returns the client's address, or a name for the proxy if it gives none, or its own."""
    if relayed.client is None or (is_loopback(relayed.client[0]) and not is_loopback(proxy)):
        return address_behind(proxy)
    return relayed.client[0]


def _certified(transport: asyncio.BaseTransport, certificate_name: CertificateName) -> str | None:
    handshake = transport.get_extra_info("ssl_object")
    certificate = None if handshake is None else handshake.getpeercert()
    return certificate_name(certificate) if certificate else None


def is_loopback(address: str) -> bool:
    parsed = parsed_address(address)
    return parsed is not None and parsed.is_loopback


def parsed_address(text: str) -> IPv4Address | IPv6Address | None:
    """Parses an address, IPv4-mapped IPv6 to IPv4; None if it is none."""
    try:
        parsed = ip_address(text)
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed
