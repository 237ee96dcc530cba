"""Finds the feed or the output behind a document."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import HubError
from ..feeds.feeds import Feeds
from ..feeds.items import ItemStore
from ..feeds.stored_item import StoredItem, feed_collection
from ..formats.model import FeedHead
from ..topics.document_key import DocumentKey
from .output import Output, OutputKey
from .outputs import Outputs


class DocumentMissing(HubError):
    """There is no feed and no output of this name."""

    status = 404
    title = "Not found"


class DocumentGone(HubError):
    """The feed or output was removed."""

    status = 410
    title = "Gone"


class Publication(NamedTuple):
    """The feed or the output of a document."""

    head: FeedHead
    collection: str
    """The collection of its stored items."""
    changed_at: float
    """When the head was changed last; wall time."""
    scope: str = ""
    """In front of ids that are no URIs: an output's items have such ids already."""
    max_age_s: float | None = None
    """Older items are left out."""


class Publications:
    """Finds feeds and outputs by the place of their documents. A feed comes before an output of the
    same name."""

    def __init__(self, feeds: Feeds, outputs: Outputs, items: ItemStore) -> None:
        self._feeds = feeds
        self._outputs = outputs
        self._items = items

    def has(self, place: DocumentKey) -> bool:
        """Returns whether there is a feed or an output."""
        return self._is_feed(place) or self._outputs.get(OutputKey(*place)) is not None

    async def find(self, place: DocumentKey) -> Publication:
        """Returns the feed or the output; raises `DocumentMissing`, `DocumentGone` and
        `StorageFailed`."""
        if self._is_feed(place):
            return await self._of_feed(place)
        key = OutputKey(*place)
        output = self._outputs.get(key)
        if output is not None:
            return _of_output(output)
        if self._outputs.is_removed(key):
            raise DocumentGone(
                f"'{place.name}' in vhost '{place.vhost}' was removed",
                field="document",
                value=place.name,
            )
        reason = f"there is no feed and no output '{place.name}' in vhost '{place.vhost}'"
        raise DocumentMissing(reason, field="document", value=place.name)

    async def page(
        self, publication: Publication, before: int | None, limit: int
    ) -> list[StoredItem]:
        """Returns the newest items, or the newest before a number. Raises `StorageFailed`."""
        return await self._items.page(publication.collection, before, limit)

    def _is_feed(self, place: DocumentKey) -> bool:
        feed = self._feeds.get(place.name)
        return feed is not None and feed.vhost == place.vhost

    async def _of_feed(self, place: DocumentKey) -> Publication:
        feed = self._feeds.get(place.name)
        assert feed is not None
        head = await self._feeds.head(feed) or FeedHead(title=feed.name)
        collection = feed_collection(feed.name)
        changed_at = feed.status.changed_at or feed.status.registered_at
        return Publication(head, collection, changed_at, scope=feed.name)


def _of_output(output: Output) -> Publication:
    head = FeedHead(title=output.title, description=output.definition.description)
    max_age_s = output.definition.filter.max_age_s
    return Publication(head, output.key.collection, output.changed_at, max_age_s=max_age_s)
