"""Names of parameters: a typing error must not become a default in silence.

The prefixes `hub.` and `amqp.` are this program's; every other parameter is the client's own, and
is ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from .problems import Problem
from .suggestions import COMPARED_CHARACTERS, suggestion

PREFIXES = ("hub.", "amqp.")
_TYPO_RATIO = 0.8
"""Of letters in common behind the prefix: `secrt` is `secret`, `foo` is somebody's extension."""
_MAX_COMPARED = 10
"""Unknown names of one request, for each is compared with every known one."""


def refuse_unknown(names: Iterable[str], known: Collection[str]) -> None:
    """Raises `Problem` 400 for the first name of ours that is not known."""
    for name in _unknown(names, known):
        raise unknown_parameter(name, known)


def refuse_misspelt(names: Iterable[str], known: Collection[str]) -> None:
    """Raises `Problem` 400 for a name that is almost a known one. Where a standard asks that
    unknown parameters be ignored (WebSub 5.1), others may have theirs."""
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
