"""The pages in reading order, from the lists of docs/README.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from markdown_it.token import Token

from .files import INDEX, SOURCE
from .markdown import page_link, parse, plain


@dataclass(frozen=True, slots=True)
class Entry:
    """A page: its title in the list, and its path below `/docs/`."""

    title: str
    page: str
    is_inner: bool = False
    """Whether its item is inside of another."""


@dataclass(frozen=True, slots=True)
class PageGroup:
    """The pages below one heading of the list."""

    title: str
    entries: list[Entry] = field(default_factory=list)


def read_groups(text: str) -> list[PageGroup]:
    """Returns a group for each heading of the second level that has a list of pages.

    An item of a list is a page if it begins with a link to a Markdown file.
    """
    groups: list[PageGroup] = []
    tokens = parse(text)
    for at, (token, inline) in enumerate(pairwise(tokens)):
        if token.type == "heading_open" and token.tag == "h2":
            groups.append(PageGroup(plain(inline)))
        elif token.type == "list_item_open" and groups:
            groups[-1].entries.extend(_entry(tokens[at + 2], is_inner=token.level > 1))
    return [group for group in groups if group.entries]


def _entry(item: Token, *, is_inner: bool) -> Iterator[Entry]:
    children: Sequence[Token] = item.children or ()
    if not children or children[0].type != "link_open":
        return
    href = str(children[0].attrGet("href")).partition("#")[0]
    if href.endswith(SOURCE) and "://" not in href:
        closing = next(at for at, one in enumerate(children) if one.type == "link_close")
        title = "".join(one.content for one in children[:closing])
        yield Entry(title, "" if href == INDEX + SOURCE else page_link(href), is_inner)
