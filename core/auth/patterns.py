"""Compiles the regular expressions of permissions and policies, which users write.

RE2 matches them in linear time; those that it does not take are for PCRE2, with limits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .errors import AuthError
from .pcre import LimitedPattern, not_regular

Matcher = Callable[[str], bool]

MAX_PATTERN_BYTES: Final = 65_535
"""What a definition can store; in RabbitMQ, a compiled pattern has as many at most."""
MAX_QUERY_PATTERN_BYTES: Final = 256
_MAX_PROGRAM_BYTES: Final = 2**20
"""Of RE2's programs: a larger one can take seconds to compile."""
_NOTHING: Final = "[^\\s\\S]"
"""A pattern that never matches."""


def matcher(pattern: str, owner: str) -> Matcher:
    """Returns a function that searches the pattern in a name; an empty pattern matches nothing.

    `owner` says whose pattern it is. Raises `AuthError` for a pattern that is too long or no
    regular expression.
    """
    if not pattern:
        return lambda _: False
    if pattern == ".*":
        return lambda _: True
    _check_text(pattern)
    return _compiled(pattern, pattern, owner)


def topic_matcher(pattern: str, user: str, vhost: str, owner: str) -> Matcher:
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
    return _compiled(_expanded(pattern, user, vhost), pattern, owner)


def linear_matcher(pattern: str) -> Matcher:
    """As `matcher`, for RE2 alone: for patterns of requests, which search very many names."""
    _check_text(pattern, MAX_QUERY_PATTERN_BYTES)
    return _linear(pattern)


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


def _compiled(pattern: str, written: str, owner: str) -> Matcher:
    try:
        return _linear(pattern)
    except AuthError:
        return LimitedPattern(pattern, written, owner)


def _linear(pattern: str) -> Matcher:
    """Returns RE2's matcher. Raises `AuthError` for a pattern that it does not take."""
    import re2  # on first need: most installations only ever have `.*`

    options: Any = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    options.max_mem = _MAX_PROGRAM_BYTES
    try:
        search = re2.compile(pattern, options).search
    except re2.error as error:
        raise not_regular(pattern, _words(error)) from error
    return lambda name: search(name) is not None


def _words(error: Exception) -> str:
    """Returns the message of an engine's error, which may be bytes."""
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _check_text(pattern: str, max_bytes: int = MAX_PATTERN_BYTES) -> None:
    try:
        size = len(pattern.encode())
    except UnicodeEncodeError as error:
        raise AuthError(f"pattern {pattern!r} is not valid Unicode") from error
    if size > max_bytes:
        raise AuthError(f"a pattern has {size} bytes, at most {max_bytes}")
