"""Reads an entry of Atom or an item of RSS or RDF, element by element."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar
from xml.etree.ElementTree import Element

from .dates import of_feed
from .extensions import add_elements
from .html_text import absolute
from .model import Attachment, Item
from .numbers import duration_s
from .read_feed import MAX_LISTED
from .urls import is_iri
from .xml_values import (
    HTML_LINK_TYPES,
    TypedText,
    atom_author,
    atom_content,
    attachment,
    base_of,
    html_content,
    language_of,
    rss_author,
    rss_text,
    text_of,
)

_ABOUT = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about"
_WEB = re.compile(r"https?://[^\s\[\]]+\Z", re.IGNORECASE)


class XmlItem:
    """An item that is being read: of elements of a kind the first counts, of dates the last."""

    def __init__(self, element: Element, base: str) -> None:
        self.item = Item(id=element.get(_ABOUT, ""), language=language_of(element))
        self._base = base_of(element, base)
        self._guid_link = ""
        self._other_link = ""
        """An alternate that is no HTML."""
        self._other_title = ""
        """The title of a module, which counts if the item has none."""
        self._contents: list[TypedText] = []
        self._descriptions: list[TypedText] = []
        self._duration_s: float | None = None
        self._unknown: list[Element] = []

    def read(self, element: Element, prefixes: Mapping[str, str]) -> Item:
        """Returns the item."""
        for child in element:
            self._take(child)
        item = self.item
        item.url = item.url or self._guid_link or self._other_link
        item.title = item.title or self._other_title
        self._choose_content()
        if item.attachments and item.attachments[0].duration_in_seconds is None:
            item.attachments[0].duration_in_seconds = self._duration_s
        if self._unknown:
            self._keep_unknown(prefixes)
        return item

    def _take(self, child: Element) -> None:
        handler = _HANDLERS.get(child.tag.lower())
        if handler is not None:
            handler(self, child)
        else:
            self._unknown.append(child)

    def _group(self, group: Element) -> None:
        for child in group:
            self._take(child)

    def _keep_unknown(self, prefixes: Mapping[str, str]) -> None:
        of = {"_xml": [], "_atom": [], "_rss": []}  # type: dict[str, list[Element]]
        for one in self._unknown:
            if one.tag.startswith("atom:"):
                of["_atom"].append(one)
            elif ":" in one.tag:
                of["_xml"].append(one)
            elif one.tag in ("comments", "source"):
                of["_rss"].append(one)
        for name, elements in of.items():
            add_elements(self.item.extensions, name, elements, prefixes)

    def _choose_content(self) -> None:
        """Chooses content and summary: a description beside a content is a summary; alone it is the
        content."""
        contents = [one for one in self._contents if one.text]
        descriptions = [one for one in self._descriptions if one.text]
        if not contents and descriptions:
            contents, descriptions = [max(descriptions, key=lambda one: len(one.text))], []
        for one in contents:
            if one.is_html:
                self.item.content_html = self.item.content_html or one.text
            else:
                self.item.content_text = self.item.content_text or one.text
        if descriptions and descriptions[0] not in contents:
            self.item.summary = descriptions[0].plain()

    def _title(self, child: Element) -> None:
        self.item.title = self.item.title or rss_text(child)

    def _module_title(self, child: Element) -> None:
        self._other_title = self._other_title or rss_text(child)

    def _atom_title(self, child: Element) -> None:
        content = atom_content(child, self._base)
        if content is not None:
            self.item.title = content.plain()

    def _id(self, child: Element) -> None:
        """Reads an id; one that is a URL is the link of an item without one, as in RSS."""
        self.item.id = text = text_of(child) or self.item.id
        is_link = child.get("isPermaLink", "true").lower() == "true"
        self._guid_link = text if is_link and _WEB.match(text) else ""

    def _link(self, child: Element) -> None:
        if child.get("href"):
            self._atom_link(child)  # some feeds forget its namespace
        else:
            self.item.url = self.item.url or absolute(self._base, text_of(child))

    def _atom_link(self, child: Element) -> None:
        base = base_of(child, self._base)
        href = absolute(base, child.get("href", "") or text_of(child))
        match child.get("rel", "alternate").lower():
            case "alternate":
                if child.get("type", "").lower() in HTML_LINK_TYPES:
                    self.item.url = self.item.url or href
                self._other_link = self._other_link or href
            case "enclosure":
                self._attach(attachment(child, base))
            case "related":
                self.item.external_url = self.item.external_url or href
            case "self" | "edit" | "edit-media" | "hub":
                pass
            case _ if is_iri(href):
                child.set("href", href)
                self._unknown.append(child)
            case _:
                pass  # it leads nowhere

    def _content(self, child: Element) -> None:
        self._contents.append(html_content(child, base_of(child, self._base)))

    def _atom_content(self, child: Element) -> None:
        base = base_of(child, self._base)
        if child.get("src"):
            url = absolute(base, child.get("src", ""))
            self._attach(Attachment(url, child.get("type") or "application/octet-stream"))
        elif (content := atom_content(child, base)) is not None:
            self._contents.append(content)

    def _description(self, child: Element) -> None:
        self._descriptions.append(html_content(child, base_of(child, self._base)))

    def _summary(self, child: Element) -> None:
        content = atom_content(child, base_of(child, self._base))
        if content is not None:
            self._descriptions.append(content)

    def _plain_description(self, child: Element) -> None:
        """Reads a description of Media RSS or iTunes: they repeat what others say, so they count
        last."""
        if child.get("type") == "html":
            self._description(child)
        else:
            self._descriptions.append(TypedText(text_of(child)))

    def _published(self, child: Element) -> None:
        self.item.date_published = of_feed(text_of(child)) or self.item.date_published

    def _updated(self, child: Element) -> None:
        self.item.date_modified = of_feed(text_of(child)) or self.item.date_modified

    def _author(self, child: Element) -> None:
        author = rss_author(text_of(child)) if not len(child) else atom_author(child, self._base)
        if author.name or author.url:
            _add(author, self.item.authors)

    def _itunes_author(self, child: Element) -> None:
        if not self.item.authors:
            self._author(child)

    def _category(self, child: Element) -> None:
        self._tag(child.get("label") or child.get("term") or child.get("text") or text_of(child))

    def _keywords(self, child: Element) -> None:
        for one in text_of(child).split(","):
            self._tag(one.strip())

    def _tag(self, tag: str) -> None:
        if tag:
            _add(tag, self.item.tags)

    def _enclosure(self, child: Element) -> None:
        self._attach(attachment(child, self._base))

    def _attach(self, found: Attachment | None) -> None:
        attachments = self.item.attachments
        if found is not None and found.url not in [one.url for one in attachments]:
            _add(found, attachments)

    def _media_content(self, child: Element) -> None:
        self._enclosure(child)
        self._group(child)

    def _image(self, child: Element) -> None:
        url = child.get("href") or child.get("url") or text_of(child)
        self.item.image = self.item.image or absolute(self._base, url)

    def _duration(self, child: Element) -> None:
        self._duration_s = duration_s(text_of(child))

    def _language(self, child: Element) -> None:
        self.item.language = self.item.language or text_of(child)


T = TypeVar("T")


def _add(value: T, values: list[T]) -> None:
    """Adds a value once, as long as there are few."""
    if len(values) < MAX_LISTED and value not in values:
        values.append(value)


_HANDLERS: dict[str, Callable[[XmlItem, Element], None]] = {
    "atom:author": XmlItem._author,
    "atom:category": XmlItem._category,
    "atom:content": XmlItem._atom_content,
    "atom:created": XmlItem._published,
    "atom:id": XmlItem._id,
    "atom:issued": XmlItem._published,
    "atom:link": XmlItem._atom_link,
    "atom:modified": XmlItem._updated,
    "atom:published": XmlItem._published,
    "atom:summary": XmlItem._summary,
    "atom:title": XmlItem._atom_title,
    "atom:updated": XmlItem._updated,
    "author": XmlItem._author,
    "body": XmlItem._content,
    "category": XmlItem._category,
    "content:encoded": XmlItem._content,
    "dc:author": XmlItem._author,
    "dc:creator": XmlItem._author,
    "dc:date": XmlItem._updated,
    "dc:description": XmlItem._description,
    "dc:language": XmlItem._language,
    "dc:subject": XmlItem._category,
    "dc:title": XmlItem._module_title,
    "dcterms:created": XmlItem._published,
    "dcterms:issued": XmlItem._published,
    "dcterms:modified": XmlItem._updated,
    "description": XmlItem._description,
    "enclosure": XmlItem._enclosure,
    "fullitem": XmlItem._content,
    "guid": XmlItem._id,
    "id": XmlItem._id,
    "itunes:author": XmlItem._itunes_author,
    "itunes:category": XmlItem._category,
    "itunes:duration": XmlItem._duration,
    "itunes:image": XmlItem._image,
    "itunes:keywords": XmlItem._keywords,
    "itunes:subtitle": XmlItem._plain_description,
    "itunes:summary": XmlItem._plain_description,
    "itunes:title": XmlItem._module_title,
    "link": XmlItem._link,
    "media:category": XmlItem._category,
    "media:content": XmlItem._media_content,
    "media:description": XmlItem._plain_description,
    "media:group": XmlItem._group,
    "media:keywords": XmlItem._keywords,
    "media:thumbnail": XmlItem._image,
    "media:title": XmlItem._module_title,
    "pubdate": XmlItem._published,
    "published": XmlItem._published,
    "summary": XmlItem._summary,
    "title": XmlItem._title,
    "updated": XmlItem._updated,
    "xhtml:body": XmlItem._content,
    "xhtml:div": XmlItem._content,
}
