"""Opens `/stream` of a server, for commands that read it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from .client import encoded_fields
from .exit_codes import reason_of
from .login import Login

SILENT_S: Final = 45.0
"""Without a sign of life for so long the connection is lost: the server sends one every 15 s."""
LOST: Final = (OSError, HTTPException)
_AGAIN: Final = frozenset({408, 429})
"""Refusals that may end by themselves, besides 5xx."""

Message = dict[str, Any]


class ConnectionLost(Exception):
    """The connection broke off, or could not be made."""


class StreamRefused(Exception):
    """The server does not send a stream, or not any longer; `field` is what it objects to."""

    def __init__(self, status: int, detail: str, field: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.field = field

    @property
    def is_final(self) -> bool:
        """Whether the same request will be refused again."""
        return self.status == 501 or (self.status < 500 and self.status not in _AGAIN)


class StreamReading(Protocol):
    """What one connection brings."""

    def items(self) -> Iterator[Message]:
        """Yields messages, which have an `id`, and notices. Raises `ConnectionLost`."""

    def settle(self, message: Message, *, is_done: bool) -> None:
        """Says whether a message was handled. Raises `ConnectionLost`."""

    def close(self) -> None: ...


def connect(url: str, timeout_s: float) -> HTTPConnection:
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    return kind(parts.netloc, timeout=timeout_s)


def open_stream(
    login: Login, target: str, headers: Mapping[str, str]
) -> tuple[HTTPConnection, HTTPResponse]:
    """Returns a connection whose answer has begun. Raises `ConnectionLost`, `StreamRefused`."""
    connection = connect(login.url, SILENT_S)
    own = {"Authorization": login.authorization(), "User-Agent": "warren"}
    fields = encoded_fields({**own, **headers})
    try:
        connection.request("GET", urlsplit(login.url).path + target, headers=fields)
        response = connection.getresponse()
        if response.status in (101, 200):
            return connection, response
        refused = _refusal(response.status, response.read())
    except LOST as error:
        connection.close()
        raise ConnectionLost(reason_of(error)) from error
    connection.close()
    raise refused


def refusal_of(problem: Mapping[str, Any]) -> StreamRefused:
    """Returns the error for a problem document."""
    return StreamRefused(problem["status"], str(problem["detail"]), str(problem.get("field", "")))


def _refusal(status: int, body: bytes) -> StreamRefused:
    try:
        return refusal_of({"status": status, **json.loads(body)})
    except (ValueError, KeyError, TypeError):
        return StreamRefused(status, f"the server answered {status}")
