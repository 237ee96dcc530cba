"""Reads the rows of an archive's Parquet files in the order of their offsets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .archived import ArchiveFolder, NotArchived, below
from .schema import ARROW_SCHEMA

BATCH_ROWS = 1_024


def read_rows(folder: ArchiveFolder, start: int, end: int, limit_bytes: int) -> pa.RecordBatch:
    """Returns the rows from `start` on without a gap, about `limit_bytes` of them, at least one.

    Raises `NotArchived` without a row at `start`, `OSError` and `pa.ArrowException`.
    """
    files = [file for file in folder.commit_of(start).files if (file.next or 0) > start]
    found: list[pa.RecordBatch] = []
    for file in sorted(files, key=lambda file: file.first or 0):
        if (file.first or 0) < end:
            path = below(folder.directory, str(folder.directory / file.path))
            parts, end = _read(path, start, end, limit_bytes)
            found += parts
    rows = pa.Table.from_batches(found, ARROW_SCHEMA).sort_by("offset").combine_chunks()
    offsets = rows["offset"].to_numpy()
    together = np.flatnonzero(offsets != np.arange(start, start + len(offsets)))
    count = int(together[0]) if len(together) else len(offsets)
    count = min(count, int(np.searchsorted(offsets, end)))
    if not count:
        raise NotArchived(f"{folder.directory} has no message at offset {start}")
    return rows.slice(0, count).combine_chunks().to_batches()[0]


def _read(path: Path, start: int, end: int, limit_bytes: int) -> tuple[list[pa.RecordBatch], int]:
    """Returns rows of one file, and the offset up to which these are all."""
    parts: list[pa.RecordBatch] = []
    size = 0
    with pq.ParquetFile(path) as file:
        groups = [number for number in range(file.num_row_groups) if _ends(file, number) >= start]
        names = ARROW_SCHEMA.names
        for batch in file.iter_batches(BATCH_ROWS, groups, names, use_threads=False):
            offsets = batch["offset"]
            chosen = pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end))
            parts.append(batch.filter(chosen).cast(ARROW_SCHEMA))
            size += parts[-1].nbytes
            last = offsets[-1].as_py()
            if last >= end:
                break
            if size >= limit_bytes:
                return parts, last + 1
    return parts, end


def _ends(file: pq.ParquetFile, group: int) -> int:
    """Returns the last offset of a row group, which is in its statistics."""
    column = file.metadata.row_group(group).column(file.schema.names.index("offset"))
    statistics = column.statistics
    return 2**63 if statistics is None else int(statistics.max)
