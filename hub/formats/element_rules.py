"""Elements of Atom and RSS that others have written: what these formats do not allow is taken out,
and so are links that lead readers to no page."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree.ElementTree import Element

from .dates import normalised
from .urls import is_iri, link

_MEDIA_TYPE = re.compile(r"[^\s/;]+/[^\s/;]+")
_EMAIL = re.compile(r"\S+@\S+")


def is_valid(element: Element) -> bool:
    """Takes what is not allowed out of an element; returns whether what is left is."""
    for child in list(element):
        if not is_valid(child):
            element.remove(child)
    check = _CHECKS.get(element.tag)
    return check is None or check(element)


def _is_link(element: Element) -> bool:
    if not element.get("length", "0").isdecimal():
        del element.attrib["length"]
    if not _MEDIA_TYPE.fullmatch(element.get("type", "a/b")):
        del element.attrib["type"]
    return bool(link(element.get("href", "")))


def _is_person(element: Element) -> bool:
    [names, *others] = [element.findall(f"atom:{name}") for name in ("name", "uri", "email")]
    return len(names) == 1 and bool(names[0].text) and all(len(one) < 2 for one in others)


def _is_text(element: Element) -> bool:
    return not len(element) and element.get("type", "text") in ("text", "html")


def _is_address(element: Element) -> bool:
    element.text = (element.text or "").strip()
    return is_iri(element.text)


def _is_email(element: Element) -> bool:
    return _EMAIL.fullmatch(element.text or "") is not None


def _is_date(element: Element) -> bool:
    element.text = normalised(element.text or "")
    return bool(element.text)


def _is_page(element: Element) -> bool:
    return bool(link(element.text or ""))


def _has_page(element: Element) -> bool:
    return bool(link(element.get("url", "")))


def _has_term(element: Element) -> bool:
    return bool(element.get("term")) and is_iri(element.get("scheme", "a:b"))


_CHECKS: dict[str, Callable[[Element], bool]] = {
    "atom:author": _is_person,
    "atom:category": _has_term,
    "atom:contributor": _is_person,
    "atom:email": _is_email,
    "atom:icon": _is_address,
    "atom:id": _is_address,
    "atom:link": _is_link,
    "atom:logo": _is_address,
    "atom:published": _is_date,
    "atom:rights": _is_text,
    "atom:subtitle": _is_text,
    "atom:summary": _is_text,
    "atom:title": _is_text,
    "atom:updated": _is_date,
    "atom:uri": _is_address,
    "comments": _is_page,
    "source": _has_page,
}
