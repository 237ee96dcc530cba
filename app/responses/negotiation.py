"""Content negotiation by the Accept field (RFC 9110 12.5.1)."""

from __future__ import annotations

from collections.abc import Sequence


def choose(accept: str, offered: Sequence[str]) -> str | None:
    """Returns the offered type with the highest quality, or None if none is acceptable.

    Of equals the first is taken. An empty field accepts everything.
    """
    ranges = [_range(part) for part in accept.split(",") if part.strip()] or [("*/*", 1.0)]
    qualities = {kind: _quality(kind, ranges) for kind in offered}
    best = max(offered, key=lambda kind: qualities[kind])
    return best if qualities[best] > 0 else None


def names(accept: str, kind: str) -> bool:
    """Returns whether the type is accepted by name, not only by a range such as `*/*`."""
    ranges = [_range(part) for part in accept.split(",")]
    return any(found == kind and quality > 0 for found, quality in ranges)


def _range(part: str) -> tuple[str, float]:
    kind, *parameters = (field.strip().lower() for field in part.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            return kind, _number(value)
    return kind, 1.0


def _number(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0


def _quality(kind: str, ranges: list[tuple[str, float]]) -> float:
    """Returns the quality of the most specific range that covers the type."""
    for pattern in (kind, kind.partition("/")[0] + "/*", "*/*"):
        for accepted, quality in ranges:
            if accepted == pattern:
                return quality
    return 0.0
