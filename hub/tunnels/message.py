"""Writes requests for tunnelled applications, as HTTP/1.1.

Method, target and fields are the requestor's. Those that concern one connection are dropped, and
`Forwarded` (RFC 7239) and `Via` (RFC 9110 7.6.3) are added.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final

from ..connection_fields import connection_fields
from .errors import TunnelLoop

_VIA: Final = b"1.1 warren"
_REPLACED: Final = frozenset((b"content-length", b"expect"))

Fields = Sequence[tuple[bytes, bytes]]


def write_request(
    method: str,
    target: bytes,
    fields: Fields,
    body: bytes,
    *,
    client: str,
    scheme: str,
    max_hops: int,
    own_cookies: Collection[bytes],
) -> bytes:
    """Returns the whole request; `fields` have names in lower case, `client` is an address,
    `own_cookies` are the names of this hub's cookies: its sessions are nobody else's.

    Raises `TunnelLoop` if it has passed tunnels of a Warren `max_hops` times.
    """
    lines = [method.encode("latin-1") + b" " + target + b" HTTP/1.1"]
    dropped = _REPLACED | connection_fields(fields)
    hops, host, is_framed = 0, b"", bool(body)
    for name, value in fields:
        if name == b"via":
            hops += value.count(_VIA)
        elif name == b"host":
            host = value
        elif name in (b"content-length", b"transfer-encoding"):
            is_framed = True
        elif name == b"cookie":
            value = _without(own_cookies, value)
            if not value:
                continue
        if name not in dropped:
            lines.append(_shown(name) + b": " + value)
    if hops >= max_hops:
        raise TunnelLoop("request loop detected", field="Via", limit=f"{max_hops} hops")
    lines += [b"Forwarded: " + _forwarded(client, host, scheme), b"Via: " + _VIA]
    if is_framed:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _forwarded(client: str, host: bytes, scheme: str) -> bytes:
    node = f'"[{client}]"' if ":" in client else client or "unknown"
    return b'for=%s;host="%s";proto=%s' % (node.encode(), host, scheme.encode())


def _without(names: Collection[bytes], cookies: bytes) -> bytes:
    found = (one.strip(b" ") for one in cookies.split(b";"))
    return b"; ".join(one for one in found if one.partition(b"=")[0] not in names)


@lru_cache(1024)
def _shown(name: bytes) -> bytes:
    """Returns the name as older clients expect it, such as `Content-Type`."""
    return b"-".join(part.capitalize() for part in name.split(b"-"))
