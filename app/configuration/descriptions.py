"""Reads the declaration of a setting: the values that it accepts, its help text and heading."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Meta

from . import parsers
from .types import SECRET, SIZE, Heading

SHOWN_CHARACTERS: Final = 80
_NAMES: Final = {bool: "true or false", int: "a number", float: "a number", str: "a text"}


def help_text(kind: Any) -> str:
    """Returns the help text in the annotation of a setting."""
    return next(one for one in kind.__metadata__ if isinstance(one, str))


def heading(kind: Any) -> str:
    """Returns the heading that begins with the setting, or an empty text."""
    return next((one.text for one in kind.__metadata__ if isinstance(one, Heading)), "")


def checked(kind: Any, value: object) -> object:
    """Returns a value, a size with a unit as its number of bytes.

    Raises `ValueError` for a value that the type refuses; its text never repeats a secret.
    """
    found = value
    if SIZE in kind.__metadata__ and isinstance(value, str) and not value.isdecimal():
        found = parsers.size(value)
    try:
        msgspec.convert(found, kind, strict=False)
    except msgspec.ValidationError as error:
        expected = describe(kind) or str(error).partition(" - at ")[0]
        is_secret = SECRET in kind.__metadata__
        raise ValueError(expected if is_secret else f"{expected}; got {_quoted(value)}") from error
    return found


def describe(kind: Any) -> str:
    """Returns a short description of a type, or an empty text if there is none."""
    if get_origin(kind) in (Union, UnionType):
        return _describe_union(get_args(kind))
    if get_origin(kind) is Annotated:
        return _describe_annotated(kind)
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(get_args(kind))
    return _NAMES.get(kind, "")


def _describe_union(kinds: tuple[Any, ...]) -> str:
    words = [
        f"'{word}'" for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)
    ]
    others = [describe(kind) for kind in kinds if get_origin(kind) is not Literal]
    *before, last = [*others, *words]
    return f"{', '.join(before)} or {last}" if all(others) else ""


def _describe_annotated(kind: Any) -> str:
    base = get_args(kind)[0]
    bounds = next((one for one in kind.__metadata__ if isinstance(one, Meta)), None)
    if bounds is None:
        return describe(base)
    if bounds.description or SIZE not in kind.__metadata__:
        return bounds.description or _describe_bounds(base, bounds)
    return f"a size from {_size(bounds.ge or 0)} to {_size(bounds.le or 0)}"


def _size(size_bytes: float) -> str:
    """Returns a size with a unit of which it is a whole number."""
    for unit, unit_bytes in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= unit_bytes and size_bytes % unit_bytes == 0:
            return f"{size_bytes // unit_bytes:.0f}{unit}"
    return f"{size_bytes:.0f}B"


def _describe_bounds(base: Any, meta: Meta) -> str:
    if base is str:
        most = meta.max_length
        return f"{meta.min_length or 0} to {most} characters" if most else "a text, not empty"
    return f"a number from {meta.ge}" + (" up" if meta.le is None else f" to {meta.le}")


def _quoted(value: object) -> str:
    text = str(value)
    return f"'{text[:SHOWN_CHARACTERS]}'" + ("..." if len(text) > SHOWN_CHARACTERS else "")
