"""Reads feeds of any format in a worker process; requests and results travel as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from ..workers.errors import WorkRefused
from .opml import Opml, read_opml
from .read_feed import Candidate, ReadFailure, ReadFeed

if TYPE_CHECKING:
    from ..workers.pool import Workers


class NoFeed(WorkRefused):
    """The document is no feed; `candidates` are the feeds that it names."""

    def __init__(self, reason: str, candidates: tuple[Candidate, ...]) -> None:
        super().__init__(reason)
        self.candidates = candidates


class _FeedRequest(msgspec.Struct, array_like=True):
    url: str
    content_type: str
    body: bytes
    selector: str


async def read(
    workers: Workers, url: str, content_type: str, body: bytes, selector: str = ""
) -> ReadFeed:
    """Returns the feed at `url`, which is the URL after redirects.

    A selector makes a feed with one item of what is no feed: `*` is the whole content, a text that
    begins with `$` is a JSON path (RFC 9535), any other one a CSS selector. Raises `NoFeed` for
    documents without a feed, `WorkRefused` for those that break a rule, and `WorkFailed` for those
    that exceed the limits of the worker process.
    """
    request = msgspec.msgpack.encode(_FeedRequest(url, content_type, body, selector))
    origin = urlsplit(url).hostname or ""
    reply = await workers.run("read_feed", request, origin=origin)
    found = msgspec.msgpack.decode(reply, type=ReadFeed | ReadFailure)
    if isinstance(found, ReadFailure):
        raise NoFeed(found.reason, found.candidates)
    return found


async def read_outlines(workers: Workers, body: bytes, *, origin: str) -> Opml:
    """Returns a list of feeds in OPML; the origin is its sender, for whom lists are read in turn.

    Raises `WorkRefused` and `WorkFailed`.
    """
    return msgspec.msgpack.decode(await workers.run("read_opml", body, origin=origin), type=Opml)


def run_opml(payload: bytes) -> bytes:
    """Reads OPML, in the worker process. Raises `FeedRefused`."""
    return msgspec.msgpack.encode(read_opml(payload))


def run(payload: bytes) -> bytes:
    """Reads a feed, in the worker process. Raises `FeedRefused`."""
    # Not above: the server itself imports this module, and would take 0.3 s longer to start.
    from .feed_reader import read_document

    request = msgspec.msgpack.decode(payload, type=_FeedRequest)
    found = read_document(request.url, request.content_type, request.body, request.selector)
    return msgspec.msgpack.encode(found)
