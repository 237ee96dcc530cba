"""Reads the attributes of a CloudEvent in binary mode (CloudEvents HTTP binding 3.1).

A value may be a quoted string; it is unescaped first, then percent-decoded once (3.1.3.2).

They become message headers as in the AMQP binding (3.1.3.1), so that AMQP consumers get an event
too, and subscribers in any format.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from ...core.message.model import Table
from ...hub.delivery.cloudevents import (
    MAX_CHARACTERS,
    OWN,
    REQUIRED,
    SPECVERSION,
    VERSION,
    characters,
)
from ..problems import Problem

PREFIX = b"ce-"
ID = b"ce-id"
_NAME = re.compile(r"[a-z0-9]{1,40}")
"""CloudEvents 3.1 recommends at most twenty characters."""
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


def is_event(attributes: dict[str, str]) -> bool:
    """Returns whether the `ce-` headers form an event: `ce-specversion` is present."""
    return SPECVERSION in attributes


def read_event(attributes: dict[str, str]) -> Table:
    """Returns the message headers of an event.

    Raises `Problem` 400 for anything but version 1.0, or for attributes too long to deliver.
    """
    attributes = {name: _unquoted(value) for name, value in attributes.items()}
    version = attributes[SPECVERSION]
    if version != VERSION:
        raise Problem(400, f"ce-specversion is '{version[:80]}'; only {VERSION} is supported")
    for name in REQUIRED:
        if not attributes.get(name):
            raise Problem(400, f"ce-{name} is missing: every event needs one")
    found = {_checked(name): _decoded(name, value) for name, value in attributes.items()}
    size = characters(found)
    if size > MAX_CHARACTERS:
        raise Problem(400, f"the ce- headers have {size} characters, at most {MAX_CHARACTERS}")
    return {OWN + name: value for name, value in found.items()}


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise Problem(
            400, f"'ce-{name[:80]}' is not an attribute name: use 1 to 40 characters a-z, 0-9"
        )
    return name


def _unquoted(value: str) -> str:
    """Returns the text of a quoted string (RFC 9110 5.6.4), any other value as it is."""
    quoted = _QUOTED.fullmatch(value)
    return value if quoted is None else _ESCAPED.sub(r"\1", quoted[1])


def _decoded(name: str, value: str) -> str:
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise Problem(400, f"ce-{name} is not UTF-8, percent-encoded") from None
