"""Topics of `/hub`: which URL stands for which source (WebSub 5.1).

The URL of one of this hub's own endpoints stands for that exchange or queue. Any other URL is
somebody else's: its content is published to exchanges of their own, with the URL as the key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from ..engine.port import Engine
from ..errors import BadRequest, CallbackRefused, SourceMissing
from ..guard.guard import read_callback
from ..guard.own import endpoint_of, is_own
from ..requests import Resource, SubscribeRequest
from ..topics.names import CONTENT, ENTRIES, VHOST, topic_key

_FIELD = "hub.topic"
_EXCHANGES = {"full": CONTENT, "new": ENTRIES}
_TRIPLET = re.compile("%([0-9A-Fa-f]{2})")
_UNRESERVED = re.compile("[A-Za-z0-9._~-]")  # RFC 3986 2.3


@dataclass(frozen=True, slots=True)
class Topic:
    """`url` is as it was given; `key` is None where an own URL names none."""

    url: str
    source: Resource
    key: str | None
    is_own: bool


def read_topic(url: str | None, base_urls: Iterable[str], content: str | None = None) -> Topic:
    """`content` is `hub.content`: `full`, or `new` for only the new entries of a feed.

    Raises `BadRequest` for what is no http(s) URL, and `SourceMissing` for a URL of this hub
    that is none of an exchange or queue.
    """
    checked = check_url(_FIELD, url)
    exchange = _EXCHANGES.get(content or "full")
    if exchange is None:
        limit = ", ".join(_EXCHANGES)
        raise BadRequest("is unknown", field="hub.content", value=content, limit=limit)
    bases = tuple(base_urls)
    if is_own(checked, bases):
        return _own_topic(checked, bases)
    key = topic_key(normal_url(checked))
    return Topic(checked, Resource(VHOST, "x", exchange), key, is_own=False)


async def key_of(engine: Engine, topic: Topic) -> str:
    """The key to bind with: without one in the URL all that a topic exchange gets, else "".

    Raises `SourceMissing` for an exchange that is not there.
    """
    if topic.key is not None:
        return topic.key
    if topic.source.kind == "q":
        return ""
    found = await engine.exchange(topic.source.vhost, topic.source.name)
    if found is None:
        raise SourceMissing(f"no {topic.source}", field=_FIELD, value=topic.url)
    return "#" if found.type == "topic" else ""


def is_external(request: SubscribeRequest) -> bool:
    """Whether the request is for somebody else's topic."""
    if not request.topic_url or request.source.vhost != VHOST:
        return False
    of_others = request.source.kind == "x" and request.source.name in (CONTENT, ENTRIES)
    return of_others and request.topic == topic_key(normal_url(request.topic_url))


def other_exchange(source: Resource) -> str:
    """The one that a subscription to somebody else's topic is not bound to."""
    return ENTRIES if source.name == CONTENT else CONTENT


def check_url(field: str, url: str | None) -> str:
    """The URL, which can be fetched for all that its text tells; raises `BadRequest`."""
    if url is None:
        raise BadRequest("is required", field=field)
    try:
        read_callback(url)
    except CallbackRefused as error:
        raise BadRequest(error.reason, field=field, value=error.value, limit=error.limit) from error
    return url


def normal_url(url: str) -> str:
    """The same for all ways to write it: percent-encoded unreserved characters are decoded."""
    return _TRIPLET.sub(_decoded, url)


def _decoded(triplet: re.Match[str]) -> str:
    character = chr(int(triplet[1], 16))
    return character if _UNRESERVED.fullmatch(character) else triplet[0]


def _own_topic(url: str, bases: tuple[str, ...]) -> Topic:
    split = urlsplit(url)
    resource = endpoint_of(split._replace(query="").geturl(), bases)
    if resource is None:
        reason = "is this hub's own address, but none of an exchange or queue (/endpoint/x/NAME)"
        raise SourceMissing(reason, field=_FIELD, value=url)
    keys = parse_qs(split.query, keep_blank_values=True).get("hub.topic", [None])
    return Topic(url, resource, keys[0], is_own=True)
