"""Bounds the request that a connection is sending: head, fields, body, and framing of the body."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..problems import Problem
from ..requests.body import too_large
from .host_field import is_host

MAX_HEAD_BYTES: Final = 16 * 1024
MAX_FIELDS: Final = 100
FRAMING_PER_BODY_BYTE: Final = 8
"""A body in chunks of one byte has five. Extensions of chunks, which are ignored, may add as much
as the size of a head."""


class RequestMeter:
    """Counts what the parser reports. Each method that counts raises `Problem` past its limit."""

    def __init__(self, max_body_bytes: int) -> None:
        self.is_reading = False
        """True from the first byte of a request to the last of its body."""
        self.in_head = False
        self.body_bytes = 0
        self._max_body_bytes = max_body_bytes
        self._head_bytes = 0
        self._unparsed_head_bytes = 0
        self._fields = 0
        self._hosts = 0
        """Host fields; an invalid one counts twice."""
        self._framing_bytes = 0
        """Sizes, extensions and ends of the chunks of a body, and its trailer."""
        self._body_bytes_at_check = 0

    @property
    def in_body(self) -> bool:
        return self.is_reading and not self.in_head

    def begin(self) -> None:
        self.is_reading = self.in_head = True
        self._head_bytes = self._unparsed_head_bytes = self._fields = self._hosts = 0

    def begin_body(self) -> None:
        self.in_head = False
        self.body_bytes = self._body_bytes_at_check = self._framing_bytes = 0

    def end(self) -> None:
        self.is_reading = False

    def count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD_BYTES:
            raise _head_too_large()

    def count_field(self, name: bytes, value: bytes) -> None:
        """Counts a field of the head or of a trailer."""
        self._fields += 1
        self.count_head(len(name) + len(value) + 4)
        if self._fields > MAX_FIELDS:
            raise Problem(431, f"the head has more than {MAX_FIELDS} fields")
        if self.in_head and len(name) == 4 and name.lower() == b"host":
            self._hosts += 1 if is_host(value) else 2

    def count_unparsed_head(self, size: int) -> None:
        """Counts bytes of a head whose fields the parser has not reported yet."""
        self._unparsed_head_bytes += size
        if self._unparsed_head_bytes > MAX_HEAD_BYTES:
            raise _head_too_large()

    def check_head(self, version: str, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raises `Problem` for a complete head that is not served; field names are lower case."""
        if version not in ("1.1", "1.0"):
            raise Problem(400, f"HTTP/{version} is not supported")
        if self._hosts != 1 and not (version == "1.0" and self._hosts == 0):
            raise Problem(400, "the head must have exactly one Host field, with a host")
        for name, value in headers:
            if name == b"content-length" and int(value) > self._max_body_bytes:
                raise too_large(self._max_body_bytes)
            if name == b"transfer-encoding" and (version == "1.0" or value.lower() != b"chunked"):
                raise Problem(400, "the only transfer encoding is chunked, in HTTP/1.1")

    def count_body(self, size: int) -> None:
        self.body_bytes += size
        if self.body_bytes > self._max_body_bytes:
            raise too_large(self._max_body_bytes)

    def count_framing(self, size: int) -> None:
        self._framing_bytes += size
        if self._framing_bytes > MAX_HEAD_BYTES + FRAMING_PER_BODY_BYTE * self.body_bytes:
            counts = (
                f"around {self.body_bytes} bytes of the body are {self._framing_bytes} of chunks"
            )
            raise Problem(400, f"{counts}: the chunk extensions are too long")

    def take_progress(self) -> int:
        """Returns how many bytes of the body have come since the last call."""
        progress = self.body_bytes - self._body_bytes_at_check
        self._body_bytes_at_check = self.body_bytes
        return progress


def _head_too_large() -> Problem:
    return Problem(431, f"the head has more than {MAX_HEAD_BYTES} bytes")
