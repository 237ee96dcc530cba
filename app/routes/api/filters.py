"""Filters of a request, from its query or its JSON object.

Unknown ones are refused: a replay or deletion with a misspelt filter would have none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from ...problems import Problem


class Filters:
    """The filters by key. Each method raises `Problem` 400 naming the key, and returns None for one
    that is absent."""

    def __init__(self, found: Mapping[str, Any], known: Collection[str]) -> None:
        unknown = next((key for key in found if key not in known), None)
        if unknown is not None:
            raise Problem(400, f"unknown filter '{unknown[:80]}'; known: {', '.join(known)}")
        self._found = {key: value for key, value in found.items() if value is not None}

    def __bool__(self) -> bool:
        return bool(self._found)

    def text(self, key: str) -> str | None:
        found = self._found.get(key)
        if found is not None and not isinstance(found, str):
            raise _wrong(key, found, "a string")
        return found

    def word(self, key: str, words: Collection[str]) -> str | None:
        found = self._found.get(key)
        if found is not None and found not in words:
            raise _wrong(key, found, f"one of {', '.join(words)}")
        return found

    def names(self, key: str) -> frozenset[str] | None:
        found = self._found.get(key)
        if found is None:
            return None
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise _wrong(key, found, "a list of strings")
        return frozenset(found)

    def number(self, key: str, low: int, high: int) -> int | None:
        found = self._found.get(key)
        if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) <= 20:
            found = int(found)
        if found is not None and (type(found) is not int or not low <= found <= high):
            raise _wrong(key, found, f"a number from {low} to {high}")
        return found

    def seconds(self, key: str) -> float | None:
        found = self._found.get(key)
        if found is None:
            return None
        try:
            value = float(found) if isinstance(found, (str, int, float)) else -1.0
        except (ValueError, OverflowError):
            value = -1.0
        if isinstance(found, bool) or not math.isfinite(value) or value < 0:
            raise _wrong(key, found, "a number of seconds")
        return value


def _wrong(key: str, found: Any, wanted: str) -> Problem:
    return Problem(400, f"'{key}' is {repr(found)[:80]}, it has to be {wanted}")
