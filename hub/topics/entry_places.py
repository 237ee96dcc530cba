"""The entries of an XML feed and their positions: what is known is cut out of its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .entries import MAX_ENTRIES, FeedEntry


@dataclass(slots=True)
class EntryPosition:
    """An entry, and its position in the bytes of its document, from `start` up to `end`."""

    start: int
    end: int
    entry: FeedEntry


@dataclass(slots=True)
class EntryPlaces:
    """The entries of a document, in its order."""

    body: bytes
    placed: list[EntryPosition] = field(default_factory=list)
    extra: list[tuple[int, int]] = field(default_factory=list)
    """The begins and ends of entries beyond the limit."""

    @property
    def entries(self) -> list[FeedEntry]:
        return [one.entry for one in self.placed]

    @property
    def has_more(self) -> bool:
        return bool(self.extra)

    @property
    def is_full(self) -> bool:
        """Whether further entries are left out."""
        return len(self.placed) >= MAX_ENTRIES

    def add(self, start: int, end: int, entry: FeedEntry) -> None:
        self.placed.append(EntryPosition(start, end, entry))

    def leave_out(self, start: int, end: int) -> None:
        """Notes an entry beyond the limit."""
        if self.extra and not self.body[self.extra[-1][1] : start].strip():
            self.extra[-1] = (self.extra[-1][0], end)
        else:
            self.extra.append((start, end))

    def only(self, selected: Sequence[bool]) -> bytes:
        """Returns the document with the selected entries alone; all other bytes are unchanged."""
        cuts = [
            (one.start, one.end)
            for one, is_selected in zip(self.placed, selected, strict=True)
            if not is_selected
        ]
        parts, position = [], 0
        for start, end in [*cuts, *self.extra]:
            parts.append(self.body[position:start])
            position = end
        return b"".join([*parts, self.body[position:]])
