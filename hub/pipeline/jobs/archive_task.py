"""A task of the archive: reads a part of a stream and writes it to Parquet."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from ..manifest import DataFile
from ..options import ReadOptions
from ..planner import StreamPartition
from ..reading import RangeReader
from ..schema import ARROW_SCHEMA
from .parquet_files import TaskFiles


def write_range(
    options: ReadOptions, directory: Path, partition: StreamPartition
) -> list[DataFile]:
    """Returns the files, which are on disk. Raises what reading raises, and `OSError`."""
    batches = RangeReader(options, partition, ARROW_SCHEMA).batches()
    return list(TaskFiles(directory, {"exchange": _exchange, "day": _day}).write(batches))


def _exchange(rows: pa.Table) -> pa.ChunkedArray:
    return rows["exchange"]


def _day(rows: pa.Table) -> pa.ChunkedArray:
    """Returns the dates of arrival, in UTC."""
    return rows["timestamp"].cast("date32")
