"""Renders documents in a worker process: items may be large, and there are many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ..formats.identity import scoped
from ..formats.media_types import Format
from ..formats.model import FeedDocument, FeedHead, Item, decode_item
from ..formats.urls import DocumentUrls
from .document import BASE_URL, TOKEN
from .filtering import dated_s
from .messages import date_of

if TYPE_CHECKING:
    from ..workers.pool import Workers


class DocumentItems(msgspec.Struct, array_like=True):
    """The items of a page, newest first, each with its id, as JSON, and with the wall time of its
    arrival.

    Ids that are no URIs are preceded by `scope` in Atom, where they have to be unique everywhere.
    Items older than `max_age_s` are left out.
    """

    items: Sequence[tuple[str, bytes, float]]
    now_s: float
    scope: str = ""
    max_age_s: float | None = None


class Rendered(msgspec.Struct, array_like=True):
    """A document. `until_s` is when the next item gets too old, and `aged_s` when the last one did
    that is left out; wall time."""

    body: bytes
    until_s: float = math.inf
    aged_s: float = 0.0


class _RenderRequest(msgspec.Struct, array_like=True):
    format: Format
    head: FeedHead
    page: DocumentItems
    self_url: str
    hub_url: str
    next_url: str


async def render(
    workers: Workers,
    format: Format,
    head: FeedHead,
    page: DocumentItems,
    path: str,
    before: int | None,
    next_before: int | None,
) -> Rendered:
    """Returns the document of these items, with `BASE_URL` and `TOKEN` in its own URLs.

    `path` is that of the document; `before` and `next_before` are the numbers where this page and
    the next one begin. Raises `WorkFailed` and `WorkRefused`.
    """
    url = BASE_URL + path
    next_url = "" if next_before is None else f"{url}?before={next_before}&{TOKEN}"
    self_url = f"{url}?{TOKEN}" if before is None else f"{url}?before={before}&{TOKEN}"
    # The worker process has placeholders of its own.
    asked = _RenderRequest(format, head, page, self_url, f"{BASE_URL}/hub", next_url)
    request = msgspec.msgpack.encode(asked)
    reply = await workers.run("write_document", request, origin=path)
    return msgspec.msgpack.decode(reply, type=Rendered)


def run(payload: bytes) -> bytes:
    """Renders a document, in the worker process."""
    # Not above: the server itself imports this module, and would start later.
    from ..formats.dates import normalised
    from ..formats.writing import write

    request = msgspec.msgpack.decode(payload, type=_RenderRequest)
    found = [(_item(item_id, body), at_s) for item_id, body, at_s in request.page.items]
    for item, at_s in found if request.format == "atom" else ():
        if not (normalised(item.date_modified) or normalised(item.date_published)):
            item.date_modified = date_of(at_s)  # Atom requires one
    items, rendered = _young(found, request.page)
    if request.format == "atom" and request.page.scope:
        for item in items:
            item.id = scoped(item.id, request.page.scope)
    urls = DocumentUrls(request.self_url, (request.hub_url,), request.next_url)
    rendered.body = write(request.format, FeedDocument(request.head, items), urls=urls)
    return msgspec.msgpack.encode(rendered)


def _item(item_id: str, body: bytes) -> Item:
    item = decode_item(body)
    item.id = item_id  # that of the body, unless an item of another origin has that one
    return item


def _young(found: Sequence[tuple[Item, float]], page: DocumentItems) -> tuple[list[Item], Rendered]:
    """Returns the items that are not too old, and a document with the times."""
    rendered = Rendered(b"")
    if page.max_age_s is None:
        return [item for item, _ in found], rendered
    items = []
    for item, at_s in found:
        end_s = dated_s(item, at_s) + page.max_age_s
        if end_s < page.now_s:
            rendered.aged_s = max(rendered.aged_s, end_s)
        else:
            rendered.until_s = min(rendered.until_s, end_s)
            items.append(item)
    return items, rendered
