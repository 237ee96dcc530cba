"""What a standby tells the active hub of a request that it passes on: whose it is.

It is one header field, signed with the key that both have, since an address can be anybody's.
"""

from __future__ import annotations

import hmac
import time
from pathlib import Path
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from ...hub.keys.key_file import load_key
from ..access.local_requests import peer_of
from ..problems import Problem
from ..responses.error_pages import answer_problem

FIELD: Final = b"x-warren-hop"
MAX_AGE_S: Final = 60
_PARTS: Final = 4
_SIGNED: Final = frozenset((b"host", b"authorization", b"cookie"))
"""Fields that are signed: what was read on the way is of no use with another login."""


class Hops:
    """Signs the field, and reads it."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file
        self._key = b""

    def sign(self, scope: Scope) -> bytes:
        """Returns the field's value for a request as it came from its client, but with the header
        fields that are passed on."""
        parts = f"{int(time.time())} {peer_of(scope)} {scope['scheme']} {scope['http_version']}"
        return b"%b %b" % (parts.encode(), self._code(parts.encode(), scope))

    def reveal(self, scope: Scope) -> None:
        """Replaces what the scope says of a standby by what is true of the client. Raises `Problem`
        403 for a field that no hub with this key has written just now."""
        given = [value for name, value in scope["headers"] if name == FIELD]
        if not given:
            return
        signed, _, code = given[0].rpartition(b" ")
        parts = signed.decode("latin-1").split(" ")
        if (
            len(given) > 1
            or not hmac.compare_digest(code, self._code(signed, scope))
            or len(parts) != _PARTS
        ):
            raise Problem(403, f"{FIELD.decode()} is not signed with the key of this hub")
        signed_s, client, scheme, version = parts
        if abs(time.time() - int(signed_s)) > MAX_AGE_S:
            text = f"the clocks of this hub and its standby differ by more than {MAX_AGE_S} s"
            raise Problem(403, text)
        scope["client"] = (client, 0) if client else None
        scope["scheme"], scope["http_version"] = scheme, version
        scope["headers"] = [field for field in scope["headers"] if field[0] != FIELD]

    def _code(self, parts: bytes, scope: Scope) -> bytes:
        if not self._key:
            # Derived, because the key of stored secrets comes from the same file.
            self._key = hmac.digest(load_key(self._key_file), b"warren: hops", "sha256")
        line = (scope["method"].encode(), scope["raw_path"], scope["query_string"])
        fields = (b"%b: %b" % field for field in scope["headers"] if field[0] in _SIGNED)
        return hmac.digest(self._key, b"\n".join((parts, *line, *fields)), "sha256").hex().encode()


class FromStandbys:
    """ASGI middleware of the active hub, before everything that asks who the client is."""

    def __init__(self, application: ASGIApp, hops: Hops) -> None:
        self._application = application
        self._hops = hops

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._hops.reveal(scope)
        except Problem as problem:
            await answer_problem(problem, scope)(scope, receive, send)
        else:
            await self._application(scope, receive, send)
