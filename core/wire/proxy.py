"""Parses PROXY headers (PROXY protocol 1 and 2), which carry a client's address.

    head = b""
    while more := missing_bytes(head):
        head += read(more)      # never more than belongs to the header
    relayed = read_header(head)

Read it only from listed proxies, where its absence is an error: any client could send an optional
header.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final, NamedTuple

from ..errors import WarrenError

V1_MAX_BYTES: Final = 107
V2_MAX_BYTES: Final = 4_096
"""Enough for every extension field in use (TLS, authority, cloud); a header may claim 64 KiB."""

_V1_START: Final = b"PROXY "
_V2_START: Final = b"\r\n\r\n\0\r\nQUIT\n"
_V2_HEAD_BYTES: Final = 16
_LINE_END: Final = b"\r\n"
_LOCAL, _PROXY = 0x20, 0x21
"""Version 2 and the command."""
_TCP4, _TCP6, _UNIX_STREAM, _UNSPECIFIED = 0x11, 0x21, 0x31, 0x00
_ADDRESS_BYTES: Final = {_TCP4: 4, _TCP6: 16}

Endpoint = tuple[str, int]


class ProxyHeaderError(WarrenError):
    """The input is no valid PROXY header."""


class Relayed(NamedTuple):
    """The addresses of a relayed connection: the client's, and the one it connected to.

    Without addresses the proxy does not know the client.
    """

    client: Endpoint | None = None
    server: Endpoint | None = None


def missing_bytes(head: bytes) -> int:
    """Returns how many octets of the header to read next, 0 if it is complete.

    Raises `ProxyHeaderError` as soon as it is invalid.
    """
    if head.startswith(_V1_START):
        if head.endswith(_LINE_END):
            return 0
        if len(head) >= V1_MAX_BYTES:
            raise ProxyHeaderError(f"a version 1 header has at most {V1_MAX_BYTES} bytes")
        return 1
    if head.startswith(_V2_START):
        return _missing_of_v2(head)
    if _V2_START.startswith(head):
        return len(_V2_START) - len(head)
    if _V1_START.startswith(head):
        return len(_V1_START) - len(head)
    raise ProxyHeaderError("PROXY header missing")


def _missing_of_v2(head: bytes) -> int:
    if len(head) < _V2_HEAD_BYTES:
        return _V2_HEAD_BYTES - len(head)
    size = _V2_HEAD_BYTES + int.from_bytes(head[14:16], "big")
    if size > V2_MAX_BYTES:
        raise ProxyHeaderError(f"a header of {size} bytes, at most {V2_MAX_BYTES}")
    return size - len(head)


def read_header(head: bytes) -> Relayed | None:
    """Parses a complete header; None for the proxy's own connection (LOCAL, a health check).

    Raises `ProxyHeaderError` for an invalid one.
    """
    if head.startswith(_V1_START):
        return _read_v1(head)
    command, family, fields = head[12], head[13], head[_V2_HEAD_BYTES:]
    if command == _LOCAL:
        return None
    if command != _PROXY:
        raise ProxyHeaderError(f"unknown version and command {command:#04x}")
    if family in (_UNSPECIFIED, _UNIX_STREAM):
        return Relayed()
    size = _ADDRESS_BYTES.get(family)
    if size is None:
        raise ProxyHeaderError(f"unknown family and protocol {family:#04x}")
    if len(fields) < 2 * size + 4:
        raise ProxyHeaderError(f"{len(fields)} bytes are too few for two addresses and ports")
    ports = fields[2 * size : 2 * size + 4]
    return Relayed(
        (_packed(fields[:size]), int.from_bytes(ports[:2], "big")),
        (_packed(fields[size : 2 * size]), int.from_bytes(ports[2:], "big")),
    )


def _read_v1(head: bytes) -> Relayed:
    """Parses `PROXY TCP4 192.0.2.1 192.0.2.2 50000 5672`, or `PROXY UNKNOWN` and anything."""
    words = head[: -len(_LINE_END)].split(b" ")
    if words[1] == b"UNKNOWN":
        return Relayed()
    if len(words) != 6 or words[1] not in (b"TCP4", b"TCP6"):
        raise ProxyHeaderError("a version 1 header has a family, two addresses and two ports")
    family = words[1].decode()
    client, server = (_address(family, word) for word in words[2:4])
    return Relayed((client, _port(words[4])), (server, _port(words[5])))


def _address(family: str, word: bytes) -> str:
    try:
        text = word.decode("ascii")
        address = IPv4Address(text) if family == "TCP4" else IPv6Address(text)
    except (AddressValueError, UnicodeDecodeError):
        raise ProxyHeaderError(f"no addresses of the family {family}") from None
    if "%" in text:
        raise ProxyHeaderError("scoped addresses are not supported")
    return str(address)


def _port(word: bytes) -> int:
    plain = word.isdigit() and (word == b"0" or not word.startswith(b"0"))
    if not plain or len(word) > 5 or int(word) > 65_535:
        raise ProxyHeaderError("no port number")
    return int(word)


def _packed(address: bytes) -> str:
    return str(IPv4Address(address) if len(address) == 4 else IPv6Address(address))
