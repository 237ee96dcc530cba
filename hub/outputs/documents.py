"""The documents of feeds and outputs, rendered once after each change and kept in memory."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ...core.clock import Clock
from ..feeds.fitting import reduce_to
from ..feeds.stored_item import StoredItem
from ..keyed_locks import KeyedLocks
from ..topics.document_key import DocumentKey, DocumentPlace
from ..workers.pool import Workers, WorkFailed
from .document import RenderedDocument
from .publications import Publication, Publications
from .rendering import DocumentItems, Rendered, render

ITEMS_OF_DOCUMENT = 50
BYTES_OF_DOCUMENT = 8 * 1024 * 1024
"""The limit of a document's items; the others are on the next page. A worker process takes and
returns 32 MiB."""
REDUCED_BYTES = 1024 * 1024
"""Of the items of a document that exceeds the limits of a worker process otherwise: a character may
become ten, and a tag takes as long as a page of text."""
CACHE_BYTES = 64 * 1024 * 1024
"""How much rendered documents may take: about a hundred large ones."""

log = logging.getLogger(__name__)


class _Version(NamedTuple):
    document: DocumentPlace
    before: int | None


class Documents:
    """A cache of rendered documents. Renders in a worker process; one version of a document is
    rendered once."""

    def __init__(self, publications: Publications, workers: Workers, clock: Clock) -> None:
        self._publications = publications
        self._workers = workers
        self._clock = clock
        self._cached: OrderedDict[_Version, RenderedDocument] = OrderedDict()
        self._cached_bytes = 0
        self._changes: dict[DocumentKey, int] = {}
        """Counts the changes of places, so that what is being rendered is known to be old."""
        self._locks: KeyedLocks[_Version] = KeyedLocks()

    def changed(self, place: DocumentKey) -> None:
        """Has the documents of the place rendered anew when they are asked for."""
        self._changes[place] = self._changes.get(place, 0) + 1
        for version in [one for one in self._cached if one.document.place == place]:
            self._drop(version)

    def cached(self, document: DocumentPlace) -> RenderedDocument | None:
        """Returns the newest page if it is in memory."""
        return self._fresh(_Version(document, None))

    async def get(self, document: DocumentPlace, before: int | None = None) -> RenderedDocument:
        """Returns the newest items of a place, or those before a number.

        Raises `DocumentMissing`, `DocumentGone`, `StorageFailed` and `WorkFailed`.
        """
        version = _Version(document, before)
        async with self._locks.of(version):
            found = self._fresh(version)
            if found is not None:
                self._cached.move_to_end(version)
                return found
            changes = self._changes.get(document.place, 0)
            found = await self._render(version)
            if changes == self._changes.get(document.place, 0):
                self._keep(version, found)
            return found

    def _fresh(self, version: _Version) -> RenderedDocument | None:
        """Returns a page that is in memory, unless one of its items has become too old."""
        found = self._cached.get(version)
        if found is not None and found.until_s < self._clock.wall_s():
            self._drop(version)
            return None
        return found

    async def _render(self, version: _Version) -> RenderedDocument:
        document, before = version
        publication = await self._publications.find(document.place)
        found = await self._publications.page(publication, before, ITEMS_OF_DOCUMENT + 1)
        items = _first(found[:ITEMS_OF_DOCUMENT])
        next_before = items[-1].number if len(found) > len(items) else None
        try:
            rendered = await self._write(version, publication, items, next_before)
        except WorkFailed as error:
            log.warning("'%s': large items come without content: %s", document.path, error)
            items = await asyncio.to_thread(_reduced, items)
            rendered = await self._write(version, publication, items, next_before)
        changed_at = max([publication.changed_at, rendered.aged_s, *(one.at for one in items)])
        return RenderedDocument(rendered.body, changed_at, next_before, rendered.until_s)

    async def _write(
        self,
        version: _Version,
        publication: Publication,
        items: Sequence[StoredItem],
        next_before: int | None,
    ) -> Rendered:
        document, before = version
        page = DocumentItems(
            [(one.item_id, one.body, one.at) for one in items], self._clock.wall_s(),
            publication.scope, publication.max_age_s,
        )  # fmt: skip
        return await render(
            self._workers, document.format, publication.head, page, document.path, before,
            next_before,
        )  # fmt: skip

    def _keep(self, version: _Version, found: RenderedDocument) -> None:
        self._cached[version] = found
        self._cached_bytes += found.size_bytes
        while self._cached_bytes > CACHE_BYTES and len(self._cached) > 1:
            self._drop(next(iter(self._cached)))

    def _drop(self, version: _Version) -> None:
        self._cached_bytes -= self._cached.pop(version).size_bytes


def _first(items: Sequence[StoredItem]) -> Sequence[StoredItem]:
    """Returns the first items, at least one, that are not too large together."""
    size = 0
    for place, item in enumerate(items):
        size += len(item.body)
        if place and size > BYTES_OF_DOCUMENT:
            return items[:place]
    return items


def _reduced(items: Sequence[StoredItem]) -> Sequence[StoredItem]:
    """Returns the items, the largest of them without their content: one publisher's items must not
    keep those of others from their readers."""
    left = sum(len(item.body) for item in items)
    reduced = {item.number: item for item in items}
    for item in sorted(items, key=lambda one: len(one.body), reverse=True):
        if left <= REDUCED_BYTES:
            break
        body = reduce_to(item.body, REDUCED_BYTES // ITEMS_OF_DOCUMENT) or item.body
        reduced[item.number] = replace(item, body=body)
        left -= len(item.body) - len(body)
    return list(reduced.values())
