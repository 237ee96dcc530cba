"""The progress of commits: the last synced one, and the bytes still to be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

BEHIND_BYTES: Final = 16 * 1024 * 1024
"""Limit of bytes that are not written yet; above it, publishers of persistent messages are blocked
until half of them are written."""


class CommitProgress:
    """The progress of a store.

    `committed` is the highest commit number that is synced; those before are too, except for the
    refused. Numbers above `committed` and up to `refused` are refused: the disk is full or has
    failed. `behind_bytes` are not written yet; their limit is `behind_max_bytes`, which is lower on
    a small disk, so that pending writes still fit into the reserve when the disk fills.
    """

    __slots__ = ("_callback", "behind_bytes", "behind_max_bytes", "committed", "refused")

    def __init__(self, behind_max_bytes: int = BEHIND_BYTES) -> None:
        self.committed = 0
        self.refused = 0
        self.behind_bytes = 0
        self.behind_max_bytes = behind_max_bytes
        self._callback: Callable[[], None] | None = None

    def on_change(self, callback: Callable[[], None]) -> None:
        """Sets the callback that runs on the broker's thread whenever `committed` or `refused` has
        grown."""
        self._callback = callback

    def report(self, committed: int, refused: int, written_bytes: int) -> None:
        """Updates the numbers with the writer's results, and runs the callback."""
        self.committed = max(self.committed, committed)
        self.refused = max(self.refused, refused)
        self.behind_bytes -= written_bytes
        if self._callback is not None:
            self._callback()
