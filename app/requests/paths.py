"""Parses request paths into the resources that they name.

`/{facet}/{x|q}/{name}` is in the virtual host `/`, `/{vhost}/{facet}/{x|q}/{name}` in another
(RabbitHub). Segments are split in the raw path and decoded once, so that `%2F` is a slash in a
name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from urllib.parse import quote, unquote_to_bytes

from ...hub.requests import Kind, Resource, Word
from ...hub.upstream.upstream import CALLBACK_PATH
from ..problems import Problem

ALIAS = "/rabbithub"
FOLDERS = ("/demos", "/docs", "/docs/api")
"""Pages whose links are relative to what is behind the slash."""
_RABBITHUB_FACETS = frozenset({b"endpoint", b"subscribe", b"subscriptions"})
FACETS = _RABBITHUB_FACETS | {b"stream"}
HUB_PATH = b"/hub"
CAPABILITY_PATH = "/in/"
TUNNELS_PATH = "/reversehttp"
SETUP_FRAGMENT = "/#/setup/"
"""Between the URL of a new server and the secret with which its first administrator is created."""
SECRET_PREFIXES = (
    CAPABILITY_PATH.encode(), CALLBACK_PATH.encode(), f"{TUNNELS_PATH}/".encode(),
    b"/api/auth/hash_password/",
)  # fmt: skip
FORBIDDEN = frozenset("\0\r\n")
MAX_NAME_BYTES = 255
MAX_URL_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Target:
    """A facet of an exchange or queue. `letter` is `x` for an exchange, `q` for a queue; the name
    may be empty."""

    facet: str
    vhost: str
    letter: Kind
    name: str

    @property
    def kind(self) -> Word:
        return self.resource().word

    def resource(self) -> Resource:
        return Resource(self.vhost, self.letter, self.name)

    def path(self, facet: str = "endpoint") -> str:
        """Returns the canonical path below the base path; the virtual host `/` is left out."""
        vhost = "" if self.vhost == "/" else "/" + quote(self.vhost, safe="")
        return f"{vhost}/{facet}/{self.letter}/{quote(self.name, safe='')}"


class Prefixes:
    """Removes the base path from a path, or `/rabbithub` from the paths that RabbitHub had.

    Other paths are not served below `/rabbithub`, so that a proxy's rule for them has no second
    spelling.
    """

    def __init__(self, base_path: str) -> None:
        self._base = base_path.encode()

    def split(self, raw_path: bytes) -> tuple[str, bytes]:
        """Returns the prefix, which may be empty, and the rest, which starts with a slash."""
        if raw_path == HUB_PATH:  # `/hub` is the hub even if the base path has the same name
            return "", raw_path
        rest = _below(raw_path, self._base)
        if rest is not None:
            return self._base.decode(), rest
        rest = _below(raw_path, ALIAS.encode())
        if rest is not None and _is_rabbithub_path(rest):
            return ALIAS, rest
        return "", raw_path


def _below(raw_path: bytes, prefix: bytes) -> bytes | None:
    if prefix and raw_path.startswith(prefix) and raw_path[len(prefix) :][:1] in (b"", b"/"):
        return raw_path[len(prefix) :] or b"/"
    return None


def _is_rabbithub_path(rest: bytes) -> bool:
    """Returns whether RabbitHub had the path: the root, static files, or one of its facets with or
    without a virtual host."""
    is_file = rest.startswith(b"/static/")
    return rest == b"/" or is_file or not _RABBITHUB_FACETS.isdisjoint(rest.split(b"/")[1:3])


def parse(raw_path: bytes) -> Target | None:
    """Returns None if the path names no resource; raises `Problem` 400 for an invalid name."""
    segments = raw_path.split(b"/")
    if len(segments) == 4 and segments[1] in FACETS:
        vhost, facet, letter, name = "/", *segments[1:]
    elif len(segments) == 5 and segments[2] in FACETS:
        vhost, facet, letter, name = decode(segments[1]), *segments[2:]
    else:
        return None
    if letter not in (b"x", b"q"):
        return None
    return Target(facet.decode(), vhost, cast(Kind, letter.decode()), decode(name))


def api_names(segments: list[bytes]) -> tuple[str, ...]:
    """Returns the decoded segments below `/api`; below `/api/hub` a segment may be a URL.

    Raises `Problem` 400 as `decode` does.
    """
    limit = MAX_URL_BYTES if segments[0] == b"hub" else MAX_NAME_BYTES
    return tuple(decode(segment, limit) for segment in segments)


def decode(segment: bytes, limit: int = MAX_NAME_BYTES) -> str:
    """Percent-decodes a segment once.

    Raises `Problem` 400 for CR, LF, NUL, bytes that are not UTF-8, or more than `limit` bytes.
    """
    try:
        text = unquote_to_bytes(segment).decode()
    except UnicodeDecodeError as error:
        raise Problem(400, "a path segment is not UTF-8") from error
    if not FORBIDDEN.isdisjoint(text):
        raise Problem(400, "a name must not contain CR, LF or NUL")
    if len(text.encode()) > limit:
        raise Problem(400, f"a name has more than {limit} bytes")
    return text
