"""Measures the syncs of a store: their duration, and the bytes that each makes durable."""

from __future__ import annotations

from typing import Final

from ..histogram import Histogram

SYNC_S: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5)
COMMIT_BYTES: Final = tuple(4**power for power in range(4, 14))
"""256 bytes to 64 MiB."""


class WriteMetrics:
    """Counted by the thread that writes; empty for a store without a disk."""

    __slots__ = ("commit_bytes", "sync_s")

    def __init__(self) -> None:
        self.sync_s = Histogram(SYNC_S)
        self.commit_bytes = Histogram(COMMIT_BYTES)
