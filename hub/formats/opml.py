"""OPML: lists of feeds, as feed readers export and import them.

On the way in and out only comments and blanks between elements are lost: the version, the head,
folders, the order, outlines that are no feeds, and attributes that nobody here knows are kept.
"""

from __future__ import annotations

from itertools import count
from xml.etree.ElementTree import Element, ParseError

import msgspec

from .namespaces import URIS
from .read_feed import FeedRefused
from .xml_tree import parse
from .xml_writing import DECLARATION, attributes_of, element, escape, quoted, standalone

MAX_OUTLINES = 20_000
"""Feeds and folders of a document."""


class Outline(msgspec.Struct, omit_defaults=True):
    """A feed, a folder of outlines, or any other outline that a program has put there."""

    attributes: dict[str, str]
    """By their names; `{namespace}name` where they have a namespace."""
    children: list[Outline] = msgspec.field(default_factory=list)
    content: str = ""
    """The text inside, where some programs have their settings."""
    id: str = ""
    """The id of the registered feed; it is not written."""

    @property
    def title(self) -> str:
        """The title that a feed reader shows."""
        return self.get("text") or self.get("title")

    @property
    def feed_url(self) -> str:
        """The URL of the feed, "" for a folder."""
        return self.get("xmlUrl").strip()

    def get(self, name: str) -> str:
        """Returns an attribute; some programs write `xmlurl`."""
        for one, value in self.attributes.items():
            if one.lower() == name.lower():
                return value
        return ""


class Opml(msgspec.Struct, omit_defaults=True):
    """A document."""

    outlines: list[Outline]
    head: list[str] = msgspec.field(default_factory=list)
    """The elements of its head, such as `title`, as they are written."""
    prefixes: dict[str, str] = msgspec.field(default_factory=dict)
    """The prefixes of the namespaces of attributes, by their URIs."""
    attributes: dict[str, str] = msgspec.field(default_factory=lambda: {"version": "2.0"})
    """Of the document; others than its version are rare."""


def titled(title: str) -> Opml:
    """Returns a document without outlines."""
    return Opml([], [element("title", title)])


def read_opml(body: bytes) -> Opml:
    """Returns the outlines. Raises `FeedRefused`. It is too slow for the event loop."""
    try:
        tree = parse(body)
    except (ParseError, LookupError, ValueError) as error:
        raise FeedRefused(f"it is not well-formed XML: {error}") from error
    root, head, outlines = tree.root, tree.root.find("head"), tree.root.find("body")
    if root.tag.lower() != "opml" or outlines is None:
        raise FeedRefused(f"it is not an OPML document: its first element is <{root.tag[:50]}>")
    count = sum(1 for _ in outlines.iter("outline"))
    if count > MAX_OUTLINES:
        raise FeedRefused(f"it has {count} outlines, {MAX_OUTLINES} are taken; divide it")
    prefixes = {uri: prefix for uri, prefix in tree.prefixes.items() if prefix}
    written = [] if head is None else [f"{standalone(one, prefixes)}\n" for one in head]
    found = [_outline(one) for one in outlines.iterfind("outline")]
    return Opml(found, written, prefixes, dict(root.items()))


def write_opml(document: Opml) -> bytes:
    """Returns the document."""
    prefixes = _prefixes(document)
    declared = attributes_of({f"xmlns:{one}": uri for uri, one in prefixes.items() if one != "xml"})
    parts = [f"{DECLARATION}<opml{_attributes(document.attributes, prefixes)}{declared}>\n<head>\n"]
    parts += [*document.head, "</head>\n<body>\n"]
    for one in document.outlines:
        _write(one, prefixes, parts)
    parts.append("</body>\n</opml>\n")
    return "".join(parts).encode()


def _outline(tree: Element) -> Outline:
    children = [_outline(one) for one in tree.iterfind("outline")]
    return Outline(dict(tree.items()), children, (tree.text or "").strip())


def _write(outline: Outline, prefixes: dict[str, str], parts: list[str]) -> None:
    written = _attributes(outline.attributes, prefixes)
    if not (outline.children or outline.content):
        parts.append(f"<outline{written}/>\n")
        return
    parts.append(f"<outline{written}>{escape(outline.content)}\n")
    for one in outline.children:
        _write(one, prefixes, parts)
    parts.append("</outline>\n")


def _prefixes(document: Opml) -> dict[str, str]:
    """Returns a prefix for the namespace of each attribute: that of the document, if it has one."""
    found = {URIS["xml"]: "xml"}
    waiting = [Outline(document.attributes, document.outlines)]
    while waiting:
        one = waiting.pop()
        waiting += one.children
        for uri in (name[1:].rpartition("}")[0] for name in one.attributes if name[:1] == "{"):
            if uri not in found:
                found[uri] = _free_prefix(document.prefixes.get(uri, ""), set(found.values()))
    return found


def _free_prefix(wanted: str, taken: set[str]) -> str:
    """Returns another prefix where it is taken: lists of several documents may have the same."""
    if wanted and wanted not in taken:
        return wanted
    return next(one for number in count(1) if (one := f"ns{number}") not in taken)


def _attributes(attributes: dict[str, str], prefixes: dict[str, str]) -> str:
    return "".join(f" {_name(one, prefixes)}={quoted(value)}" for one, value in attributes.items())


def _name(name: str, prefixes: dict[str, str]) -> str:
    if name[:1] != "{":
        return name
    uri, _, local = name[1:].rpartition("}")
    return f"{prefixes[uri]}:{local}"
