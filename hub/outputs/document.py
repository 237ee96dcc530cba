"""A rendered document: the same bytes for everybody, but for the address of this hub and the token
of who reads it."""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from email.utils import formatdate, parsedate_to_datetime
from secrets import token_hex
from typing import Final

BASE_URL: Final = f"http://{token_hex(16)}.invalid"
"""Stands for the base URL while a document is rendered (RFC 6761 reserves `invalid`). It is random,
so that no item has it."""
TOKEN: Final = f"token={token_hex(16)}"
"""Stands for a reader's token, as the last parameter of a URL."""
_SEPARATORS: Final = (b"&amp;", b"&", b"?")
BASES_KEPT: Final = 4
"""For how many base URLs the bytes of a document are kept: Host fields are the clients'."""


class RenderedDocument:
    """The bytes of one document, by the base URL under which the hub is reached.

    `until_s` is the wall time at which one of its items gets too old for it.

    `changed_at` is wall time in seconds and `last_modified` the same as a header, `next_before` the
    number at which older items begin, None without any.
    """

    __slots__ = (
        "_bodies", "_chunks", "changed_at", "etag", "last_modified", "next_before", "size_bytes",
        "until_s",
    )  # fmt: skip

    def __init__(
        self,
        body: bytes,
        changed_at: float,
        next_before: int | None,
        until_s: float = math.inf,
    ) -> None:
        self.until_s = until_s
        self._chunks = body.split(TOKEN.encode())
        self._bodies: OrderedDict[str, bytes] = OrderedDict()
        self.changed_at = float(int(changed_at))
        self.last_modified = formatdate(self.changed_at, usegmt=True)
        self.next_before = next_before
        own = body.replace(BASE_URL.encode(), b"").replace(TOKEN.encode(), b"")
        self.etag = f'"{hashlib.sha256(own).hexdigest()[:32]}"'
        self.size_bytes = len(body) * (1 + BASES_KEPT)

    def body(self, base_url: str, token: str = "") -> bytes:
        """Returns the document with links below this URL; with the token, its own links have it."""
        if token:
            body = f"token={token}".encode().join(self._chunks)
            return body.replace(BASE_URL.encode(), base_url.encode())
        found = self._bodies.get(base_url)
        if found is None:
            *chunks, last = self._chunks
            body = b"".join([*map(_without_separator, chunks), last])
            found = self._bodies[base_url] = body.replace(BASE_URL.encode(), base_url.encode())
            if len(self._bodies) > BASES_KEPT:
                self._bodies.popitem(last=False)
        return found

    def is_known(self, if_none_match: str | None, if_modified_since: str | None) -> bool:
        """Returns whether the client has this version (RFC 9110 13.2.2)."""
        if if_none_match is not None:
            given = {part.strip().removeprefix("W/") for part in if_none_match.split(",")}
            return bool(given & {"*", self.etag})
        if if_modified_since is None:
            return False
        try:
            return parsedate_to_datetime(if_modified_since).timestamp() >= self.changed_at
        except (ValueError, OverflowError):
            return False


def _without_separator(chunk: bytes) -> bytes:
    """Returns the text without what stands before a parameter, as each format writes it."""
    end = next(one for one in _SEPARATORS if chunk.endswith(one))
    return chunk[: -len(end)]
