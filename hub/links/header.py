"""The Link field of an answer (RFC 8288)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .found import Found

_TARGET = re.compile(r"[\s,]*<([^>]*)>")
_PARAMETER = re.compile(
    r"\s*;\s*(?:(?P<name>[^\s=;,\"]+)\s*(?:=\s*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<token>[^\s;,\"]*)))?)?"
)
_ESCAPED = re.compile(r"\\(.)")


def read_link_fields(fields: Iterable[str]) -> Found:
    """Links with another `anchor` are about another resource, and left out."""
    found = Found()
    for text in fields:
        _read_field(text, found)
    return found


def _read_field(text: str, found: Found) -> None:
    """What can't be read ends the field; what stood before it counts."""
    position = 0
    while target := _TARGET.match(text, position):
        parameters, position = _read_parameters(text, target.end())
        if "anchor" not in parameters:
            found.add(parameters.get("rel", ""), target[1].strip())


def _read_parameters(text: str, position: int) -> tuple[dict[str, str], int]:
    """The first of a name counts (RFC 8288 3.3)."""
    parameters: dict[str, str] = {}
    while one := _PARAMETER.match(text, position):
        position = one.end()
        if one["name"] is not None:
            quoted = one["quoted"]
            value = (one["token"] or "") if quoted is None else _ESCAPED.sub(r"\1", quoted)
            parameters.setdefault(one["name"].lower(), value)
    return parameters, position
