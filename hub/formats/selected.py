"""Reads pages and data that are no feeds: the matches of a selector are one item, always the same
one.

So a change of it is an update of that item, also if it changes back.
"""

from __future__ import annotations

import codecs
import re
from typing import Any
from urllib.parse import quote

import jsonpath
import msgspec
from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from ..links.discovery import media_type_of
from ..links.json_feed import NO_JSON
from .html_text import absolute, to_text, with_absolute_links
from .identity import identified
from .model import FeedHead, Item
from .read_feed import MAX_SELECTOR_CHARACTERS, FeedRefused, PollHints, ReadFeed

WHOLE = "*"
"""The selector of the whole content."""
MAX_SELECTED_CHARACTERS = 1024 * 1024
"""The limit of the selected text, which becomes one message; nested elements could otherwise repeat
a page often."""
_JSON_PATHS = jsonpath.JSONPathEnvironment(strict=True)
"""RFC 9535 alone, without the extensions of the library."""
_HTML = ("text/html", "application/xhtml+xml")
_META_CHARSET = re.compile(rb"""<meta[^>]{1,200}charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def read_selected(url: str, content_type: str, body: bytes, selector: str) -> ReadFeed:
    """Returns a feed with one item. Raises `FeedRefused` if nothing is selected.

    Time is limited by the worker process that this runs in.
    """
    if len(selector) > MAX_SELECTOR_CHARACTERS:
        most = MAX_SELECTOR_CHARACTERS
        raise FeedRefused(f"the selector has {len(selector)} characters, {most} are allowed")
    media_type = media_type_of(content_type)
    item = Item(id=f"{url}#{quote(selector)}", url=url)
    head = FeedHead(title=url, home_page_url=url)
    is_json = media_type == "application/json" or media_type.endswith("+json")
    if selector.startswith("$") or (selector == WHOLE and is_json):
        item.content_text = _of_json(body, "$" if selector == WHOLE else selector)
    elif selector == WHOLE and media_type not in _HTML:
        item.content_text = _decoded(body, content_type)
    else:
        page = LexborHTMLParser(_decoded(body, content_type))
        head.title = _title(page) or url
        item.content_html = _of_page(page, url, "body" if selector == WHOLE else selector)
    item.title = head.title
    size = max(len(item.content_html), len(item.content_text))
    if size > MAX_SELECTED_CHARACTERS:
        raise FeedRefused(
            f"the selector '{selector}' selects {size} characters,"
            f" {MAX_SELECTED_CHARACTERS} are taken; select less"
        )
    kind, version = ("page", "web page") if item.content_html else ("data", "data")
    return ReadFeed(
        format="page" if kind == "page" else "data",
        version=version,
        head=head,
        items=identified([item]),
        hints=PollHints(),
    )


def _of_page(page: LexborHTMLParser, url: str, selector: str) -> str:
    try:
        found = page.css(selector)
    except SelectolaxError as error:
        raise FeedRefused(f"the selector '{selector}' is not a valid CSS selector") from error
    if not found:
        raise FeedRefused(f"nothing in it matches the selector '{selector}'")
    base = page.css_first("base[href]")
    href = base.attributes.get("href") if base is not None else ""
    markup, left = [], MAX_SELECTED_CHARACTERS
    for node in found:
        markup.append(node.html or "")
        left -= len(markup[-1])
        if left < 0:
            break
    return with_absolute_links("\n".join(markup), absolute(url, href or "") or url)


def _of_json(body: bytes, selector: str) -> str:
    try:
        document = msgspec.json.decode(body.removeprefix(codecs.BOM_UTF8))
    except NO_JSON as error:
        raise FeedRefused(f"it is not JSON, which the selector '{selector}' requires") from error
    try:
        found: list[Any] = _JSON_PATHS.findall(selector, document)
    except jsonpath.JSONPathError as error:
        reason = str(error).partition("\n")[0]
        raise FeedRefused(
            f"the selector '{selector}' is not a valid JSON path: {reason}"
        ) from error
    if not found:
        raise FeedRefused(f"nothing in it matches the selector '{selector}'")
    # Members are sorted, as some servers give them another order each time.
    encoded = msgspec.json.encode(found[0] if len(found) == 1 else found, order="deterministic")
    return msgspec.json.format(encoded, indent=2).decode()


def _title(page: LexborHTMLParser) -> str:
    title = page.css_first("head > title")
    return "" if title is None else to_text(title.text())


def _decoded(body: bytes, content_type: str) -> str:
    """Returns the text, decoded by BOM, HTTP charset or `meta` element, else as UTF-8, else as
    Windows-1252."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    stated = _CHARSET.search(content_type)
    meta = _META_CHARSET.search(body[:2_048])
    names = [stated[1] if stated else "", meta[1].decode() if meta else "", "utf-8"]
    for name in filter(None, names):
        try:
            return body.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    return body.decode("windows-1252", "replace")
