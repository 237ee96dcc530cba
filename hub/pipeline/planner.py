"""Divides offsets among tasks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pyspark.sql.datasource import InputPartition

PARTITION_BYTES: Final = 64 * 1024 * 1024
ROWS_MIN: Final = 10_000
"""A task for fewer rows costs more than it saves."""


@dataclass(frozen=True)
class StreamPartition(InputPartition):
    """The offsets that one task reads."""

    start: int
    end: int
    incarnation: str


def split(
    start: int, end: int, incarnation: str, size_bytes: int, min_partitions: int | None
) -> list[StreamPartition]:
    """Divides offsets evenly: into at least `min_partitions`, or else one for each processor of
    this machine that has enough to do, and one for each 64 MiB."""
    rows = max(0, end - start)
    least = min_partitions or min(_processors(), -(-rows // ROWS_MIN))
    count = min(rows, max(least, -(-size_bytes // PARTITION_BYTES)))
    cuts = [start + rows * number // max(1, count) for number in range(count + 1)]
    return [StreamPartition(low, high, incarnation) for low, high in pairwise(cuts)]


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
