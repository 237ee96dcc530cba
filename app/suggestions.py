"""The known name that is most like an unknown one, for messages about typing errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches

COMPARED_CHARACTERS = 80
"""The comparison takes time by the square of the length, and strangers choose the name."""


def suggestion(
    name: str, known: Iterable[str], shown: Callable[[str], str] = lambda found: found
) -> str:
    """Returns `; did you mean NAME?`, or an empty text where nothing known is like it."""
    found = get_close_matches(name[:COMPARED_CHARACTERS], list(known), n=1)
    return f"; did you mean {shown(found[0])}?" if found else ""
