"""A subscription as the hub works with it; `tables.py` is how it is stored."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from .requests import Resource

OWN_QUEUE_PREFIX = "hub.sub."


class Status(StrEnum):
    """What a crash leaves behind: only `ACTIVE` rows are resumed, the others are undone."""

    PENDING = "pending"
    """Verified and stored, its queue maybe declared."""
    ACTIVE = "active"
    ENDING = "ending"
    """Over, its queue maybe still there."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """`expires_at` is wall time in seconds; `sink` is set where a token bound a resource of
    this hub instead of a callback."""

    id: str
    source: Resource
    topic: str
    callback: str
    lease_seconds: int
    expires_at: float
    owner: str
    secret: str | None = None
    sink: Resource | None = None
    status: Status = Status.PENDING

    def concerns(self, vhost: str) -> bool:
        """Whether it takes from a virtual host, or gives to one."""
        return vhost == self.source.vhost or (self.sink is not None and vhost == self.sink.vhost)

    @property
    def identity(self) -> str:
        return identity_of(self.source, self.topic, self.callback)

    @property
    def is_binding(self) -> bool:
        """Whether a binding inside the broker is all there is to it."""
        return (
            self.sink is not None
            and self.source.kind == "x"
            and self.sink.vhost == self.source.vhost
        )

    @property
    def owns_queue(self) -> bool:
        """An exchange subscription has a queue of its own; a queue's share their source."""
        return self.source.kind == "x" and not self.is_binding

    @property
    def queue(self) -> str:
        """The queue that is consumed for it."""
        return OWN_QUEUE_PREFIX + self.id if self.owns_queue else self.source.name


def identity_of(source: Resource, topic: str, callback: str) -> str:
    """Digest of what makes two subscribes the same one; callbacks are too long for an index."""
    parts = (source.vhost, source.kind, source.name, topic, callback)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()
