"""Finds the links of a page, in a worker process if its document has to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from ..fetch.page import FetchedPage
from .discovery import Links, discover
from .header import read_link_fields

if TYPE_CHECKING:
    from ..workers.pool import Workers


_MAX_FIELD_CHARACTERS = 2_048
"""The longest Link fields read in the event loop; longer ones may have thousands of links."""


class _LinksRequest(msgspec.Struct, array_like=True):
    url: str
    link_fields: list[str]
    content_type: str
    body: bytes


async def find_links(workers: Workers, page: FetchedPage) -> Links:
    """Returns the links of the page. Raises `WorkFailed`."""
    fields = page.all("link")
    if sum(map(len, fields)) <= _MAX_FIELD_CHARACTERS:
        header = read_link_fields(fields)
        if header.hubs and header.selves:  # the document does not count then
            return discover(page.url, fields, "", b"")
    request = _LinksRequest(page.url, fields, page.first("content-type"), page.body)
    origin = urlsplit(page.url).hostname or ""
    reply = await workers.run("find_links", msgspec.msgpack.encode(request), origin=origin)
    return msgspec.msgpack.decode(reply, type=Links)


def run(payload: bytes) -> bytes:
    """Finds links, in the worker process."""
    request = msgspec.msgpack.decode(payload, type=_LinksRequest)
    links = discover(request.url, request.link_fields, request.content_type, request.body)
    return msgspec.msgpack.encode(links)
