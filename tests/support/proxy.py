"""Headers as proxies write them in front of the connections that they pass on."""

from __future__ import annotations

import socket

V2_START = b"\r\n\r\n\0\r\nQUIT\n"
LOCAL = V2_START + b"\x20\x00\x00\x00"

Endpoint = tuple[str, int]


def v1(line: str) -> bytes:
    return f"PROXY {line}\r\n".encode()


def v2(addresses: tuple[Endpoint | None, Endpoint | None], fields: bytes = b"") -> bytes:
    """For a client and a server with addresses of one family; `fields` stand behind them."""
    client, server = addresses
    assert client is not None and server is not None
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    packed = b"".join(socket.inet_pton(family, host) for host, _ in (client, server))
    ports = b"".join(port.to_bytes(2, "big") for _, port in (client, server))
    payload = packed + ports + fields
    kind = b"\x21\x21" if family == socket.AF_INET6 else b"\x21\x11"
    return V2_START + kind + len(payload).to_bytes(2, "big") + payload
