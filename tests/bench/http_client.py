"""A persistent HTTP/1.1 connection that writes ready-made requests and reads short answers."""

from __future__ import annotations

import base64
import re
import socket
import time

from .client import Address, BenchError

TIMEOUT_S = 10.0
READ_BYTES = 1 << 16
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def basic(address: Address) -> str:
    """The value of the field Authorization."""
    token = base64.b64encode(f"{address.user}:{address.password}".encode()).decode()
    return f"Basic {token}"


def request(
    address: Address, method: str, target: str, body: bytes = b"", content_type: str = "text/plain"
) -> bytes:
    """A whole request with credentials."""
    head = (
        f"{method} {target} HTTP/1.1\r\nHost: {address.host}:{address.port}\r\n"
        f"Authorization: {basic(address)}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class HttpConnection:
    """One request at a time; an answer other than `wanted` is a `BenchError`."""

    def __init__(self, address: Address) -> None:
        self.socket = socket.create_connection(address[:2], timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._data = b""
        self.body = b""
        """Of the last answer."""

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self, wanted: int) -> bool:
        """Reads once; returns whether the response is complete."""
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise BenchError("the server closed a persistent connection")
        self._data += data
        head, separator, body = self._data.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not separator or len(body) < (int(length[1]) if length else 0):
            return False
        if int(self._data[9:12]) != wanted:
            raise BenchError(f"wanted {wanted}: {self._data[:400].decode(errors='replace')}")
        self._data, self.body = b"", body
        return True

    def ask(self, data: bytes, wanted: int) -> float:
        """Sends, waits for the whole answer, and gives the seconds that took."""
        start = time.monotonic()
        self.send(data)
        while not self.receive(wanted):
            pass
        return time.monotonic() - start

    def close(self) -> None:
        self.socket.close()
