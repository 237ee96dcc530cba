"""What one place of a document says, before the URLs in it are resolved."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Found:
    """References as they stand there, each with the base that it is relative to ("" for the
    document's own)."""

    hubs: list[tuple[str, str]] = field(default_factory=list)
    selves: list[tuple[str, str]] = field(default_factory=list)

    def add(self, relations: str, reference: str, base: str = "") -> None:
        """`relations` are the words of a `rel` (RFC 8288 3.3)."""
        words = relations.lower().split()
        if "hub" in words:
            self.hubs.append((base, reference))
        if "self" in words:
            self.selves.append((base, reference))
