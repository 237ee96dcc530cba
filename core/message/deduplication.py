"""What queues and exchanges are asked to remember of messages, to drop those that come again.

LavinMQ's arguments; `core/seen.py` does it.
"""

from __future__ import annotations

from dataclasses import dataclass

DEDUPLICATES = "x-message-deduplication"
SIZE = "x-cache-size"
TTL = "x-cache-ttl"
"""Also a header, for one message."""
HEADER = "x-deduplication-header"
ARGUMENTS = frozenset({DEDUPLICATES, SIZE, TTL, HEADER})

CACHE_SIZE = 128
CACHE_SIZE_MAX = 100_000
"""A cache of message ids is kept in memory and on disk: some 300 bytes an id."""
CACHE_TTL_MAX_MS = 315_360_000_000
"""Ten years, as for messages."""


@dataclass(frozen=True, slots=True)
class Deduplication:
    """Messages whose id was among the last `size`, not longer than `ttl_ms` ago, are dropped."""

    size: int
    ttl_ms: int | None
    header: str
