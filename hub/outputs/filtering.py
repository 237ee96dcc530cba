"""Decides whether an item fulfils the filter of an output."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from ..formats.model import Item
from .definition import Choice, Filter

_TAG: Final = re.compile(r"<[^<>]*>")
_WORD: Final = re.compile(r"\w+")


def accepts(wanted: Filter, item: Item, now_s: float) -> bool:
    """Returns whether the item fulfils all members of the filter but `drop_near_duplicates`."""
    return (
        _fulfils(wanted.words, _Words(item).__contains__)
        and _fulfils(wanted.categories, _names(item.tags).__contains__)
        and _fulfils(wanted.authors, _names(one.name for one in item.authors).__contains__)
        and _fulfils(wanted.languages, _language_test(item.language))
        and (wanted.max_age_s is None or now_s - dated_s(item, now_s) <= wanted.max_age_s)
    )


class _Words:
    """The words of an item; `in` looks for one, or for a phrase."""

    def __init__(self, item: Item) -> None:
        self._texts = (item.title, item.summary, item.content_text, plain_text(item.content_html))
        self._words: list[str] | None = None

    def __contains__(self, term: str) -> bool:
        if self._words is None:
            self._words = [_spaced(text) for text in self._texts if text]
        phrase = _spaced(term)
        return any(phrase in words for words in self._words)


def plain_text(content_html: str) -> str:
    """Returns the text of HTML, its tags replaced by spaces."""
    return html.unescape(_TAG.sub(" ", content_html))


def _spaced(text: str) -> str:
    """Returns the words with one space between them and around all: whole words are compared."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _names(names: Iterable[str]) -> set[str]:
    return {name.casefold() for name in names}


def _fulfils(wanted: Choice, has: Callable[[str], bool]) -> bool:
    if wanted.any and not any(has(term.casefold()) for term in wanted.any):
        return False
    if not all(has(term.casefold()) for term in wanted.all):
        return False
    return not any(has(term.casefold()) for term in wanted.none)


def _language_test(language: str) -> Callable[[str], bool]:
    """Returns a test of language ranges (RFC 4647 3.3.1)."""
    found = language.casefold()
    return lambda wanted: found == wanted or found.startswith(wanted + "-")


def dated_s(item: Item, otherwise_s: float) -> float:
    """Returns the item's own date as wall time in seconds, `otherwise_s` without one."""
    try:
        at = datetime.fromisoformat(item.date_published or item.date_modified)
    except ValueError:
        return otherwise_s
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
