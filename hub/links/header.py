"""The links in Link fields (RFC 8288)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .found import FoundLinks

_TARGET = re.compile(r"[\s,]*<([^>]*)>")
_PARAMETER = re.compile(
    r"\s*;\s*(?:(?P<name>[^\s=;,\"]+)\s*(?:=\s*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<token>[^\s;,\"]*)))?)?"
)
_ESCAPED = re.compile(r"\\(.)")


def read_link_fields(fields: Iterable[str]) -> FoundLinks:
    """Returns the links; those with an `anchor` are left out, as they concern another resource."""
    found = FoundLinks()
    for text in fields:
        _read_field(text, found)
    return found


def _read_field(text: str, found: FoundLinks) -> None:
    """Adds the links of a field, up to any fault."""
    position = 0
    while target := _TARGET.match(text, position):
        parameters, position = _read_parameters(text, target.end())
        if "anchor" not in parameters:
            found.add(
                parameters.get("rel", ""),
                target[1].strip(),
                media_type=parameters.get("type", ""),
                title=parameters.get("title", ""),
            )


def _read_parameters(text: str, position: int) -> tuple[dict[str, str], int]:
    """Returns the parameters and the position after them; of equal names the first counts."""
    parameters: dict[str, str] = {}
    while one := _PARAMETER.match(text, position):
        position = one.end()
        if one["name"] is not None:
            quoted = one["quoted"]
            value = (one["token"] or "") if quoted is None else _ESCAPED.sub(r"\1", quoted)
            parameters.setdefault(one["name"].lower(), value)
    return parameters, position
