"""Writes the rows of a data frame to Parquet files, each by the task that has them.

A task syncs its files and says what is in them, so nothing is renamed, listed or read again before
the manifest names them. What a task that was killed or repeated has written lies beside the others;
no commit names it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import OutputError
from ..manifest import DataFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Divisions = Mapping[str, Callable[[pa.Table], pa.ChunkedArray]]
"""What divides rows among folders, `NAME=VALUE` each: a name, and the value of each row."""
GROUP_BYTES: Final = 64 * 1024 * 1024
"""How much of memory a task fills before it writes, which is also the most of a row group."""
OPEN_MAX: Final = 64
"""How many files a task has open at a time."""
FOLDER_MAX: Final = 150
REPEATED: Final = (
    "stream", "exchange", "routing_key", "content_type", "content_encoding", "type", "user_id",
    "app_id", "delivery_mode", "priority", "headers.key_value.key",
)  # fmt: skip
"""Columns whose values come again and again, so that a dictionary of them pays."""
_LISTED: Final = (
    "path string, rows bigint, bytes bigint, first bigint, next bigint, "
    "partition map<string,string>"
)
_LISTED_ARROW: Final = pa.schema([
    ("path", pa.string()), ("rows", pa.int64()), ("bytes", pa.int64()), ("first", pa.int64()),
    ("next", pa.int64()), ("partition", pa.map_(pa.string(), pa.string())),
])  # fmt: skip


def write_files(frame: DataFrame, directory: Path, divisions: Divisions) -> list[DataFile]:
    """Writes all rows below the directory and returns the files, which are on disk; their folders
    are not synced yet, as `Manifest.commit` does. The column `offset` is noted if there is one.

    Raises what Spark raises if a task fails.
    """

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for file in TaskFiles(directory, divisions).write(batches):
            row = {**msgspec.structs.asdict(file), "partition": list(file.partition.items())}
            yield pa.RecordBatch.from_pylist([row], schema=_LISTED_ARROW)

    rows = frame.mapInArrow(write, _LISTED).collect()
    return [DataFile(**row.asDict()) for row in rows]


def merge_files(directory: Path, files: Iterable[DataFile]) -> Iterator[DataFile]:
    """Yields files that have the rows of these, in the same order: one for each folder, and for
    each schema in it, as `write_files` does. Raises `OutputError` and `OSError`."""
    alike: dict[tuple[str, str], list[DataFile]] = {}
    for file in files:
        schema = pq.read_schema(directory / file.path)
        alike.setdefault((str(Path(file.path).parent), str(schema)), []).append(file)
    for found in alike.values():
        yield _merge(directory, found) if len(found) > 1 else found[0]


def _merge(directory: Path, files: Sequence[DataFile]) -> DataFile:
    schema = pq.read_schema(directory / files[0].path)
    merged = _File(directory, files[0].partition, schema)
    for table in _tables(_batches(directory, files)):
        merged.write(table)
    return merged.close()


def _batches(directory: Path, files: Iterable[DataFile]) -> Iterator[pa.RecordBatch]:
    for file in files:
        with pq.ParquetFile(directory / file.path) as found:
            yield from found.iter_batches()


class TaskFiles:
    """The files that one task writes, at most one open for each folder."""

    def __init__(self, directory: Path, divisions: Divisions) -> None:
        self._directory = directory
        self._divisions = divisions
        self._open: dict[tuple[str, ...], _File] = {}

    def write(self, batches: Iterator[pa.RecordBatch]) -> Iterator[DataFile]:
        """Yields each file once it is on disk."""
        for table in _tables(batches):
            for values, rows in _divided(table, self._divisions):
                if values not in self._open and len(self._open) == OPEN_MAX:
                    yield self._close(next(iter(self._open)))
                if values not in self._open:
                    self._open[values] = _File(self._directory, self._names(values), table.schema)
                self._open[values].write(rows)
        for values in list(self._open):
            yield self._close(values)

    def _names(self, values: tuple[str, ...]) -> dict[str, str]:
        return dict(zip(self._divisions, values, strict=True))

    def _close(self, values: tuple[str, ...]) -> DataFile:
        return self._open.pop(values).close()


class _File:
    """A Parquet file that is being written. Raises `OutputError` if it can't be."""

    def __init__(self, directory: Path, names: dict[str, str], schema: pa.Schema) -> None:
        self._directory, self._names = directory, names
        folder = directory.joinpath(*(_folder(*item) for item in names.items()))
        self._path = folder / f"{secrets.token_hex(16)}.parquet"
        with _writing(self._path):
            folder.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("xb")
            self._writer = pq.ParquetWriter(self._file, schema, use_dictionary=list(REPEATED))
        self._rows = 0
        self._offsets: list[int] = []

    def write(self, rows: pa.Table) -> None:
        with _writing(self._path):
            self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))
        self._rows += rows.num_rows
        if "offset" in rows.column_names:
            offsets = rows["offset"].to_numpy()
            self._offsets += [int(offsets.min()), int(offsets.max())]

    def close(self) -> DataFile:
        """Returns once the file is on disk."""
        with _writing(self._path):
            self._writer.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            size = self._file.tell()
            self._file.close()
        return DataFile(
            self._path.relative_to(self._directory).as_posix(), self._rows, size,
            min(self._offsets, default=None), max(self._offsets) + 1 if self._offsets else None,
            self._names,
        )  # fmt: skip


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Encloses writing; raises `OutputError` for what the disk refuses."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path} can't be written: {error.strerror or error}") from error


def _tables(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yields the rows in tables of 64 MiB, the last one smaller."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            size += batch.nbytes
        if size >= GROUP_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _divided(table: pa.Table, divisions: Divisions) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
    """Yields the rows of each folder, in order, with the folder's values."""
    codes = np.zeros(table.num_rows, np.int64)
    for value in divisions.values():
        column = value(table).combine_chunks().dictionary_encode()
        codes = codes * len(column.dictionary) + column.indices.to_numpy()
    found, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    for number, at in enumerate(first):
        one = table.slice(at, 1)
        values = tuple(str(value(one)[0].as_py()) for value in divisions.values())
        rows = table if len(found) == 1 else table.take(np.flatnonzero(inverse == number))
        yield values, rows


def _folder(name: str, value: str) -> str:
    """Returns `name=value` as one name of a file system, which has 255 bytes at most."""
    text = quote(value, safe="")
    if len(text) > FOLDER_MAX:
        text = f"{text[:FOLDER_MAX]}-{hashlib.sha256(value.encode()).hexdigest()[:16]}"
    return f"{name}={text}"
