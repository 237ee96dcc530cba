"""A capability: the right to post to a resource with a secret URL."""

from __future__ import annotations

from dataclasses import dataclass

from ..requests import Resource


@dataclass(frozen=True, slots=True)
class Capability:
    """A capability, without its secret. Times are wall time in seconds."""

    id: str
    digest: str
    """SHA-256 of the secret, in hex; it is of no use for posting."""
    resource: Resource
    owner: str
    """The user whose write permission it uses."""
    made_at: float
    expires_at: float | None = None
    """None if it does not expire."""
    routing_key: str | None = None
    """The only key that it publishes with; None for `hub.topic` of each request."""
    note: str = ""

    def is_over(self, now_s: float) -> bool:
        return self.expires_at is not None and self.expires_at <= now_s
