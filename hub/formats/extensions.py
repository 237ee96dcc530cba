"""Elements that the model has no member for: kept as text, and written again.

They are in `_xml` (elements of foreign namespaces, for Atom and RSS alike), `_atom` and `_rss`
(elements of one format, for that alone), as `{"elements": ["<geo:lat ...>", ...]}`. The texts may
be anybody's, as items of outputs come from any exchange; so they are parsed when they are written,
and left out where they do not belong or are not harmless.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree.ElementTree import Element

from .element_rules import is_valid
from .namespaces import MATHML, SVG
from .safe_html import harmless, is_active
from .xml_tree import parse_text
from .xml_writing import standalone

_MAX_BYTES = 64 * 1024
"""The limit of the elements of an item or head; the rest is left out, because some programs put
whole documents there."""
_SINGLE = frozenset(("atom:rights", "atom:source", "comments", "source"))
_OWN = {
    "_atom": frozenset(("atom:contributor", "atom:link", "atom:rights", "atom:source")),
    "_rss": frozenset(("comments", "source")),
}
"""Elements of the formats that an item is not written with otherwise."""
_PAGES = ("xhtml:", f"{{{SVG}}}", f"{{{MATHML}}}")
"""How the names of elements begin that a browser shows as a page, wherever they are."""


def add_elements(
    extensions: dict[str, Any], name: str, elements: Iterable[Element], prefixes: Mapping[str, str]
) -> None:
    """Adds elements to an extension."""
    kept: list[str] = []
    left = _MAX_BYTES
    for one in elements:
        one.tail = None
        text = standalone(one, prefixes)
        left -= len(text)
        if left < 0:
            break
        kept.append(text)
    if kept:
        extensions[name] = {"elements": kept}


def written(extensions: Mapping[str, Any], *names: str, in_default: bool = False) -> str:
    """Returns the elements of these extensions; what is no element is left out.

    `in_default` is whether they come where a default namespace is in force.
    """
    parts: list[str] = []
    seen: set[str] = set()
    for name in names:
        for tree in filter(None, map(parse_text, _texts(extensions.get(name)))):
            tag = tree.root.tag
            if tag not in seen and _belongs(name, tree.root) and _is_fit(tree.root):
                parts.append(standalone(tree.root, tree.prefixes, in_default=in_default) + "\n")
                seen |= {tag} & _SINGLE
    return "".join(parts)


def _belongs(name: str, root: Element) -> bool:
    """Returns whether an element is one of this extension; an alternate is the item's own."""
    own = _OWN.get(name)
    if own is None:
        return root.tag[:1] == "{" or (":" in root.tag and not root.tag.startswith("atom:"))
    is_alternate = root.tag == "atom:link" and root.get("rel", "alternate") == "alternate"
    return root.tag in own and not is_alternate


def _is_fit(root: Element) -> bool:
    """Makes an element valid and harmless; returns False for what can't be made so."""
    for one in root.iter():
        texts = (one.text or "", one.tail or "")
        if one.tag.startswith(_PAGES) or any(map(is_active, (*texts, *one.attrib.values()))):
            return False
        if any("<" in text for text in texts):
            one.text, one.tail = map(harmless, texts)
    return is_valid(root)


def _texts(extension: Any) -> list[str]:
    elements = extension.get("elements") if isinstance(extension, dict) else None
    return [one for one in elements if isinstance(one, str)] if isinstance(elements, list) else []
