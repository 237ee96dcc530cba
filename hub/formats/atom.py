"""Writes Atom 1.0 (RFC 4287), with RFC 5005 for older items."""

from __future__ import annotations

from .dates import EPOCH, newest
from .extensions import written
from .model import Attachment, Author, FeedDocument, FeedHead, Item
from .sanitising import valid_head, valid_item
from .urls import DocumentUrls, as_iri
from .xml_writing import DECLARATION, attributes_of, declarations, element, empty

_ROOT = f'<feed xmlns="http://www.w3.org/2005/Atom"{declarations("itunes", "media")}'


def write_atom(document: FeedDocument, urls: DocumentUrls) -> bytes:
    """Returns the document; ids that are no IRIs become ones (`urls.as_iri`)."""
    head = valid_head(document.head, urls)
    items = [valid_item(one) for one in document.items]
    parts = [
        f"{DECLARATION}{_ROOT}{attributes_of({'xml:lang': head.language})}>\n",
        element("title", head.title),
        element("id", as_iri(urls.document_url)),
        element("updated", newest(items) or EPOCH),
        _links(head, urls),
        element("subtitle", head.description),
        *map(_author, head.authors or [Author(head.title)]),
        *(empty("category", {"term": tag}) for tag in head.tags),
        element("logo", head.icon),
        element("icon", head.favicon),
        element("rights", head.copyright),
        written(head.extensions, "_xml", in_default=True),
        *map(_entry, items),
        "</feed>\n",
    ]
    return "".join(parts).encode()


def _links(head: FeedHead, urls: DocumentUrls) -> str:
    relations = [
        ("self", urls.self_url, "application/atom+xml"),
        *(("hub", hub, "") for hub in urls.hub_urls),
        ("next", urls.next_url, ""),
        ("alternate", head.home_page_url, "text/html"),
    ]
    return "".join(
        empty("link", {"rel": relation, "type": kind, "href": url})
        for relation, url, kind in relations
        if url
    )


def _entry(item: Item) -> str:
    url = item.url
    has_content = bool(item.content_html or item.content_text)
    parts = [
        f"<entry{attributes_of({'xml:lang': item.language})}>\n",
        element("id", as_iri(item.id)),
        element("title", item.title) or "<title/>\n",
        element("updated", item.date_modified or item.date_published or EPOCH),
        element("published", item.date_published),
        empty("link", {"rel": "alternate", "href": url}) if url else "",
        empty("link", {"rel": "related", "href": item.external_url}) if item.external_url else "",
        *map(_author, item.authors),
        *(empty("category", {"term": tag}) for tag in item.tags),
        *map(_enclosure, item.attachments),
        empty("media:thumbnail", {"url": item.image}) if item.image else "",
        element("summary", item.summary),
        _content(item) if has_content or not url else "",
        written(item.extensions, "_atom", "_xml", in_default=True),
        "</entry>\n",
    ]
    return "".join(parts)


def _content(item: Item) -> str:
    """Returns the content: an entry without an alternate must have one (RFC 4287 4.1.1)."""
    if item.content_html:
        return element("content", item.content_html, {"type": "html"})
    return element("content", item.content_text, {"type": "text"}) or '<content type="text"/>\n'


def _author(author: Author) -> str:
    email = author.url.removeprefix("mailto:")
    is_email = email != author.url
    return (
        "<author>\n"
        + element("name", author.name or email)
        + element("email" if is_email else "uri", email)
        + "</author>\n"
    )


def _enclosure(attachment: Attachment) -> str:
    duration_s = attachment.duration_in_seconds
    enclosure = {
        "rel": "enclosure",
        "href": attachment.url,
        "type": attachment.mime_type,
        "length": str(attachment.size_in_bytes or ""),
        "title": attachment.title,
    }
    duration = element("itunes:duration", f"{duration_s:.0f}" if duration_s else "")
    return empty("link", enclosure) + duration
