"""Which exchange or queue a request path names.

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
PLACES = frozenset({HUB_PATH, b"/subscriptions", b"/subscriptions/errors"})
CAPABILITY_PATH = "/in/"
SECRET_PLACES = (CAPABILITY_PATH.encode(), CALLBACK_PATH.encode())
API = b"api"
FORBIDDEN = frozenset("\0\r\n")
MAX_NAME_BYTES = 255
MAX_URL_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Target:
    """`letter` is `x` for an exchange, `q` for a queue; an empty name is legal here."""

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
        """The canonical path, below the base path; the virtual host `/` is left out."""
        vhost = "" if self.vhost == "/" else "/" + quote(self.vhost, safe="")
        return f"{vhost}/{facet}/{self.letter}/{quote(self.name, safe='')}"


@dataclass(frozen=True, slots=True)
class Place:
    """A path of the hub that names no resource, such as `/subscriptions`; `*` is the server."""

    path: str


@dataclass(frozen=True, slots=True)
class SecretPath:
    """A path whose last segment is the credential of whoever uses it."""

    place: str
    secret: str


@dataclass(frozen=True, slots=True)
class ApiPath:
    """A path below `/api`, not decoded."""

    segments: tuple[bytes, ...]

    def parts(self) -> tuple[str, ...]:
        """Raises `Problem` 400 as `decode` does; below `/api/hub` a part may be a URL."""
        limit = MAX_URL_BYTES if self.segments[0] == b"hub" else MAX_NAME_BYTES
        return tuple(decode(segment, limit) for segment in self.segments)


class Prefixes:
    """Takes the base path off the front of a path, or `/rabbithub` where RabbitHub had the rest: a
    proxy's rule for anything else must hold for all of its paths."""

    def __init__(self, base_path: str) -> None:
        self._base = base_path.encode()

    def split(self, raw_path: bytes) -> tuple[str, bytes]:
        """The prefix that was there (maybe empty) and the rest, which starts with a slash."""
        if raw_path == HUB_PATH:  # the hub also where the base path is called so
            return "", raw_path
        rest = _below(raw_path, self._base)
        if rest is not None:
            return self._base.decode(), rest
        rest = _below(raw_path, ALIAS.encode())
        if rest is not None and _is_rabbithubs(rest):
            return ALIAS, rest
        return "", raw_path


def _below(raw_path: bytes, prefix: bytes) -> bytes | None:
    if prefix and raw_path.startswith(prefix) and raw_path[len(prefix) :][:1] in (b"", b"/"):
        return raw_path[len(prefix) :] or b"/"
    return None


def _is_rabbithubs(rest: bytes) -> bool:
    """The root, style sheets, and what has one of RabbitHub's facets, with a virtual host before
    it or not."""
    is_file = rest.startswith(b"/static/")
    return rest == b"/" or is_file or not FACETS.isdisjoint(rest.split(b"/")[1:3])


def parse(raw_path: bytes) -> Target | None:
    """None if the path names no resource; raises `Problem` 400 for a name that can't be."""
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


def parse_place(raw_path: bytes) -> Place | None:
    return Place(raw_path.decode()) if raw_path in PLACES or raw_path == SERVER else None


def parse_secret(raw_path: bytes) -> SecretPath | None:
    for place in SECRET_PLACES:
        if raw_path.startswith(place) and raw_path.count(b"/") == place.count(b"/"):
            return SecretPath(place.decode(), raw_path[len(place) :].decode("latin-1"))
    return None


def parse_api(raw_path: bytes) -> ApiPath | None:
    """None if the path is not below `/api`."""
    root, *segments = raw_path.split(b"/")[1:]
    return ApiPath(tuple(segments)) if root == API and segments else None


def decode(segment: bytes, limit: int = MAX_NAME_BYTES) -> str:
    """Percent-decodes once. Raises `Problem` 400 for CR, LF, NUL and what is not UTF-8."""
    try:
        text = unquote_to_bytes(segment).decode()
    except UnicodeDecodeError as error:
        raise Problem(400, "a path segment is not UTF-8") from error
    if not FORBIDDEN.isdisjoint(text):
        raise Problem(400, "a name must not contain CR, LF or NUL")
    if len(text.encode()) > limit:
        raise Problem(400, f"a name has more than {limit} bytes")
    return text
