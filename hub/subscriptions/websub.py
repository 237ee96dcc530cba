"""Topics of `/hub`: maps topic URLs to sources (WebSub 5.1).

The URL of an endpoint of this hub stands for that exchange or queue. Content of any other URL is
published to exchanges for topics of other sites, with the URL as the key, and so are this hub's own
documents, with their path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from ..engine.port import Engine
from ..errors import BadRequest, CallbackRefused, SourceMissing
from ..guard.callback_url import read_callback
from ..guard.own import endpoint_of, is_own, path_below
from ..requests import Resource, SubscribeRequest
from ..topics.document_key import DocumentPlace, read_path
from ..topics.names import CONTENT, ENTRIES, VHOST, topic_key

_FIELD = "hub.topic"
_EXCHANGES = {"full": CONTENT, "new": ENTRIES}
_TRIPLET = re.compile("%([0-9A-Fa-f]{2})")
_TOKEN = re.compile(r"([?&]token=)[^&]*")
_UNRESERVED = re.compile("[A-Za-z0-9._~-]")  # RFC 3986 2.3


@dataclass(frozen=True, slots=True)
class WebSubTopic:
    """A topic and its source. `url` is as in the request; `key` is None if a URL of this hub has
    none. `document` is set for a document of this hub, to which `token` gives access."""

    url: str
    source: Resource
    key: str | None
    is_own: bool
    document: DocumentPlace | None = None
    token: str = ""


def read_topic(
    url: str | None, base_urls: Iterable[str], content: str | None = None
) -> WebSubTopic:
    """Returns the topic of a URL. `content` is `hub.content`: `full`, or `new` for only the new
    entries of a feed.

    Raises `BadRequest` if it is no http(s) URL, and `SourceMissing` for a URL of this hub that is
    neither a document nor an endpoint of an exchange or queue.
    """
    checked = check_url(_FIELD, url)
    exchange = _EXCHANGES.get(content or "full")
    if exchange is None:
        limit = ", ".join(_EXCHANGES)
        raise BadRequest("is unknown", field="hub.content", value=content, limit=limit)
    bases = tuple(base_urls)
    if is_own(checked, bases):
        return _document(checked, bases, exchange) or _own_topic(checked, bases)
    key = topic_key(normal_url(checked))
    return WebSubTopic(checked, Resource(VHOST, "x", exchange), key, is_own=False)


async def key_of(engine: Engine, topic: WebSubTopic) -> str:
    """Returns the key to bind with: if the URL has none, "#" for a topic exchange, else "".

    Raises `SourceMissing` if the exchange does not exist.
    """
    if topic.key is not None:
        return topic.key
    if topic.source.kind == "q":
        return ""
    found = await engine.exchange(topic.source.vhost, topic.source.name)
    if found is None:
        raise SourceMissing(f"no {topic.source}", field=_FIELD, value=topic.url)
    return "#" if found.type == "topic" else ""


def is_of_topics(request: SubscribeRequest) -> bool:
    """Whether the request is for a topic of another site, or for a document of this hub."""
    source = request.source
    is_in_topics = source.kind == "x" and source.name in (CONTENT, ENTRIES)
    return bool(request.topic_url) and source.vhost == VHOST and is_in_topics


def is_external(request: SubscribeRequest) -> bool:
    """Whether the request is for a topic of another site."""
    of_url = request.topic == topic_key(normal_url(request.topic_url))
    return is_of_topics(request) and of_url


def other_exchange(source: Resource) -> str:
    """Returns the other exchange for topics of other sites."""
    return ENTRIES if source.name == CONTENT else CONTENT


def check_url(field: str, url: str | None) -> str:
    """Returns the URL; raises `BadRequest` if it can't be requested."""
    if url is None:
        raise BadRequest("is required", field=field)
    try:
        read_callback(url)
    except CallbackRefused as error:
        raise BadRequest(error.reason, field=field, value=error.value, limit=error.limit) from error
    return url


def normal_url(url: str) -> str:
    """Returns the normal form of a URL: percent-encoded unreserved characters are decoded."""
    return _TRIPLET.sub(_decoded, url)


def without_token(url: str) -> str:
    """Returns the URL for logs: the token of a document is left out."""
    return _TOKEN.sub(r"\1...", url)


def _decoded(triplet: re.Match[str]) -> str:
    character = chr(int(triplet[1], 16))
    return character if _UNRESERVED.fullmatch(character) else triplet[0]


def _document(url: str, bases: tuple[str, ...], exchange: str) -> WebSubTopic | None:
    document = read_path(path_below(url, bases) or "")
    if document is None:
        return None
    query = parse_qs(urlsplit(url).query, keep_blank_values=True)
    if query.keys() - {"token"}:
        reason = "is a page of a document; subscribe to it without a query other than token"
        raise SourceMissing(reason, field=_FIELD, value=url.partition("?")[0])
    source, token = Resource(VHOST, "x", exchange), query.get("token", [""])[0]
    return WebSubTopic(url, source, topic_key(document.path), True, document, token)


def _own_topic(url: str, bases: tuple[str, ...]) -> WebSubTopic:
    split = urlsplit(url)
    resource = endpoint_of(split._replace(query="").geturl(), bases)
    if resource is None:
        reason = (
            "is this hub's own address, but none of an exchange or queue (/endpoint/x/NAME), nor "
            "of a document (/feeds/NAME.atom)"
        )
        raise SourceMissing(reason, field=_FIELD, value=url)
    keys = parse_qs(split.query, keep_blank_values=True).get("hub.topic", [None])
    return WebSubTopic(url, resource, keys[0], is_own=True)
