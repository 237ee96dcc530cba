"""The request of an attempt as it is stored: without credentials, and with a bounded body."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

import msgspec

REDACTED: Final = "redacted"
_CREDENTIALS: Final = frozenset(("authorization", "proxy-authorization", "cookie"))


class KeptRequest(msgspec.Struct, frozen=True):
    """The stored request of an attempt. `body` is the beginning of the body, `size` that of all of
    it in bytes."""

    url: str
    headers: dict[str, str]
    body: bytes
    size: int

    @property
    def is_whole(self) -> bool:
        return len(self.body) == self.size


def bounded_request(
    url: str, headers: Mapping[str, str], body: bytes, max_bytes: int
) -> KeptRequest:
    """Returns what is kept of a request."""
    shown = {
        name: REDACTED if name.lower() in _CREDENTIALS else value for name, value in headers.items()
    }
    return KeptRequest(url, shown, body[:max_bytes], len(body))


def pack(request: KeptRequest) -> str:
    """Returns the request as a text."""
    return base64.b64encode(_encode(request)).decode()


def unpack(text: str) -> KeptRequest:
    return _decode(base64.b64decode(text))


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(KeptRequest).decode
