"""The pages of `/docs/`: a file of `docs`, the list of all pages, and what is on this one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from ..responses.error_pages import PAGES
from .files import INDEX, SOURCE, find_file
from .markdown import HUB, Document, DocumentHeading, render
from .navigation import Entry, PageGroup, read_groups

MAX_KEPT: Final = 512
"""Rendered files that are kept; there are fewer files, but a changed one is rendered again."""
MIN_CONTENTS: Final = 3
"""Sections from which on a page has a list of them."""


def page_html(page: str, hub: str) -> str:
    """Returns a page with the URL of the hub, without a slash at its end, in its code.

    Raises `FileNotFoundError` for a page that is not there.
    """
    document = _rendered(find_file(page))
    groups = _groups(_changed_at(find_file("")))
    entries = [Entry("Documentation", ""), *(one for group in groups for one in group.entries)]
    docs = "../" * page.count("/") or "./"
    return _template().substitute(
        title=escape(document.title),
        root=f"{docs}../",
        docs=docs,
        source=(page.split("/")[-1] or INDEX) + SOURCE,
        pages=_list_of_pages(groups, page, docs),
        body=document.html.replace(HUB, escape(hub)),
        contents=_contents(document.headings),
        turn=_turn(entries, page, docs),
    )


def _rendered(file: Path) -> Document:
    return _render_file(file, _changed_at(file))


@lru_cache(MAX_KEPT)
def _render_file(file: Path, _changed_at: int) -> Document:
    return render(file.read_text(encoding="utf-8"))


@lru_cache(1)
def _groups(_changed_at: int) -> list[PageGroup]:
    return read_groups(find_file("").read_text(encoding="utf-8"))


def _changed_at(file: Path) -> int:
    return file.stat().st_mtime_ns


@cache
def _template() -> Template:
    return Template((PAGES / "manual.html").read_text(encoding="utf-8"))


def _list_of_pages(groups: Iterable[PageGroup], page: str, docs: str) -> str:
    parts = []
    for group in groups:
        marks = {page: ' aria-current="page"'}
        links = "".join(
            f"<li{' class=inner' if one.is_inner else ''}>"
            f"{_link(one, docs, marks.get(one.page, ''))}</li>"
            for one in group.entries
        )
        parts.append(f"<h2>{escape(group.title)}</h2>\n<ul>{links}</ul>")
    return "\n".join(parts)


def _contents(headings: Iterable[DocumentHeading]) -> str:
    sections = [one for one in headings if one.level == 2]
    if len(sections) < MIN_CONTENTS:
        return ""
    links = "".join(f'<li><a href="#{one.anchor}">{escape(one.text)}</a></li>' for one in sections)
    return (
        '<nav class="contents" aria-label="On this page">'
        f"<h2>On this page</h2><ul>{links}</ul></nav>"
    )


def _turn(entries: list[Entry], page: str, docs: str) -> str:
    """Returns the links to the pages before and after; none for a page that is in no list."""
    at = next((at for at, entry in enumerate(entries) if entry.page == page), None)
    if at is None:
        return ""
    before, after = entries[:at][-1:], entries[at + 1 :][:1]
    return "".join(
        _link(entry, docs, f' rel="{relation}"')
        for relation, found in (("prev", before), ("next", after))
        for entry in found
    )


def _link(entry: Entry, docs: str, attributes: str) -> str:
    return f'<a href="{escape(docs + entry.page)}"{attributes}>{escape(entry.title)}</a>'
