"""Parses request paths into the resources that they name.

`/{facet}/{x|q}/{name}` is in the virtual host `/`, `/{vhost}/{facet}/{x|q}/{name}` in another
(RabbitHub). Segments are split in the raw path and decoded once, so that `%2F` is a slash in a
name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from urllib.parse import quote, unquote_to_bytes

from ..hub.requests import Kind, Resource, Word
from ..hub.upstream.upstream import CALLBACK_PATH
from .problems import Problem

ALIAS = "/rabbithub"
FACETS = frozenset({b"endpoint", b"subscribe", b"subscriptions"})
HUB_PATH = b"/hub"
SERVER = b"*"  # RFC 9112 3.2.4
HUB_PATHS = frozenset({HUB_PATH, b"/subscriptions", b"/subscriptions/errors"})
CAPABILITY_PATH = "/in/"
SECRET_PREFIXES = (CAPABILITY_PATH.encode(), CALLBACK_PATH.encode())
API = b"api"
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


@dataclass(frozen=True, slots=True)
class HubPath:
    """A path of the hub that names no resource, such as `/subscriptions`; `*` is the server."""

    path: str


@dataclass(frozen=True, slots=True)
class SecretPath:
    """A path whose last segment is a credential; `prefix` is the part before it."""

    prefix: str
    secret: str


@dataclass(frozen=True, slots=True)
class ApiPath:
    """A path below `/api`, not decoded."""

    segments: tuple[bytes, ...]

    def parts(self) -> tuple[str, ...]:
        """Returns the decoded segments; below `/api/hub` a segment may be a URL.

        Raises `Problem` 400 as `decode` does.
        """
        limit = MAX_URL_BYTES if self.segments[0] == b"hub" else MAX_NAME_BYTES
        return tuple(decode(segment, limit) for segment in self.segments)


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
    return rest == b"/" or is_file or not FACETS.isdisjoint(rest.split(b"/")[1:3])


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


def parse_hub_path(raw_path: bytes) -> HubPath | None:
    return HubPath(raw_path.decode()) if raw_path in HUB_PATHS or raw_path == SERVER else None


def parse_secret(raw_path: bytes) -> SecretPath | None:
    for prefix in SECRET_PREFIXES:
        if raw_path.startswith(prefix) and raw_path.count(b"/") == prefix.count(b"/"):
            return SecretPath(prefix.decode(), raw_path[len(prefix) :].decode("latin-1"))
    return None


def parse_api(raw_path: bytes) -> ApiPath | None:
    """Returns None if the path is not below `/api`."""
    root, *segments = raw_path.split(b"/")[1:]
    return ApiPath(tuple(segments)) if root == API and segments else None


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
