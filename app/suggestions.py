"""Suggests the known name that is closest to an unknown one."""

from __future__ import annotations

from collections.abc import Callable, Iterable

COMPARED_CHARACTERS = 80
"""The comparison is quadratic in the length of the name, and clients choose the name."""


def suggestion(
    name: str, known: Iterable[str], shown: Callable[[str], str] = lambda found: found
) -> str:
    """Returns `; did you mean NAME?`, or an empty text if no known name is close."""
    from difflib import get_close_matches  # late: most servers never suggest anything

    found = get_close_matches(name[:COMPARED_CHARACTERS], list(known), n=1)
    return f"; did you mean {shown(found[0])}?" if found else ""
