"""Trees of untrusted XML: no declarations, hence no entities, and limits of depth and of
items."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from ..links.safe_xml import DECLARATIONS, MAX_DEPTH, has_declarations
from .namespaces import known_name
from .read_feed import MAX_ITEMS, FeedRefused

_CHUNK_BYTES = 256 * 1024
"""expat scans an unfinished token again in each chunk."""
_ITEMS = frozenset(("item", "atom:entry"))
_ITEM_DEPTHS = (2, 3)
"""The depths of items: below the root, or below the channel."""


class Tree:
    """A document; the names of its elements are those of `known_name`."""

    def __init__(self, root: Element, builder: _Builder) -> None:
        self.root = root
        self.prefixes = builder.prefixes
        """The first prefix of each namespace that the document declares, by its URI."""
        self.has_more_items = builder.item_count > MAX_ITEMS
        """Whether there is more than `MAX_ITEMS`; the rest of the document is not in the tree."""


def parse(body: bytes, encoding: str | None = None) -> Tree:
    """Returns the tree. The encoding is the document's, unless it is given.

    Raises `FeedRefused` for what breaks the rules, and `ParseError` for what is not well-formed in
    its encoding; `LookupError` and `ValueError` for an encoding that expat can't read.
    """
    builder = _Builder(body, encoding)
    parser = XMLParser(target=builder, encoding=encoding)
    try:
        for start in range(0, len(body), _CHUNK_BYTES):
            parser.feed(body[start : start + _CHUNK_BYTES])
        parser.close()
    except _Enough:
        pass  # The builder has as many items as are read.
    assert builder.root is not None  # else there was an error
    return Tree(builder.root, builder)


def parse_text(text: str) -> Tree | None:
    """Returns the element that the text is, None for any other text."""
    try:
        return parse(text.encode(errors="replace"))
    except (ParseError, FeedRefused):
        return None


class _Enough(Exception):
    """Ends the parsing: the maximum of items has been read."""


class _Builder(TreeBuilder):
    """Checks the events of expat before they become elements."""

    def __init__(self, body: bytes, encoding: str | None) -> None:
        super().__init__()
        self._body = body
        self._encoding = encoding
        self.prefixes: dict[str, str] = {}
        self.root: Element | None = None
        self.item_count = 0
        self._depth = 0
        self._names: dict[str, str] = {}

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        if has_declarations(self._body, self._encoding):
            raise FeedRefused(DECLARATIONS)

    def start_ns(self, prefix: str, uri: str) -> None:
        self.prefixes.setdefault(uri, prefix)

    def start(self, tag: str, attrs: dict[Any, Any], /) -> Element:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise FeedRefused(f"elements are more than {MAX_DEPTH} deep")
        name = self._names.get(tag)
        if name is None:
            name = self._names[tag] = known_name(tag)
        element = super().start(name, attrs)
        if self.root is None:
            self.root = element
        return element

    def end(self, tag: str, /) -> Element:
        found = super().end(self._names[tag])
        if self._depth in _ITEM_DEPTHS and found.tag in _ITEMS:
            self.item_count += 1
            if self.item_count > MAX_ITEMS:
                raise _Enough
        self._depth -= 1
        return found
