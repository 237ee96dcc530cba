"""A source without messages, for clients that only publish."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .reader import LiveReader


class NoSource:
    """Sends no messages."""

    def add(self, reader: LiveReader) -> None:
        """Does nothing: nothing is read."""

    def remove(self, reader: LiveReader) -> None:
        """Does nothing: nothing is read."""

    def full(self, reader: LiveReader) -> None:
        """Does nothing: answers to commands are bounded by their connection."""

    def drained(self, reader: LiveReader) -> None:
        """Does nothing: answers to commands are bounded by their connection."""

    def position(self, reader: LiveReader) -> str:
        return ""
