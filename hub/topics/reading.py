"""Reads documents in a worker process; requests and results travel as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from ..workers.errors import WorkFailed, WorkRefused
from .document import TopicDocument, check_content, whole_document
from .topic import Topic

if TYPE_CHECKING:
    from ..workers.pool import Workers


class _TopicRequest(msgspec.Struct, array_like=True):
    content_type: str
    body: bytes
    known: dict[str, str]


class _Result(msgspec.Struct, array_like=True):
    """A `TopicDocument` without the body, which the server has."""

    digest: str
    known: dict[str, str]
    news: bytes | None
    is_whole: bool
    """Whether `news` would be the body."""
    notice: str


async def read(workers: Workers, topic: Topic, content_type: str, body: bytes) -> TopicDocument:
    """Returns the content compared with what is known; whole if that takes too much time or
    memory. Raises `ContentRefused`."""
    check_content(content_type, body)
    request = msgspec.msgpack.encode(_TopicRequest(content_type, body, dict(topic.known)))
    origin = urlsplit(topic.url).hostname or ""
    try:
        reply = await workers.run("read_document", request, origin=origin)
    except (WorkFailed, WorkRefused) as error:
        known, unread = topic.known, str(error)
        # Not above: worker processes import this module too, and need no event loop.
        from asyncio import to_thread

        return await to_thread(whole_document, content_type, body, known, unread)
    found = msgspec.msgpack.decode(reply, type=_Result)
    news = body if found.is_whole else found.news
    return TopicDocument(content_type, body, found.digest, found.known, news, found.notice)


def run(payload: bytes) -> bytes:
    """Reads a document, in the worker process."""
    # Not above: the server itself imports this module, and would take 0.3 s longer to start.
    from .document_reader import read_document

    request = msgspec.msgpack.decode(payload, type=_TopicRequest)
    found = read_document(request.content_type, request.body, request.known)
    is_whole = found.news == request.body
    news = None if is_whole else found.news
    result = _Result(found.digest, dict(found.known), news, is_whole, found.notice)
    return msgspec.msgpack.encode(result)
