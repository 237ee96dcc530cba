"""Finds the first message of an archive that arrived at a time or later.

Messages arrive in the order of their offsets, so commits are searched by their newest one, which is
in the statistics of their files.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .archived import ArchiveFolder, below
from .manifest import ManifestCommit

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def first_since(folder: ArchiveFolder, wall_ms: int) -> int | None:
    """Returns the offset of the first message since a time, None if all are older. Raises
    `NotArchived`, `OSError` and `pa.ArrowException`."""
    since = _EPOCH + timedelta(milliseconds=wall_ms)

    def is_reached(commit: ManifestCommit) -> bool:
        # One without files is passed over below.
        return not commit.files or any(_ends(path) >= since for path in _paths(folder, commit))

    for commit in folder.commits_from(is_reached):
        found = [_first_of(path, since) for path in _paths(folder, commit)]
        offsets = [offset for offset in found if offset is not None]
        if offsets:
            return min(offsets)
    return None


def _paths(folder: ArchiveFolder, commit: ManifestCommit) -> Iterator[Path]:
    for file in commit.files:
        yield below(folder.directory, str(folder.directory / file.path))


def _ends(path: Path) -> datetime:
    """Returns when the newest message of a file arrived."""
    with pq.ParquetFile(path) as file:
        return max(_newest(file, group) for group in range(file.num_row_groups))


def _newest(file: pq.ParquetFile, group: int) -> datetime:
    column = file.schema.names.index("timestamp")
    statistics = file.metadata.row_group(group).column(column).statistics
    newest: datetime = datetime.max.replace(tzinfo=UTC) if statistics is None else statistics.max
    return newest


def _first_of(path: Path, since: datetime) -> int | None:
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            if _newest(file, group) >= since:
                rows = file.read_row_group(group, ["offset", "timestamp"], use_threads=False)
                is_since = pc.greater_equal(rows["timestamp"], pa.scalar(since))
                offsets = rows["offset"].filter(is_since).to_numpy()
                if len(offsets):
                    return int(np.min(offsets))
    return None
