"""The attributes of a CloudEvent in binary mode (CloudEvents HTTP binding 3.1).

They are kept as headers of the message, as the AMQP binding writes them (3.1.3.1), so that
consumers over AMQP get an event too, and subscribers get it back in the form they like.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from ..core.message.model import Table
from ..hub.delivery.cloudevents import (
    MAX_CHARACTERS,
    OWN,
    REQUIRED,
    SPECVERSION,
    VERSION,
    characters,
)
from .problems import Problem

PREFIX = b"ce-"
ID = b"ce-id"
_NAME = re.compile(r"[a-z0-9]{1,40}")
"""CloudEvents 3.1 asks for at most twenty characters, and not strictly."""


def is_event(attributes: dict[str, str]) -> bool:
    """Headers that begin alike, without a version, are somebody else's."""
    return SPECVERSION in attributes


def read_event(attributes: dict[str, str]) -> Table:
    """Raises `Problem` 400 for what is no event of version 1.0, or too long to be delivered."""
    version = attributes[SPECVERSION]
    if version != VERSION:
        raise Problem(400, f"ce-specversion is '{version[:80]}': {VERSION} is understood")
    for name in REQUIRED:
        if not attributes.get(name):
            raise Problem(400, f"ce-{name} is missing: each event has one")
    found = {_checked(name): _decoded(name, value) for name, value in attributes.items()}
    size = characters(found)
    if size > MAX_CHARACTERS:
        raise Problem(400, f"the ce- headers have {size} characters, at most {MAX_CHARACTERS}")
    return {OWN + name: value for name, value in found.items()}


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise Problem(400, f"'ce-{name[:80]}' is no attribute: 1 to 40 of a-z and 0-9")
    return name


def _decoded(name: str, value: str) -> str:
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise Problem(400, f"ce-{name} is not UTF-8, percent-encoded") from None
