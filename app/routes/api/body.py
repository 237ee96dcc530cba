"""The JSON object of a request. RabbitMQ's own tool writes numbers and booleans as strings too.

Keys that nobody asks for are ignored, as RabbitMQ does: clients send back what they have read.
"""

from __future__ import annotations

import re
from typing import Any

from ...problems import Problem
from ...strict_json import loads

MAX_BYTES = 1024 * 1024
_INTEGER = re.compile(r"-?[0-9]{1,20}")


class Body:
    """Each method raises `Problem` 400 naming the key."""

    def __init__(self, raw: bytes) -> None:
        found = loads(raw) if raw else {}
        if not isinstance(found, dict):
            raise Problem(400, "the body has to be a JSON object")
        self._found: dict[str, Any] = found

    def __contains__(self, key: str) -> bool:
        return key in self._found

    def has(self, key: str) -> bool:
        """Whether it is given; null is as absent."""
        return self._found.get(key) is not None

    def everything(self) -> dict[str, Any]:
        """All keys, for a part that reads them by itself."""
        return self._found

    def inner(self, key: str) -> Body:
        """The object in it."""
        found = Body(b"")
        found._found = self.table(key)
        return found

    def is_false(self, key: str) -> bool:
        return self._found.get(key) is False

    def text(self, key: str) -> str:
        found = self._required(key)
        if not isinstance(found, str):
            raise _wrong(key, found, "a string")
        return found

    def integer(self, key: str, default: int | None = None) -> int:
        found = self._found.get(key, default)
        if found is None:
            found = self._required(key)
        if isinstance(found, str) and _INTEGER.fullmatch(found):
            return int(found)
        if isinstance(found, bool) or not isinstance(found, int):
            raise _wrong(key, found, "a whole number")
        return found

    def flag(self, key: str, default: bool = False) -> bool:
        found = self._found.get(key, default)
        if found in ("true", "false"):
            return bool(found == "true")
        if not isinstance(found, bool):
            raise _wrong(key, found, "true or false")
        return found

    def table(self, key: str) -> dict[str, Any]:
        found = self._required(key)
        if not isinstance(found, dict):
            raise _wrong(key, found, "an object")
        return found

    def names(self, key: str) -> list[str]:
        """A list of strings, or one with commas."""
        found = self._required(key)
        if isinstance(found, str):
            found = found.split(",")
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise _wrong(key, found, "a list of strings")
        return [name.strip() for name in found if name.strip()]

    def _required(self, key: str) -> Any:
        if key not in self._found:
            raise Problem(400, f"the body needs the key '{key}'")
        return self._found[key]


def _wrong(key: str, found: Any, wanted: str) -> Problem:
    shown = repr(found)
    if len(shown) > 80:
        shown = shown[:80] + ".."
    return Problem(400, f"key '{key}' has to be {wanted}, not {shown}")
