"""The head of a request: request line and header fields (RFC 9112 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .port import SendError

USER_AGENT: Final = "Warren"
_DEFAULTS: Final = {"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": "identity"}


class HeadWriter:
    """Writes heads; values of fields are written in `encoding`."""

    def __init__(self, encoding: str, *, is_closing: bool) -> None:
        self._encoding = encoding
        self._closing = "Connection: close\r\n" if is_closing else ""

    def write(
        self, method: str, host: str, path: str, headers: Mapping[str, str], length: int
    ) -> bytes:
        """Returns the head of a request with a body of `length` bytes. Raises `SendError`."""
        fields = self._closing + _fields({**_DEFAULTS, **headers})
        if length or method == "POST":
            fields += f"Content-Length: {length}\r\n"
        head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"
        try:
            return head.encode(self._encoding, "surrogateescape")
        except UnicodeEncodeError as error:
            raise SendError(f"a header field can't be sent as {self._encoding}") from error


def _fields(headers: Mapping[str, str]) -> str:
    """Returns the fields. Raises `SendError` for a value that would end its line."""
    fields = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if fields.count("\n") != len(headers) or fields.count("\r") != len(headers) or "\0" in fields:
        raise SendError("a header field has a line end")
    return fields
