"""The arguments for message deduplication, which queues and exchanges share (LavinMQ).

`core/queue/deduplication.py` implements it.
"""

from __future__ import annotations

from dataclasses import dataclass

DEDUPLICATES = "x-message-deduplication"
SIZE = "x-cache-size"
TTL = "x-cache-ttl"
"""Also a message header, for one message."""
HEADER = "x-deduplication-header"
ARGUMENTS = frozenset({DEDUPLICATES, SIZE, TTL, HEADER})

CACHE_SIZE = 128
CACHE_SIZE_MAX = 100_000
"""The ids are kept in memory and on disk, and take about 300 bytes each."""
CACHE_TTL_MAX_MS = 315_360_000_000
"""Ten years, as for messages."""


@dataclass(frozen=True, slots=True)
class Deduplication:
    """Drops messages whose id, the value of `header`, is among the last `size` ids of the last
    `ttl_ms` milliseconds."""

    size: int
    ttl_ms: int | None
    header: str
