"""A strict JSON parser for request bodies: it refuses whatever parsers interpret differently."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from ..problems import Problem

MAX_DEPTH = 128
"""As many levels as a table of AMQP may have."""
MAX_INTEGER_DIGITS = 20
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)
# The last quote is optional, so that an unfinished string is read once, not from every quote in it.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def loads(body: bytes) -> Any:
    """Parses JSON.

    Raises `Problem` 400 for bad JSON, duplicate keys, NaN, unpaired surrogates, too long integers
    and too deep nesting.
    """
    try:
        _check_depth(body)
        found = json.loads(
            body.decode(),
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_int=_integer,
        )
        if _SURROGATE.search(body):
            _check_text(found)
        return found
    except ValueError as error:
        raise Problem(400, f"the body is not JSON: {error}") from error


def _check_text(found: Any) -> None:
    """Raises `ValueError` for unpaired surrogates, which can't be encoded as UTF-8."""
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("a string has half of a surrogate pair") from error


def _check_depth(body: bytes) -> None:
    """Raises `ValueError` for too deep nesting. Done before parsing, because the parser
    recurses."""
    depth = 0
    for match in _BRACKETS.finditer(body):
        token = match.group()
        if token in (b"[", b"{"):
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError(f"nested deeper than {MAX_DEPTH}")
        elif token in (b"]", b"}"):
            depth -= 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _integer(digits: str) -> int:
    if len(digits) > MAX_INTEGER_DIGITS:
        raise ValueError(f"a number has {len(digits)} digits, at most {MAX_INTEGER_DIGITS}")
    return int(digits)
