"""Reads a stream as it is: `spark.read`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from .boundaries import available, resolve
from .client import Offsets
from .options import ReadOptions
from .planner import StreamPartition, split
from .pushdown import OffsetBounds, OptionalPushdown
from .reading import RangeReader, client_of
from .schema import arrow_schema


class StreamBatchReader(DataSourceReader):
    """Reads from one boundary to another; what the query's filters leave out is not asked for."""

    def __init__(self, options: ReadOptions, columns: dict[str, str]) -> None:
        self._options = options
        self._schema = arrow_schema(columns)
        self._client = client_of(options)
        self._bounds = OffsetBounds()
        # An object in the place of the method: see there.
        self.pushFilters = OptionalPushdown(self._bounds.add)  # type: ignore[method-assign]

    def partitions(self) -> list[InputPartition]:
        """Returns the parts of the stream as it is now, at least one. Raises `OptionError` for a
        boundary behind it, `DataLossError` for one before it, and `ReadError`."""
        with closing(self._client) as client:
            offsets = client.offsets()
            start, end = self._bounded(offsets, *self._boundaries(offsets))
        size, least = _share(offsets, end - start), self._options.min_partitions
        return [*split(start, end, offsets.incarnation, size, least)]

    def _boundaries(self, offsets: Offsets) -> tuple[int, int]:
        options, client = self._options, self._client
        start = resolve("startingOffset", options.starting, offsets, client)
        end = resolve("endingOffset", options.ending, offsets, client)
        return available(start, offsets, options, client), end

    def _bounded(self, offsets: Offsets, start: int, end: int) -> tuple[int, int]:
        """Returns what is left of the offsets within the bounds."""
        bounds = self._bounds
        if bounds.start is not None:
            start = max(start, bounds.start)
        if bounds.end is not None:
            end = min(end, bounds.end)
        if offsets.has_times_of_rows:
            if bounds.since is not None:
                start = max(start, self._client.offset_at(bounds.since))
            if bounds.until is not None:
                end = min(end, self._client.offset_at(bounds.until))
        return start, end

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark plans a partition of its own where there is none.
        if isinstance(partition, StreamPartition):
            yield from RangeReader(self._options, partition, self._schema).batches()


def _share(offsets: Offsets, rows: int) -> int:
    """Returns about how many bytes so many rows have."""
    total = offsets.next - offsets.first
    return (offsets.bytes or 0) * max(0, rows) // max(1, total)
