"""Numbers as feeds write them."""

from __future__ import annotations

import re

_LONGEST_S = 1_000 * 3_600
_CLOCK = re.compile(r"(?:(\d{1,4}):)?(\d{1,4}):(\d{1,2})(?:\.\d+)?")
_SECONDS = re.compile(r"\d{1,7}(?:\.\d{1,9})?")
_DIGITS = re.compile(r"\d{1,15}")


def size_bytes(text: str) -> int | None:
    """Returns a number of digits alone, None for any other text and for 0, which means unknown."""
    text = text.strip()
    return (int(text) or None) if text.isascii() and _DIGITS.fullmatch(text) else None


def duration_s(text: str) -> float | None:
    """Returns seconds, as `90`, `1:30` or `0:01:30` say (iTunes, Media RSS); None for others."""
    text = text.strip()
    if not text.isascii():
        return None
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        found: float = hours * 3_600 + minutes * 60 + seconds
    elif _SECONDS.fullmatch(text):
        found = float(text)
    else:
        return None
    return found if 0 < found <= _LONGEST_S else None
