"""Ends subscriptions to documents of this hub whose subscribers may not read them any more."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from ...core.errors import WarrenError
from ..owner_rights import EXTERNAL
from ..subscriptions.active import ActiveSubscription
from ..subscriptions.store import SubscriptionStore
from ..topics.document_key import DocumentKey, DocumentPlace, read_path
from .readers import DocumentReader, DocumentReaders, token_of

GONE = "the feed was removed"
REFUSED = "its owner may not read the document any more"

log = logging.getLogger(__name__)


class DocumentSubscribers:
    """The subscriptions to documents of this hub. `is_there` returns whether there is a feed or an
    output."""

    def __init__(
        self,
        store: SubscriptionStore,
        readers: DocumentReaders,
        is_there: Callable[[DocumentKey], bool],
    ) -> None:
        self._store = store
        self._readers = readers
        self._is_there = is_there

    def documents(self) -> set[DocumentPlace]:
        """Returns the documents that have subscriptions."""
        return {document for _, document in self._all()}

    def base_url(self, document: DocumentPlace) -> str | None:
        """Returns the base URL at which the first subscriber has reached the hub, None without
        subscriptions."""
        bases = (active.subscription.base_url for active, one in self._all() if one == document)
        return next(filter(None, bases), None)

    async def recheck(self, place: DocumentKey) -> None:
        """Ends the subscriptions to a place that is gone, or that they may not read."""
        for active, document in list(self._all()):
            if document.place == place:
                reason = self._refusal(active, place)
                if reason is not None:
                    await self._end(active, reason)

    def _all(self) -> Iterator[tuple[ActiveSubscription, DocumentPlace]]:
        for active in self._store.all():
            if active.subscription.source in EXTERNAL:
                document = read_path(active.subscription.topic)
                if document is not None:
                    yield active, document

    def _refusal(self, active: ActiveSubscription, place: DocumentKey) -> str | None:
        if not self._is_there(place):
            return GONE
        subscription = active.subscription
        reader = DocumentReader(token_of(subscription.topic_url), subscription.owner)
        return None if self._readers.may_read(place, reader) else REFUSED

    async def _end(self, active: ActiveSubscription, reason: str) -> None:
        subscription_id = active.subscription.id
        log.info("subscription %s ends: %s", subscription_id, reason)
        try:
            await self._store.end(active, reason)
        except WarrenError as error:
            log.error("subscription %s can't be ended: %s", subscription_id, error)
