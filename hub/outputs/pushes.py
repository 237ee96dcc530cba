"""Pushes changed documents to the subscribers of their URLs at `/hub`."""

from __future__ import annotations

import asyncio
import logging
from typing import get_args

from ...core.errors import WarrenError
from ..formats.media_types import MEDIA_TYPES, Format
from ..tasks import Tasks
from ..topics.document_key import DocumentKey, DocumentPlace
from ..topics.topics import Topics
from .documents import Documents
from .publications import DocumentGone, DocumentMissing
from .subscribers import DocumentSubscribers

AGAIN_S = 10.0
"""How soon a push is tried again that the database, the disk or a worker process did not take."""

log = logging.getLogger(__name__)


class DocumentPushes:
    """Pushes documents that have changed. A document whose content was pushed already is not pushed
    again: a start may repeat one.

    All subscribers of a document get the same, with links below the address at which the first one
    has reached the hub, or without any below `base_url`.
    """

    def __init__(
        self,
        documents: Documents,
        topics: Topics,
        subscribers: DocumentSubscribers,
        base_url: str,
    ) -> None:
        self._documents = documents
        self._topics = topics
        self._base_url = base_url
        self._subscribers = subscribers
        self._bases: dict[DocumentPlace, str] = {}
        self._waiting: dict[DocumentPlace, None] = {}
        self._running: set[DocumentPlace] = set()
        self._tasks = Tasks()

    def start(self) -> None:
        """Pushes what has changed and was not pushed before the last stop."""
        for document in self._subscribers.documents():
            self._push(document)

    async def stop(self) -> None:
        """Cancels all pushes; the next start begins them again."""
        await self._tasks.stop()

    def changed(self, place: DocumentKey) -> None:
        """Renders and pushes the documents of a feed or an output anew."""
        self._documents.changed(place)
        for one in get_args(Format):
            self._push(DocumentPlace(place, one))

    def readers_changed(self, place: DocumentKey) -> None:
        """Ends the subscriptions that may not read the documents any more."""
        self._tasks.own(self._subscribers.recheck(place))

    def _push(self, document: DocumentPlace) -> None:
        self._waiting[document] = None
        if document not in self._running:
            self._running.add(document)
            self._tasks.own(self._run(document))

    async def _run(self, document: DocumentPlace) -> None:
        """Pushes until there is no newer version: changes meanwhile become one."""
        try:
            while document in self._waiting:
                del self._waiting[document]
                try:
                    await self._push_once(document)
                except (DocumentMissing, DocumentGone):
                    break
                except WarrenError as error:
                    log.warning("push of '%s' postponed: %s", document.path, error)
                    self._waiting[document] = None
                    await asyncio.sleep(AGAIN_S)
        finally:
            self._waiting.pop(document, None)
            self._running.discard(document)

    async def _push_once(self, document: DocumentPlace) -> None:
        if not await self._topics.queues(document.path):
            return
        rendered = await self._documents.get(document)
        base_url = self._base_of(document)
        await self._topics.offer_own(
            document.path,
            base_url + document.path,
            MEDIA_TYPES[document.format],
            rendered.body(base_url),
        )

    def _base_of(self, document: DocumentPlace) -> str:
        """Returns the base URL of a document, looked up once: it is searched in all
        subscriptions."""
        base_url = self._bases.get(document)
        if base_url is None:
            found = self._subscribers.base_url(document)
            if found is None:
                return self._base_url
            base_url = self._bases[document] = found
        return base_url
