"""Tokens with which partners read the documents of outputs that are not public.

A secret has 256 random bits, so an unsalted digest is enough to store and find it.
"""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ...core.clock import Clock
from ..errors import BadRequest
from .output import OutputKey, OutputToken

if TYPE_CHECKING:
    from .repository import OutputRepository

SECRET_BYTES = 32
MAX_NAME_BYTES = 200
TOKENS_OF_OUTPUT = 1_000


class OutputTokens:
    """All tokens, in memory and in the database."""

    def __init__(self, rows: Callable[[], Awaitable[OutputRepository]], clock: Clock) -> None:
        self._rows = rows
        self._clock = clock
        self._by_digest: dict[str, OutputToken] = {}

    async def load(self) -> None:
        """Loads what is stored."""
        for token in await (await self._rows()).tokens():
            self._by_digest[token.digest] = token

    def of(self, output: OutputKey) -> list[OutputToken]:
        """Returns the tokens of an output, the oldest first."""
        return [token for token in self._by_digest.values() if token.output == output]

    def find(self, secret: str, output: OutputKey) -> OutputToken | None:
        """Returns the token of this output with the secret, None if it is unknown or revoked."""
        token = self._by_digest.get(_digest(secret))
        return None if token is None or token.output != output else token

    async def make(self, output: OutputKey, name: str) -> tuple[OutputToken, str]:
        """Makes a token for a partner; returns it with its secret, which is not stored.

        Durable when it returns. Raises `BadRequest` and `StorageFailed`.
        """
        size, count = len(name.encode(errors="surrogatepass")), len(self.of(output))
        if not 0 < size <= MAX_NAME_BYTES or not name.isprintable():
            reason = f"is {size} bytes long, or not printable"
            raise BadRequest(reason, field="name", value=name, limit=f"1 to {MAX_NAME_BYTES} bytes")
        if count >= TOKENS_OF_OUTPUT:
            reason = f"is one too many: {output} has {count} tokens; revoke some"
            raise BadRequest(reason, field="name", value=name, limit=f"{TOKENS_OF_OUTPUT} tokens")
        secret = secrets.token_urlsafe(SECRET_BYTES)
        token = OutputToken(
            uuid.uuid4().hex, _digest(secret), output, name, self._clock.wall_s()
        )  # fmt: skip
        await (await self._rows()).add_token(token)
        self._by_digest[token.digest] = token
        return token, secret

    async def revoke(self, token: OutputToken) -> None:
        """Revokes a token, durably when it returns. After `StorageFailed` it is still valid."""
        await (await self._rows()).delete_token(token.id)
        self._by_digest.pop(token.digest, None)

    def forget(self, output: OutputKey) -> None:
        """Forgets the tokens of an output, whose rows are deleted."""
        for token in self.of(output):
            del self._by_digest[token.digest]


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()
