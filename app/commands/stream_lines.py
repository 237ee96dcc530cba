"""Reads an exchange or a stream as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator

from .exit_codes import reason_of
from .login import Login
from .stream_connection import LOST, ConnectionLost, Message, open_stream


class StreamLines:
    """One connection; implements `Reading`."""

    def __init__(self, login: Login, target: str) -> None:
        """Raises as `open_stream`."""
        headers = {"Accept": "application/x-ndjson"}
        self._connection, self._response = open_stream(login, target, headers)

    def items(self) -> Iterator[Message]:
        try:
            while line := self._response.readline():
                if line.strip():
                    yield json.loads(line)
        except LOST as error:
            raise ConnectionLost(reason_of(error)) from error

    def settle(self, message: Message, *, is_done: bool) -> None:
        """Does nothing: others read the message too, and a cursor says how far this reader is."""

    def close(self) -> None:
        self._connection.close()
