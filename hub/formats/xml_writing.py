"""Writes XML 1.0 that is well-formed, whatever its texts are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from xml.etree.ElementTree import Element

from .namespaces import URIS, XML

DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n'
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 2.2 does not have, not even as references."""
_BLANKS = {ord(one): f"&#{ord(one)};" for one in "\t\n"}
"""In the value of an attribute, which a parser takes for a space (XML 3.3.3)."""
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track")
)
"""Elements of HTML that have no end tag (HTML 13.1.2)."""


def clean(text: str) -> str:
    """Returns the text without the characters that XML can't have."""
    if text.isprintable():
        return text
    return _FORBIDDEN.sub("", text).replace("\r\n", "\n").replace("\r", "\n")


def escape(text: str) -> str:
    """Returns the text as character data."""
    return clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def quoted(text: str) -> str:
    """Returns the text as an attribute's value, with its quotation marks."""
    return '"' + escape(text).replace('"', "&quot;").translate(_BLANKS) + '"'


def element(name: str, text: str, attributes: Mapping[str, str] | None = None) -> str:
    """Returns an element with this text, "" without a text."""
    return f"<{name}{attributes_of(attributes)}>{escape(text)}</{name}>\n" if text else ""


def empty(name: str, attributes: Mapping[str, str]) -> str:
    """Returns an element without content; attributes without a value are left out."""
    return f"<{name}{attributes_of(attributes)}/>\n"


def attributes_of(attributes: Mapping[str, str] | None) -> str:
    """Returns the attributes that have a value, each with a blank before it."""
    if not attributes:
        return ""
    return "".join(f" {name}={quoted(value)}" for name, value in attributes.items() if value)


def declarations(*prefixes: str) -> str:
    """Returns the declarations of well-known namespaces."""
    return attributes_of({f"xmlns:{prefix}": URIS[prefix] for prefix in prefixes})


def inner_html(parent: Element) -> str:
    """Returns the content of an element of XHTML as HTML, without the names of its namespaces."""
    parts = [_html_text(parent.text)]
    for child in parent:
        name = _local(child.tag)
        attributes = "".join(f" {_local(key)}={quoted(value)}" for key, value in child.items())
        parts.append(f"<{name}{attributes}>")
        if name not in _VOID:
            parts += [inner_html(child), f"</{name}>"]
        parts.append(_html_text(child.tail))
    return "".join(parts)


def standalone(tree: Element, prefixes: Mapping[str, str], *, in_default: bool = False) -> str:
    """Returns an element that declares all of its namespaces, with these prefixes by their URIs.

    `in_default` is for a place that has a default namespace, which names without one must leave.
    """
    if tree.tag[:1] == "{" and not (len(tree) or tree.attrib):
        uri = tree.tag[1:].rpartition("}")[0]
        begin, end = _tags(tree.tag, prefixes.get(uri, ""))
        text = escape(tree.text or "")
        return f"{begin}>{text}{end}" if text else f"{begin}/>"
    names = _Names(prefixes)
    name, content = names.of(tree.tag), _written(tree, names)
    declared = attributes_of({f"xmlns:{prefix}": uri for uri, prefix in names.used.items()})
    leaves = ' xmlns=""' if in_default and names.has_plain else ""
    return f"<{name}{declared}{leaves}{content}"


@lru_cache(1_000)
def _tags(name: str, prefix: str) -> tuple[str, str]:
    """Returns the tags of an element of a foreign namespace, the first one without its end. The
    same few come in all items of a feed."""
    uri = name[1:].rpartition("}")[0]
    names = _Names({uri: prefix})
    written = names.of(name)
    return f"<{written}{attributes_of({f'xmlns:{names.used[uri]}': uri})}", f"</{written}>"


class _Names:
    """Gives names their prefixes, and remembers which are used."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self.used: dict[str, str] = {}
        """Prefixes by URI."""
        self.has_plain = False
        self._prefixes = prefixes

    def of(self, name: str) -> str:
        """Returns the name of an element, as `known_name` has it, with its prefix."""
        if name[:1] == "{":
            return self.of_attribute(name)
        prefix, colon, _ = name.partition(":")
        if colon:
            self.used.setdefault(URIS[prefix], prefix)
        self.has_plain |= not colon
        return name

    def of_attribute(self, name: str) -> str:
        """Returns the name of an attribute with its prefix."""
        if name[:1] != "{":
            return name
        uri, _, local = name[1:].rpartition("}")
        if uri == XML:
            return f"xml:{local}"
        if uri not in self.used:
            self.used[uri] = self._new(uri)
        return f"{self.used[uri]}:{local}"

    def _new(self, uri: str) -> str:
        wanted = self._prefixes.get(uri, "")
        is_taken = wanted in self.used.values() or wanted in URIS
        is_usable = _NAME.fullmatch(wanted) and wanted[:3].lower() != "xml" and not is_taken
        return wanted if is_usable else f"ns{len(self.used)}"


def _written(tree: Element, names: _Names) -> str:
    """Returns an element from behind its name."""
    attributes = [f" {names.of_attribute(key)}={quoted(value)}" for key, value in tree.items()]
    parts = [escape(tree.text or "")]
    for child in tree:
        parts += [f"<{names.of(child.tag)}", _written(child, names), escape(child.tail or "")]
    inside = "".join(parts)
    end = f">{inside}</{names.of(tree.tag)}>" if inside else "/>"
    return "".join(attributes) + end


def _local(name: str) -> str:
    return name.rpartition("}")[2].rpartition(":")[2]


def _html_text(text: str | None) -> str:
    return escape(text) if text else ""
