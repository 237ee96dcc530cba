"""Finds the first paragraph of HTML."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser
from typing import Final

from ..formats.html_text import visible

_BLOCKS: Final = frozenset({
    "address", "article", "aside", "blockquote", "dd", "div", "dl", "dt", "figcaption", "figure",
    "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p",
    "pre", "section", "table", "td", "th", "tr", "ul",
})  # fmt: skip
"""A paragraph ends where one of these begins or ends (HTML 4.4.1)."""
_VOID: Final = frozenset({"br", "img", "wbr"})
_UNCLOSED: Final = re.compile(r"<(?![^<>]*+>)")
_HIDDEN: Final = frozenset({"script", "style", "template", "title"})


def first_paragraph(content_html: str) -> str:
    """Returns the first paragraph with text as a `p` element, with its links and emphasis; "" if
    there is none. Headings are not taken for paragraphs while there is another."""
    reader = _ParagraphParser()
    # A tag that is not closed is text: the parser would look for its end again and again.
    reader.feed(_UNCLOSED.sub("&lt;", visible(content_html, "")))
    reader.close()
    reader.end_block()
    found = reader.paragraph or reader.heading
    return f"<p>{found}</p>" if found else ""


class _ParagraphParser(HTMLParser):
    """Collects the phrasing content of one block after the other until one has text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.paragraph = ""
        self.heading = ""
        self._parts: list[str] = []
        self._open: list[str] = []
        self._block = ""
        self._has_text = False
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.paragraph:
            return
        if tag in _HIDDEN:
            self._hidden += 1
        elif tag in _BLOCKS:
            self.end_block()
            self._block = tag
        else:
            given = "".join(f' {name}="{escape(value or "")}"' for name, value in attrs)
            self._parts.append(f"<{tag}{given}>")
            if tag not in _VOID:
                self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.paragraph:
            return
        if tag in _HIDDEN:
            self._hidden = max(0, self._hidden - 1)
        elif tag in _BLOCKS:
            self.end_block()
        elif self._open and self._open[-1] == tag:
            self._parts.append(f"</{self._open.pop()}>")

    def handle_data(self, data: str) -> None:
        if not self._hidden and not self.paragraph:
            self._parts.append(escape(data, quote=False))
            self._has_text = self._has_text or bool(data.strip())

    def end_block(self) -> None:
        """Ends the block; what has no text is left out."""
        text = "".join(self._parts).strip() + "".join(f"</{tag}>" for tag in reversed(self._open))
        if self._has_text and self._block[:1] == "h" and self._block[1:].isdigit():
            self.heading = self.heading or text
        elif self._has_text and not self.paragraph:
            self.paragraph = text
        self._parts, self._open, self._has_text, self._block = [], [], False, ""
