"""Carries out the operations of an output on its items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ..formats.model import Author, Item
from .definition import Cut, Member, Rename, TransformStep
from .filtering import plain_text
from .paragraphs import first_paragraph

_EMPTY: Final[Mapping[Member, Mapping[str, object]]] = {
    "authors": {"authors": []},
    "attachments": {"attachments": []},
    "categories": {"tags": []},
    "content": {"content_html": "", "content_text": ""},
    "image": {"image": "", "banner_image": ""},
    "language": {"language": ""},
    "summary": {"summary": ""},
}
"""What removing a member of an output makes of the members of JSON Feed."""


def transformed(item: Item, steps: Iterable[TransformStep], feed: str) -> Item:
    """Returns the item after all steps; `feed` is the name of its source."""
    for step in steps:
        item = _after(item, step, feed)
    return item


def _after(item: Item, step: TransformStep, feed: str) -> Item:
    change = msgspec.structs.replace
    if step.cut is not None:
        return _CUTS[step.cut](item)
    if step.max_characters is not None:
        text = _shortened(item.content_text or plain_text(item.content_html), step.max_characters)
        return change(item, content_text=text, content_html="")
    if step.title is not None:
        # Both at once: the old title may have braces too.
        title = "".join(
            {"{title}": item.title, "{feed}": feed}.get(part, part) for part in _parts(step.title)
        )
        return change(item, title=title)
    if step.rename is not None:
        return _renamed(item, step.rename)
    if step.add is not None:
        return change(item, tags=list(dict.fromkeys([*item.tags, *step.add.categories])))
    for member in step.remove or ():
        item = change(item, **_EMPTY[member])
    return item


def _parts(title: str) -> Sequence[str]:
    return title.replace("{", "\0{").replace("}", "}\0").split("\0")


def _headline(item: Item) -> Item:
    return msgspec.structs.replace(item, content_html="", content_text="", summary="")


def _headline_and_summary(item: Item) -> Item:
    """Reduces an item to title and summary; without a summary, the first paragraph stands for
    it."""
    if not item.summary:
        return _headline_and_first_paragraph(item)
    return msgspec.structs.replace(item, content_html="", content_text="")


def _headline_and_first_paragraph(item: Item) -> Item:
    text = item.content_text.strip().partition("\n\n")[0]
    content_html = first_paragraph(item.content_html)
    return msgspec.structs.replace(item, content_html=content_html, content_text=text, summary="")


_CUTS: Final[Mapping[Cut, Callable[[Item], Item]]] = {
    "headline": _headline,
    "headline and summary": _headline_and_summary,
    "headline and first paragraph": _headline_and_first_paragraph,
}


def _shortened(text: str, max_characters: int) -> str:
    words = " ".join(text.split())
    if len(words) <= max_characters:
        return words
    head = words[: max_characters - 1]
    if words[max_characters - 1] != " " and " " in head:
        head = head.rpartition(" ")[0]
    return head.rstrip() + "\N{HORIZONTAL ELLIPSIS}"


def _renamed(item: Item, rename: Rename) -> Item:
    categories = _folded(rename.categories)
    authors = _folded(rename.authors)
    tags = dict.fromkeys(categories.get(tag.casefold(), tag) for tag in item.tags)
    return msgspec.structs.replace(
        item, tags=list(tags), authors=[_renamed_author(one, authors) for one in item.authors]
    )


def _renamed_author(author: Author, names: Mapping[str, str]) -> Author:
    new = names.get(author.name.casefold(), author.name)
    return msgspec.structs.replace(author, name=new)


def _folded(names: Mapping[str, str] | None) -> Mapping[str, str]:
    return {old.casefold(): new for old, new in (names or {}).items()}
