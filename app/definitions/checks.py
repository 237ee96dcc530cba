"""Checks that all entries of a file share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...core.auth import AuthError
from ...core.errors import ChannelError, ConfigError
from ...core.message.model import Table
from .document import Pairs
from .values import table_from_json

MAX_NAME_BYTES = 255
"""A name travels as a short string (AMQP 0-9-1 4.2.5.3)."""


@contextmanager
def at(place: str) -> Iterator[None]:
    """Adds the place to errors about the entry there."""
    try:
        yield
    except (AuthError, ChannelError, ConfigError, ValueError) as error:
        raise ConfigError(f"{place}: {error}") from error


def check_length(kind: str, name: str) -> None:
    """Raises `ConfigError` for an empty name or one that is too long."""
    size = len(name.encode())
    if not 1 <= size <= MAX_NAME_BYTES:
        raise ConfigError(f"the name of a {kind} has {size} bytes, not 1 to {MAX_NAME_BYTES}")


def table_of(found: Pairs) -> Table:
    """Returns a table of arguments. Raises `ValueError` if AMQP can't encode it."""
    return table_from_json(dict(found))
