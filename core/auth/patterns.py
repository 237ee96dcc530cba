"""Compiles the regular expressions of permissions, which users write, in a linear-time engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .errors import AuthError

Matcher = Callable[[str], bool]

MAX_PATTERN_LENGTH: Final = 256
_NOTHING: Final = "[^\\x00-\\x{10FFFF}]"
"""A pattern that never matches."""


def matcher(pattern: str) -> Matcher:
    """Returns a function that searches the pattern in a name; an empty pattern matches nothing.

    Raises `AuthError` for a pattern that is too long or no regular expression.
    """
    if not pattern:
        return lambda _: False
    if pattern == ".*":
        return lambda _: True
    _check_text(pattern)
    return _compiled(pattern, pattern)


def topic_matcher(pattern: str, user: str, vhost: str) -> Matcher:
    """As `matcher` for routing keys, with `{username}` and `{vhost}` standing for those names.

    Special characters of a name are escaped; RabbitMQ inserts it unescaped, so that a user called
    `.*` may write every key. `{client_id}` matches nothing: only MQTT clients have one. An empty
    pattern matches only the empty key, as in RabbitMQ.
    """
    if not pattern:
        return lambda key: not key
    if pattern == ".*":
        return lambda _: True
    _check_text(pattern)
    return _compiled(_expanded(pattern, user, vhost), pattern)


def _expanded(pattern: str, user: str, vhost: str) -> str:
    import re2

    values = {
        "{username}": re2.escape(user),
        "{vhost}": re2.escape(vhost),
        "{client_id}": _NOTHING,
    }
    # In one pass: a user may be called {vhost}.
    parts = re2.split(r"(\{username\}|\{vhost\}|\{client_id\})", pattern)
    return "".join(values.get(part, part) for part in parts)


def _compiled(pattern: str, written: str) -> Matcher:
    import re2  # on first need: most installations only ever have `.*`

    options: Any = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    try:
        search = re2.compile(pattern, options).search
    except re2.error as error:
        raise AuthError(
            f"pattern '{written}' is not a regular expression: {_words(error)}"
        ) from error
    return lambda name: search(name) is not None


def _words(error: Exception) -> str:
    """Returns the message of an engine's error, which may be bytes."""
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _check_text(pattern: str) -> None:
    try:
        pattern.encode()
    except UnicodeEncodeError as error:
        raise AuthError(f"pattern {pattern!r} is not valid Unicode") from error
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise AuthError(f"a pattern has {len(pattern)} characters, at most {MAX_PATTERN_LENGTH}")
