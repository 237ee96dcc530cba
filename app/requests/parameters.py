"""Refuses unknown request parameters, so that a misspelt one is not silently ignored.

The prefixes `hub.` and `amqp.` are reserved for Warren; parameters without them belong to the
client and are ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..problems import Problem
from ..suggestions import COMPARED_CHARACTERS, suggestion

PREFIXES = ("hub.", "amqp.")
_TYPO_RATIO = 0.8
"""Similarity behind the prefix from which a name counts as misspelt: `secrt` is taken for
`secret`, `foo` for an extension."""
_MAX_COMPARED = 10
"""Unknown names that are compared per request, each with every known name."""


def refuse_unknown(names: Iterable[str], known: Collection[str]) -> None:
    """Raises `Problem` 400 for the first unknown name with a reserved prefix."""
    for name in _unknown(names, known):
        raise unknown_parameter(name, known)


def refuse_misspelt(names: Iterable[str], known: Collection[str]) -> None:
    """Raises `Problem` 400 for a name that is close to a known one. Other unknown names are
    ignored, as WebSub 5.1 requires."""
    from difflib import get_close_matches  # late, as in `suggestions`

    known_ends = [_end(name) for name in known]
    for name in _unknown(names, known)[:_MAX_COMPARED]:
        if get_close_matches(_end(name), known_ends, n=1, cutoff=_TYPO_RATIO):
            raise unknown_parameter(name, known)


def unknown_parameter(name: str, known: Iterable[str]) -> Problem:
    return Problem(400, f"unknown parameter {name[:COMPARED_CHARACTERS]}{suggestion(name, known)}")


def _unknown(names: Iterable[str], known: Collection[str]) -> list[str]:
    return [name for name in names if name.startswith(PREFIXES) and name not in known]


def _end(name: str) -> str:
    return name.partition(".")[2][:COMPARED_CHARACTERS]
