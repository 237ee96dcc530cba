"""The arguments for message deduplication, which queues and exchanges share (LavinMQ).

`core/queue/deduplication.py` implements it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DEDUPLICATES: Final = "x-message-deduplication"
SIZE: Final = "x-cache-size"
TTL: Final = "x-cache-ttl"
"""Also a message header, for one message."""
HEADER: Final = "x-deduplication-header"
ARGUMENTS: Final = frozenset({DEDUPLICATES, SIZE, TTL, HEADER})

CACHE_SIZE: Final = 128
CACHE_SIZE_MAX: Final = 100_000
"""The ids are kept in memory and on disk, and take about 300 bytes each."""
CACHE_TTL_MAX_MS: Final = 315_360_000_000
"""Ten years, as for messages."""


@dataclass(frozen=True, slots=True)
class Deduplication:
    """Drops messages whose id, the value of `header`, is among the last `size` ids of the last
    `ttl_ms` milliseconds."""

    size: int
    ttl_ms: int | None
    header: str
