"""Requests of the hub, and how they are answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from multidict import CIMultiDict, MultiDict


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came."""

    method: str
    target: str
    """Path and query as sent, from the part on that belongs to the topic or callback."""
    query: MultiDict[str]
    """Decoded."""
    headers: CIMultiDict[str]
    body: bytes
    at_s: float
    """When it was complete, monotonic."""

    @property
    def challenge(self) -> bytes:
        return (self.last("hub.challenge") or "").encode()

    def last(self, name: str) -> str | None:
        """What the hub appended stands behind what the callback's own query says."""
        values = self.query.getall(name, [])
        return values[-1] if values else None


@dataclass(frozen=True, slots=True)
class Answer:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    drop: bool = False
    """Whether to close the connection without an answer."""

    def __str__(self) -> str:
        return "connection closed" if self.drop else str(self.status)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the hub answered."""

    status: int
    content_type: str
    text: str

    @property
    def is_accepted(self) -> bool:
        return 200 <= self.status < 300

    def __str__(self) -> str:
        reason = " ".join(self.text[:160].split())
        return f"{self.status} {reason}".strip()
