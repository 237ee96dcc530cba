"""Writes feeds in the three formats, from the same model."""

from __future__ import annotations

from collections.abc import Callable

from .atom import write_atom
from .json_writing import write_json_feed
from .media_types import Format
from .model import FeedDocument
from .rss import write_rss
from .urls import DocumentUrls

_WRITERS: dict[Format, Callable[[FeedDocument, DocumentUrls], bytes]] = {
    "atom": write_atom,
    "rss": write_rss,
    "json": write_json_feed,
}


def write(format: Format, document: FeedDocument, *, urls: DocumentUrls) -> bytes:
    """Returns the document in UTF-8, valid by the rules of its format whatever its texts are.

    What is required and absent is made up in the same way each time: the title is the document's
    URL, a date is 1970. It is too slow for the event loop when there are many items.
    """
    return _WRITERS[format](document, urls)
