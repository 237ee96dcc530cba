"""Turns Markdown into HTML as repositories show it: tables, anchors of headings, links to pages.

HTML in the text is shown as text, comments are left out. Links to `.md` files become links to their
pages, so the same files can be read in a repository and at `/docs/`.
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from .files import INDEX, SOURCE

HUB_IN_FILES: Final = "http://localhost:15672"
HUB: Final = "\x00"
"""Stands for the URL of this hub in code; no Markdown renders to it."""
_COMMENT: Final = re.compile(r"\s*<!--.*?-->\s*", re.DOTALL)
Environment = MutableMapping[str, Any]


@dataclass(frozen=True, slots=True)
class DocumentHeading:
    """A heading: 1 is the title, and the anchor is what `#` links name."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Document:
    """A rendered file. In its code `HUB` is where the URL of the hub belongs."""

    html: str
    headings: tuple[DocumentHeading, ...]

    @property
    def title(self) -> str:
        return next((one.text for one in self.headings if one.level == 1), "")


def render(text: str) -> Document:
    """Renders a file."""
    tokens = parse(text)
    headings = tuple(_name_headings(tokens))
    for token in tokens:
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("href", page_link(str(child.attrGet("href"))))
    for opening, inline, closing in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if opening.type == "th_open" and not inline.content:
            opening.tag = closing.tag = "td"  # a heading that says nothing is none
    parser = _parser()
    return Document(parser.renderer.render(tokens, parser.options, {}), headings)


def parse(text: str) -> list[Token]:
    """Returns the tokens of a file."""
    return _parser().parse(text)


def page_link(href: str) -> str:
    """Returns the link to the page of a Markdown file; other links are returned as they are."""
    parts = urlsplit(href)
    if parts.scheme or parts.netloc or not parts.path.endswith(SOURCE):
        return href
    page = parts.path.removesuffix(SOURCE)
    if page.split("/")[-1] == INDEX:
        page = page.removesuffix(INDEX) or "./"
    return parts._replace(path=page).geturl()


def plain(token: Token) -> str:
    """Returns the text of an inline token, without its marks."""
    return "".join(one.content for one in token.children or () if one.type != "html_inline")


def _name_headings(tokens: Sequence[Token]) -> list[DocumentHeading]:
    """Gives each heading its anchor, as repositories do, and returns all of them."""
    found: list[DocumentHeading] = []
    taken: dict[str, int] = {}
    for opening, inline in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        text = plain(inline)
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")
        times = taken[anchor] = taken.get(anchor, -1) + 1
        anchor += f"-{times}" if times else ""
        opening.attrSet("id", anchor)
        found.append(DocumentHeading(int(opening.tag[1:]), text, anchor))
    return found


@cache
def _parser() -> MarkdownIt:
    # HTML is parsed in order to tell comments from what is to be shown; none of it is passed on.
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    parser.add_render_rule("html_block", _html)
    parser.add_render_rule("html_inline", _html)
    parser.add_render_rule("fence", _code)
    parser.add_render_rule("code_block", _code)
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", _table_close)
    return parser


def _html(_: RendererHTML, tokens: Sequence[Token], at: int, *_more: object) -> str:
    shown = escape(_COMMENT.sub("", tokens[at].content))
    return f"<p>{shown}</p>\n" if shown and tokens[at].type == "html_block" else shown


def _code(_: RendererHTML, tokens: Sequence[Token], at: int, *_more: object) -> str:
    language = escape(tokens[at].info.split(" ")[0])
    named = f' class="language-{language}"' if language else ""
    text = escape(tokens[at].content).replace(HUB_IN_FILES, HUB)
    # Wide ones are scrolled by the keyboard too.
    return f'<pre tabindex="0"><code{named}>{text}</code></pre>\n'


def _table_open(*_: object) -> str:
    return '<div class="table" tabindex="0"><table>\n'


def _table_close(*_: object) -> str:
    return "</table></div>\n"
