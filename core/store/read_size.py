"""Limits for one read of paged-out messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .record_index import IndexEntry, RecordIndex

CHUNK_BYTES: Final = 1024 * 1024
CHUNK_RECORDS, JOB_RECORDS = 512, 4_096
"""Records that are read of one range, and with one job."""
CHUNK_BATCHES: Final = 256
"""Batches, or ranges, that are read with one job."""


def limited(index: RecordIndex, ordinals: Sequence[int]) -> list[tuple[int, IndexEntry]]:
    """Returns the index entries of the first records, up to `CHUNK_BYTES`, but at least one."""
    index_entries: list[tuple[int, IndexEntry]] = []
    size = 0
    for ordinal in ordinals:
        index_entry = index[ordinal]
        if index_entries and size + index_entry.size > CHUNK_BYTES:
            break
        size += index_entry.size
        index_entries.append((ordinal, index_entry))
    return index_entries
