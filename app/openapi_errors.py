"""The refusals that operations share, for `/openapi.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .problems import MEDIA_TYPE

Schema = dict[str, Any]
_JSON: Final = "application/json"
_RABBIT: Final = {_JSON: {"schema": {"$ref": "#/components/schemas/RabbitError"}}}
_PROBLEM: Final = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
_KINDS: Final[Mapping[str, Schema]] = {
    "Management": _RABBIT,
    "Problem": _PROBLEM,
    "Hub": {"text/plain": {}, **_PROBLEM},
}
"""WebSub's errors are plain text unless JSON is asked for. Browsers get a page of each."""
_STATUSES: Final[Mapping[str, str]] = {
    "400": "A parameter or the body can't be used: the reason names it, its value and the limit.",
    "401": "Without credentials, or with wrong ones.",
    "403": "The user may not do this, or a page of another site asks for it.",
    "404": "What the path names does not exist.",
    "4XX": "Refused: the reason says why.",
    "5XX": "Not possible now, such as while memory or disk are short: nothing was done.",
}


def shared_refusals() -> Schema:
    """Returns all of them, by name."""
    return {
        kind + status: {"description": text, "content": {**content, "text/html": {}}}
        for kind, content in _KINDS.items()
        for status, text in _STATUSES.items()
    }


def refusals(path: str, operation: Schema) -> Schema:
    """Returns those of an operation, by status."""
    statuses = ["4XX", "5XX"]
    if operation["parameters"] or "requestBody" in operation:
        statuses.append("400")
    if operation.get("security") != []:
        statuses += ["401", "403"]
    if "{" in path:
        statuses.append("404")
    kind = _kind(path)
    return {one: {"$ref": f"#/components/responses/{kind}{one}"} for one in sorted(statuses)}


def _kind(path: str) -> str:
    if path == "/hub":
        return "Hub"
    is_rabbit = path.startswith("/api/") and not path.startswith(("/api/hub/", "/api/warren/"))
    return "Management" if is_rabbit else "Problem"
