"""Decides who may read the documents of feeds and outputs."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from ..feeds.feed import Feed
from ..feeds.feeds import Feeds
from ..topics.document_key import DocumentKey
from .output import OutputKey
from .outputs import Outputs


@dataclass(frozen=True, slots=True)
class DocumentReader:
    """The reader of a document: a token and the name of a user, each empty without one."""

    token: str = ""
    user: str = ""
    is_administrator: bool = False


class DocumentReaders:
    """Decides who may read a document. Public documents are read by everybody, those of private
    feeds by their owner, those of outputs with tokens by who has one of them, and by their owner;
    all by administrators."""

    def __init__(self, feeds: Feeds, outputs: Outputs) -> None:
        self._feeds = feeds
        self._outputs = outputs

    def is_public(self, place: DocumentKey) -> bool:
        """Returns whether everybody may read it; a place that does not exist is public."""
        return self._owner(place) is None

    def is_feed(self, place: DocumentKey) -> bool:
        """Returns whether it is a feed's, which has no tokens."""
        return self._feed(place) is not None

    def may_read(self, place: DocumentKey, reader: DocumentReader) -> bool:
        owner = self._owner(place)
        if owner is None or reader.is_administrator or reader.user == owner:
            return True
        if self.is_feed(place) or not reader.token:
            return False
        return self._outputs.tokens.find(reader.token, OutputKey(*place)) is not None

    def _owner(self, place: DocumentKey) -> str | None:
        """Returns the owner of what is not public."""
        feed = self._feed(place)
        if feed is not None:
            return None if feed.request.visibility == "public" else feed.owner
        output = self._outputs.get(OutputKey(*place))
        if output is None or output.definition.visibility == "public":
            return None
        return output.owner

    def _feed(self, place: DocumentKey) -> Feed | None:
        feed = self._feeds.get(place.name)
        return feed if feed is not None and feed.vhost == place.vhost else None


def token_of(url: str) -> str:
    """Returns the token in the query of a document's URL, "" without one."""
    return parse_qs(urlsplit(url).query).get("token", [""])[0]
