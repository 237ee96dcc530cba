"""Requests of the hub with their answers, and the hub's replies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from multidict import CIMultiDict, MultiDict


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the hub, as received."""

    method: str
    target: str
    """Path and query as sent, from the path of the topic or callback on."""
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
        """Returns the last value of a parameter: the hub's come after the callback's own."""
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
    """A response of the hub."""

    status: int
    content_type: str
    text: str

    @property
    def is_accepted(self) -> bool:
        return 200 <= self.status < 300

    def __str__(self) -> str:
        reason = " ".join(self.text[:160].split())
        return f"{self.status} {reason}".strip()
