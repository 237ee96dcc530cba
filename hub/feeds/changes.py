"""Finds the new and changed entries of a document among those that are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..formats.identity import names_of
from ..formats.model import encode_item
from ..formats.read_feed import ReadItem
from .stored_item import Kind, NewItem

IDS_CHANGE = (
    "its entries got other ids without a change of their content, so they were recognised by that"
)
MAY_MISS = "all its entries were new at the last poll, so there may have been more in between"


@dataclass(frozen=True, slots=True)
class Changes:
    """The items of a document that are to be stored, the oldest first."""

    items: list[NewItem]
    """New and changed ones, to be published."""
    silent: list[NewItem]
    """The items that are known under other ids."""
    notice: str = ""
    is_all_new: bool = False
    """Whether no entry of the document was known: there may have been more since the last poll."""

    @property
    def count(self) -> int:
        """Returns the number of changes; updates may be one of all entries together."""
        updates = sum(item.kind == "updated" for item in self.items)
        return len(self.items) - updates + bool(updates)


def find_changes(found: Sequence[ReadItem], known: Mapping[str, str]) -> Changes:
    """Compares items, in the order of their document, by the digests of their content.

    Dates don't count: some servers write the current time. Where no id is known but most contents
    are, the source has changed its ids, so items are recognised by content. An item that is known
    gets the id that it is known by.
    """
    for one in found:
        _recognise(one, known)
    by_content = _contents_of(found, known)
    items: list[NewItem] = []
    silent: list[NewItem] = []
    for one in reversed(found):
        if one.item.id not in known and one.digest in by_content:
            silent.append(_stored(one, "new"))
        elif known.get(one.item.id) != one.digest:
            items.append(_stored(one, "updated" if one.item.id in known else "new"))
    is_all_new = (
        bool(known) and len(items) == len(found) and not any(one.item.id in known for one in found)
    )
    return Changes(items, silent, _notice(silent, is_all_new, len(found)), is_all_new)


def first_changes(found: Sequence[ReadItem], first: int) -> Changes:
    """Returns the items of a feed's first document, of which the `first` newest are published."""
    stored = [_stored(one, "new") for one in reversed(found)]
    at = max(0, len(stored) - first)
    return Changes(stored[at:], stored[:at])


def is_known_source(found: Sequence[ReadItem], known: Mapping[str, str]) -> bool:
    """Returns whether the items are those of a source that has moved: some have a content that is
    known, or an id that is a URI and known, while other feeds may have the same numbers."""
    contents = frozenset(known.values())
    return any(
        one.digest in contents or (":" in one.item.id and one.item.id in known) for one in found
    )


def _notice(silent: Sequence[NewItem], is_all_new: bool, count: int) -> str:
    if silent:
        return IDS_CHANGE
    return MAY_MISS if is_all_new and count > 1 else ""


def _recognise(one: ReadItem, known: Mapping[str, str]) -> None:
    """Gives the item the id under which its content is known. An id that others in the document
    have is extended, and whether others have it may change."""
    if known.get(one.item.id) != one.digest:
        names = names_of(one.repeated_id or one.item.id, one.item.url, one.digest)
        one.item.id = next((name for name in names if known.get(name) == one.digest), one.item.id)


def _contents_of(found: Sequence[ReadItem], known: Mapping[str, str]) -> frozenset[str]:
    """Returns the known contents if the ids of all items have changed, else nothing."""
    if len(found) < 2 or any(one.item.id in known for one in found):
        return frozenset()
    contents = frozenset(known.values())
    same = sum(one.digest in contents for one in found)
    return contents if same * 2 > len(found) else frozenset()


def _stored(one: ReadItem, kind: Kind) -> NewItem:
    return NewItem(one.item.id, one.digest, encode_item(one.item), kind)
