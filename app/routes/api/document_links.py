"""The addresses of the documents of a feed or output."""

from __future__ import annotations

from typing import Final

from ....hub.topics.document_key import DocumentKey, DocumentPlace
from .call import Call

FORMATS: Final = ("atom", "rss", "json")


def document_links(call: Call, vhost: str, name: str) -> dict[str, str]:
    """Returns the addresses by format."""
    base_url, key = call.context.base_url(call.request), DocumentKey(vhost, name)
    return {one: base_url + DocumentPlace(key, one).path for one in FORMATS}
