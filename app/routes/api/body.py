"""The JSON object of a request.

Numbers and booleans may be strings, as `rabbitmqadmin` writes them. Unknown keys are ignored, as in
RabbitMQ: clients send back what they have read.
"""

from __future__ import annotations

import re
from typing import Any

from ...problems import Problem
from ...requests.strict_json import loads

MAX_BYTES = 1024 * 1024
_INTEGER = re.compile(r"-?[0-9]{1,20}")


class Body:
    """The values by key. Each method raises `Problem` 400 naming the key."""

    def __init__(self, raw: bytes) -> None:
        found = loads(raw) if raw else {}
        if not isinstance(found, dict):
            raise Problem(400, "the body has to be a JSON object")
        self._found: dict[str, Any] = found

    def __contains__(self, key: str) -> bool:
        return key in self._found

    def has(self, key: str) -> bool:
        """Returns whether the key has a value other than null."""
        return self._found.get(key) is not None

    def everything(self) -> dict[str, Any]:
        """Returns the whole object."""
        return self._found

    def inner(self, key: str) -> Body:
        """Returns the object at the key."""
        found = Body(b"")
        found._found = self.table(key)
        return found

    def is_false(self, key: str) -> bool:
        return self._found.get(key) is False

    def anything(self, key: str) -> Any:
        """Returns the value, whatever it is."""
        return self._required(key)

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
        """Returns an object; an empty list is an empty one, as old clients write it."""
        found = self._required(key)
        if found == []:
            return {}
        if not isinstance(found, dict):
            raise _wrong(key, found, "an object")
        return found

    def names(self, key: str) -> list[str]:
        """Returns a list of strings, also from one string with commas."""
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
