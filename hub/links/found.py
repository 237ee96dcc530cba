"""The links found in one place of a document, before they are resolved."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Alternate:
    """Another representation that a page names, as it is written."""

    base: str
    reference: str
    media_type: str
    title: str


@dataclass(slots=True)
class FoundLinks:
    """References as they are written, each with its base ("" for the document's own)."""

    hubs: list[tuple[str, str]] = field(default_factory=list)
    selves: list[tuple[str, str]] = field(default_factory=list)
    alternates: list[Alternate] = field(default_factory=list)
    """Of HTML pages and Link fields alone."""

    def add(
        self,
        relations: str,
        reference: str,
        base: str = "",
        *,
        media_type: str = "",
        title: str = "",
    ) -> None:
        """Adds a link; `relations` is the value of its `rel` (RFC 8288 3.3)."""
        words = relations.lower().split()
        if "hub" in words:
            self.hubs.append((base, reference))
        if "self" in words:
            self.selves.append((base, reference))
        if "alternate" in words:
            self.alternates.append(Alternate(base, reference, media_type, title))
