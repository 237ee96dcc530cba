"""The response of the HTTP listener to a request that it refuses."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from ..problems import MEDIA_TYPE, Problem

LINGER_S: Final = 5.0
"""How long the connection stays open for reading after the response."""
MAX_DISCARDED_BYTES: Final = 64 * 1024 * 1024


class ErrorResponse:
    """A response that is written after those to earlier requests, before the connection closes.

    What the client sends after it is discarded: closing with unread bytes would reset the
    connection and could destroy the response.
    """

    def __init__(self, problem: Problem, default_headers: list[tuple[bytes, bytes]]) -> None:
        self.status = problem.status
        self.body = problem.body()
        self._problem = problem
        self._default_headers = default_headers
        self._discarded_bytes = 0

    def discard(self, size: int) -> bool:
        """Counts discarded bytes; returns whether more may come."""
        self._discarded_bytes += size
        return self._discarded_bytes <= MAX_DISCARDED_BYTES

    def response(self) -> bytes:
        """Returns the HTTP response."""
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}".encode()]
        lines += [name + b": " + value for name, value in self._default_headers]
        lines += [f"{name}: {value}".encode() for name, value in self._problem.headers.items()]
        lines += [
            b"content-type: " + MEDIA_TYPE.encode(),
            b"content-length: " + str(len(self.body)).encode(),
            b"connection: close",
        ]
        return b"\r\n".join(lines) + b"\r\n\r\n" + self.body
