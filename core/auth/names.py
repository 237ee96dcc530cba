"""Checks the names of users and tags, and of exchanges in topic permissions."""

from __future__ import annotations

from typing import Final

from .errors import AuthError

MAX_NAME_BYTES: Final = 1024
MAX_EXCHANGE_BYTES: Final = 255
"""The size limit of a short string (AMQP 0-9-1 4.2.5.3)."""


def check_name(text: str) -> None:
    """Raises `AuthError` for an invalid user name or tag."""
    size = _size(text)
    if not 1 <= size <= MAX_NAME_BYTES:
        raise AuthError(f"a user name or tag has {size} bytes (limit 1 to {MAX_NAME_BYTES})")
    if "\0" in text:
        raise AuthError(f"the user name or tag {text!r} contains a NUL")


def check_exchange(name: str) -> None:
    """Raises `AuthError` for a name that no exchange can have."""
    size = _size(name)
    if size > MAX_EXCHANGE_BYTES:
        raise AuthError(f"an exchange's name has {size} bytes, at most {MAX_EXCHANGE_BYTES}")


def _size(text: str) -> int:
    """Returns the size in bytes of UTF-8."""
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise AuthError(f"{text!r} is not valid Unicode") from error
