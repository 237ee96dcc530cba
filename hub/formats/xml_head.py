"""Reads the head of a feed in Atom, RSS or RDF, element by element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.etree.ElementTree import Element

from .extensions import add_elements
from .hints import read_hints
from .html_text import absolute
from .model import Author, FeedHead, FeedHub
from .numbers import size_bytes
from .read_feed import MAX_LISTED, Cloud, PollHints
from .xml_values import (
    HTML_LINK_TYPES,
    atom_author,
    atom_content,
    base_of,
    html_content,
    rss_author,
    rss_text,
    text_of,
)


class XmlHead:
    """The head of a feed that is being read; of several elements of a kind the first counts."""

    def __init__(self, language: str, base: str) -> None:
        self.head = FeedHead(language=language)
        self.cloud: Cloud | None = None
        self._base = base
        self._texts: dict[str, str] = {}
        """The texts of elements from which hints are read."""
        self._skipped: dict[str, list[str]] = {"skiphours": [], "skipdays": []}
        self._other_description = ""
        """The description of iTunes, which counts if the feed has none."""
        self._unknown: list[Element] = []

    def read(self, channel: Element, item_tag: str, prefixes: Mapping[str, str]) -> FeedHead:
        """Returns the head."""
        for child in channel:
            if child.tag != item_tag:
                self._take(child)
        self.head.description = self.head.description or self._other_description
        add_elements(self.head.extensions, "_xml", self._unknown, prefixes)
        return self.head

    def hints(self) -> PollHints:
        """Returns when the feed wants to be fetched."""
        texts, skipped = self._texts, self._skipped
        return read_hints(
            texts.get("ttl", ""),
            skipped["skiphours"],
            skipped["skipdays"],
            texts.get("sy:updateperiod", ""),
            texts.get("sy:updatefrequency", ""),
        )

    def _take(self, child: Element) -> None:
        tag = child.tag.lower()
        if tag in ("ttl", "sy:updateperiod", "sy:updatefrequency"):
            self._texts[tag] = text_of(child)
        elif tag in self._skipped:
            self._skipped[tag] += [text_of(one) for one in child]
        elif handler := _HANDLERS.get(tag):
            handler(self, child)
        elif ":" in child.tag and tag.partition(":")[0] not in ("atom", "rdf", "sy"):
            self._unknown.append(child)

    def _title(self, child: Element) -> None:
        self.head.title = self.head.title or rss_text(child)

    def _atom_title(self, child: Element) -> None:
        content = atom_content(child, self._base)
        self.head.title = self.head.title or (content.plain() if content else "")

    def _description(self, child: Element) -> None:
        found = html_content(child, self._base)
        self.head.description = self.head.description or found.plain()

    def _module_description(self, child: Element) -> None:
        self._other_description = self._other_description or text_of(child)

    def _subtitle(self, child: Element) -> None:
        content = atom_content(child, self._base)
        self.head.description = self.head.description or (content.plain() if content else "")

    def _link(self, child: Element) -> None:
        url = absolute(self._base, text_of(child) or child.get("href", ""))
        self.head.home_page_url = self.head.home_page_url or url

    def _atom_link(self, child: Element) -> None:
        href = absolute(base_of(child, self._base), child.get("href", ""))
        relations = child.get("rel", "alternate").lower().split()
        if "hub" in relations and href and len(self.head.hubs) < MAX_LISTED:
            self.head.hubs.append(FeedHub("WebSub", href))
        if "self" in relations:
            self.head.feed_url = self.head.feed_url or href
        if "alternate" in relations and child.get("type", "").lower() in HTML_LINK_TYPES:
            self.head.home_page_url = self.head.home_page_url or href

    def _author(self, child: Element) -> None:
        found = rss_author(text_of(child)) if not len(child) else atom_author(child, self._base)
        authors = self.head.authors
        if found != Author() and found not in authors and len(authors) < MAX_LISTED:
            self.head.authors.append(found)

    def _itunes_author(self, child: Element) -> None:
        if not self.head.authors:
            self._author(child)

    def _category(self, child: Element) -> None:
        tag = child.get("label") or child.get("term") or child.get("text") or text_of(child)
        if tag and tag not in self.head.tags and len(self.head.tags) < MAX_LISTED:
            self.head.tags.append(tag)

    def _rights(self, child: Element) -> None:
        content = atom_content(child, self._base) if ":" in child.tag else None
        text = content.plain() if content else rss_text(child)
        self.head.copyright = self.head.copyright or text

    def _language(self, child: Element) -> None:
        self.head.language = text_of(child).replace("_", "-") or self.head.language

    def _image(self, child: Element) -> None:
        stated = child.get("href") or child.get("url") or child.findtext("url")
        url = stated or ("" if len(child) else text_of(child))
        self.head.icon = self.head.icon or absolute(self._base, url)

    def _favicon(self, child: Element) -> None:
        self.head.favicon = absolute(self._base, text_of(child))

    def _take_cloud(self, child: Element) -> None:
        port = size_bytes(child.get("port", ""))
        if child.get("domain") and port and port < 65_536:
            names = ("path", "registerProcedure", "protocol")
            path, procedure, protocol = (child.get(name, "") for name in names)
            domain = child.get("domain", "")
            self.cloud = Cloud(domain, port, path, procedure, protocol.lower())


_HANDLERS: dict[str, Callable[[XmlHead, Element], None]] = {
    "atom:author": XmlHead._author,
    "atom:copyright": XmlHead._rights,
    "atom:category": XmlHead._category,
    "atom:icon": XmlHead._favicon,
    "atom:link": XmlHead._atom_link,
    "atom:logo": XmlHead._image,
    "atom:rights": XmlHead._rights,
    "atom:subtitle": XmlHead._subtitle,
    "atom:tagline": XmlHead._subtitle,
    "atom:title": XmlHead._atom_title,
    "author": XmlHead._author,
    "category": XmlHead._category,
    "cloud": XmlHead._take_cloud,
    "copyright": XmlHead._rights,
    "dc:creator": XmlHead._author,
    "dc:description": XmlHead._description,
    "dc:language": XmlHead._language,
    "dc:rights": XmlHead._rights,
    "dc:subject": XmlHead._category,
    "dc:title": XmlHead._title,
    "description": XmlHead._description,
    "image": XmlHead._image,
    "itunes:author": XmlHead._itunes_author,
    "itunes:category": XmlHead._category,
    "itunes:image": XmlHead._image,
    "itunes:subtitle": XmlHead._module_description,
    "itunes:summary": XmlHead._module_description,
    "language": XmlHead._language,
    "link": XmlHead._link,
    "managingeditor": XmlHead._author,
    "title": XmlHead._title,
}
