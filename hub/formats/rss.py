"""Writes RSS 2.0.11, with the modules that readers of it know."""

from __future__ import annotations

import html
import re

from .dates import as_rfc_822, newest
from .extensions import written
from .html_text import looks_like_html
from .model import Attachment, Author, FeedDocument, FeedHead, Item
from .sanitising import valid_head, valid_item
from .urls import DocumentUrls, as_guid
from .xml_writing import DECLARATION, declarations, element, empty

_ROOT = f'<rss version="2.0"{declarations("atom", "content", "dc", "itunes", "media")}>\n'
_TAG = re.compile("<[A-Za-z/!?]")


def write_rss(document: FeedDocument, urls: DocumentUrls) -> bytes:
    """Returns the document; link and description of the channel are required (RSS 2.0)."""
    head = valid_head(document.head, urls)
    items = [valid_item(one) for one in document.items]
    parts = [
        DECLARATION, _ROOT, "<channel>\n",
        element("title", _plain(head.title)),
        element("link", head.home_page_url or urls.document_url),
        element("description", _plain(head.description or head.title)),
        _atom_link("self", urls.self_url, "application/rss+xml"),
        *(_atom_link("hub", hub) for hub in urls.hub_urls),
        _atom_link("next", urls.next_url),
        element("language", head.language),
        element("copyright", _plain(head.copyright)),
        element("lastBuildDate", as_rfc_822(newest(items))),
        *map(_author, head.authors),
        *(element("category", tag) for tag in head.tags),
        _image(head),
        written(head.extensions, "_xml"),
        *map(_item, items),
        "</channel>\n</rss>\n",
    ]  # fmt: skip
    return "".join(parts).encode()


def _atom_link(relation: str, url: str, kind: str = "") -> str:
    return empty("atom:link", {"rel": relation, "type": kind, "href": url}) if url else ""


def _image(head: FeedHead) -> str:
    if not head.icon:
        return ""
    home = element("link", head.home_page_url or head.feed_url)
    inside = element("url", head.icon) + element("title", _plain(head.title)) + home
    return f"<image>\n{inside}</image>\n" + empty("itunes:image", {"href": head.icon})


def _item(item: Item) -> str:
    content = item.content_html or _as_html(item.content_text)
    is_both = bool(item.summary and content)
    parts = [
        "<item>\n",
        element("title", _plain(item.title)),
        element("link", item.url or item.external_url),
        element("guid", as_guid(item.id), {"isPermaLink": "false"}),
        element("description", _as_html(item.summary) or content) or "<description/>\n",
        element("content:encoded", content if is_both else ""),
        element("pubDate", as_rfc_822(item.date_published or item.date_modified)),
        element("atom:updated", item.date_modified),
        *map(_author, item.authors),
        *(element("category", tag) for tag in item.tags),
        _media(item),
        written(item.extensions, "_rss", "_xml"),
        "</item>\n",
    ]
    return "".join(parts)


def _plain(text: str) -> str:
    """Returns a plain text as readers guess what it is: RSS does not say whether it is HTML."""
    return _as_html(text) if looks_like_html(text) or _TAG.search(text) else text


def _as_html(text: str) -> str:
    """Returns plain text as HTML, which a description is (RSS 2.0)."""
    return html.escape(text, quote=False).replace("\n", "<br>\n")


def _author(author: Author) -> str:
    """Returns the author: email addresses have an element of their own in RSS 2.0; names alone are
    `dc:creator`."""
    email = author.url.removeprefix("mailto:")
    if email != author.url and "@" in email:
        return element("author", f"{email} ({author.name})" if author.name else email)
    return element("dc:creator", author.name or author.url)


def _media(item: Item) -> str:
    """Returns the attachments: an item has one enclosure in RSS; further ones are those of Media
    RSS."""
    parts = [empty("media:thumbnail", {"url": item.image}) if item.image else ""]
    for one in item.attachments[:1]:
        length = str(one.size_in_bytes or 0)
        parts.append(empty("enclosure", {"url": one.url, "length": length, "type": one.mime_type}))
        parts.append(element("itunes:duration", _seconds(one)))
        if item.image and one.mime_type.startswith(("audio/", "video/")):
            parts.append(empty("itunes:image", {"href": item.image}))
    return "".join([*parts, *map(_media_content, item.attachments[1:])])


def _media_content(attachment: Attachment) -> str:
    attributes = {
        "url": attachment.url,
        "type": attachment.mime_type,
        "fileSize": str(attachment.size_in_bytes or ""),
        "duration": _seconds(attachment),
    }
    return empty("media:content", attributes)


def _seconds(attachment: Attachment) -> str:
    duration_s = attachment.duration_in_seconds
    return f"{duration_s:.0f}" if duration_s else ""
