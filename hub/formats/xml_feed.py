"""Reads well-formed Atom 1.0 and 0.3, RSS 0.9x to 2.0, and RDF (RSS 0.90 and 1.0)."""

from __future__ import annotations

from xml.etree.ElementTree import Element, ParseError

from .identity import identified
from .namespaces import ATOM_03, RSS_10
from .read_feed import MAX_ITEMS, MORE_ITEMS, ReadFeed, SourceFormat
from .xml_head import XmlHead
from .xml_item import XmlItem
from .xml_tree import Tree, parse
from .xml_values import base_of, language_of

_ROOTS: dict[str, tuple[SourceFormat, str]] = {
    "atom:feed": ("atom", "atom:entry"),
    "rss": ("rss", "item"),
    "rdf:RDF": ("rdf", "item"),
}


def read_xml_feed(url: str, body: bytes, encoding: str | None) -> ReadFeed | None:
    """Returns the feed, None for what is not well-formed, or of another kind. Raises `FeedRefused`.

    The encoding is that of the HTTP answer; None leaves it to the document.
    """
    try:
        tree = parse(body, encoding)
    except (ParseError, LookupError, ValueError):
        return None
    if tree.root.tag not in _ROOTS or _is_mixed(tree.root):
        return None
    return _read(url, tree)


def _is_mixed(root: Element) -> bool:
    """Returns whether items are named as in another format, which feedparser can read."""
    strange = ("atom:item",) if root.tag == "atom:feed" else ("entry", "atom:entry")
    places = (root, *root.iterfind("channel"))
    return any(child.tag in strange for place in places for child in place)


def _read(url: str, tree: Tree) -> ReadFeed:
    root, prefixes = tree.root, tree.prefixes
    kind, item_tag = _ROOTS[root.tag]
    found = root.find("channel") if kind != "atom" else None
    channel = root if found is None else found
    base = base_of(channel, base_of(root, url))
    head = XmlHead(language_of(root) or language_of(channel), base)
    feed = head.read(channel, item_tag, prefixes)
    places = [channel] if channel is root else [channel, root]  # items of RDF are in the root
    elements = [child for place in places for child in place if child.tag == item_tag]
    items = [XmlItem(one, base).read(one, prefixes) for one in elements[:MAX_ITEMS]]
    return ReadFeed(
        format=kind,
        version=_version(kind, tree),
        head=feed,
        items=identified(items),
        hints=head.hints(),
        self_url=feed.feed_url,
        hub_urls=tuple(one.url for one in feed.hubs),
        cloud=head.cloud,
        notices=(MORE_ITEMS,) if tree.has_more_items else (),
    )


def _version(kind: SourceFormat, tree: Tree) -> str:
    if kind == "atom":
        return "Atom 0.3" if ATOM_03 in tree.prefixes else "Atom 1.0"
    if kind == "rss":
        return f"RSS {tree.root.get('version', '')[:10]}".strip()
    return "RSS 1.0" if RSS_10 in tree.prefixes else "RSS 0.90"
