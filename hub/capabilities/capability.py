"""A capability: what its URL permits, without the secret in it."""

from __future__ import annotations

from dataclasses import dataclass

from ..requests import Resource


@dataclass(frozen=True, slots=True)
class Capability:
    """`made_at` and `expires_at` are wall time in seconds."""

    id: str
    digest: str
    """SHA-256 of the secret, in hex: a copy of the database posts nothing."""
    resource: Resource
    owner: str
    """Whose right to write it stands on."""
    made_at: float
    expires_at: float | None = None
    """None for one that lasts until it is revoked."""
    routing_key: str | None = None
    """The only key that it publishes with; None leaves `hub.topic` to each request."""
    note: str = ""

    def is_over(self, now_s: float) -> bool:
        return self.expires_at is not None and self.expires_at <= now_s
