"""Follows a stream: `spark.readStream`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from .boundaries import available, report_loss, resolve
from .client import Offsets, StreamClient
from .errors import DataLossError, OptionError
from .options import ReadOptions, read_options
from .planner import StreamPartition, split
from .reading import RangeReader, client_of
from .schema import arrow_schema

INCARNATION = "incarnation"
BATCH_BYTES: Final = 64 * 1024 * 1024
"""The size of a micro-batch if no option says it: published again, also of the smallest messages,
it fits the default `max_transaction_bytes` of a server."""
Position = dict[str, Any]
"""An offset in a checkpoint: the stream's name with the next offset to be read, and `incarnation`
with the identity of the stream."""


class MicroBatchReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches from what it is given: a restart plans the same again.

    Options are read at the first use, for Spark hides an error in the constructor.
    """

    def __init__(self, options: Mapping[str, str], columns: dict[str, str]) -> None:
        self._given = dict(options)
        self._columns = columns
        self._target: int | None = None
        self._latest: Position | None = None

    @cached_property
    def _options(self) -> ReadOptions:
        options = read_options(self._given)
        if "endingOffset".lower() in map(str.lower, self._given):
            raise OptionError(
                "endingOffset is for spark.read alone; with readStream use "
                ".trigger(availableNow=True), which ends where the stream does"
            )
        if options.stream == INCARNATION:
            raise OptionError(f"a stream named '{INCARNATION}' can be read with spark.read alone")
        return options

    @cached_property
    def _client(self) -> StreamClient:
        return client_of(self._options)

    def initialOffset(self) -> Position:
        """Returns where a query without a checkpoint begins."""
        offsets = self._client.offsets()
        starting = self._options.starting
        start = resolve("startingOffset", starting, offsets, self._client)
        return self._position(available(start, offsets, self._options, self._client), offsets)

    def getDefaultReadLimit(self) -> ReadLimit:
        options = self._options
        if options.max_rows is not None:
            return ReadMaxRows(options.max_rows)
        return ReadMaxBytes(options.max_bytes or BATCH_BYTES)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._client.offsets().next

    def latestOffset(self, start: Position, limit: ReadLimit) -> Position:
        """Returns where a micro-batch from `start` on ends.

        Raises `DataLossError` if messages from `start` on are no longer there.
        """
        offsets = self._client.offsets()
        self._latest = self._position(offsets.next, offsets)
        begin = self._begin(start, offsets)
        end = offsets.next if self._target is None else min(offsets.next, self._target)
        if begin < end and isinstance(limit, ReadMaxRows):
            end = min(end, begin + limit.max_rows)
        elif begin < end and isinstance(limit, ReadMaxBytes):
            end = min(end, self._client.limit(begin, limit.max_bytes))
        return self._position(max(begin, end), offsets)

    def reportLatestOffset(self) -> Position | None:
        return self._latest

    def _begin(self, start: Position, offsets: Offsets) -> int:
        """Returns the first offset from `start` on that is there."""
        options, name = self._options, self._client.name
        at = self._next(start)
        if start[INCARNATION] != offsets.incarnation:
            report_loss(
                options,
                f"{name} was deleted and made again (incarnation {start[INCARNATION]} in the "
                f"checkpoint, now {offsets.incarnation}), so the messages from {at} on are lost",
            )
            return offsets.first
        if at > offsets.next:
            raise DataLossError(
                f"{name} ends at offset {offsets.next}, the checkpoint is at {at}: messages were "
                "lost; begin with a new checkpoint"
            )
        return available(at, offsets, options, self._client)

    def partitions(self, start: Position, end: Position) -> list[InputPartition]:
        """Divides a micro-batch. Of a stream that was made again all is new."""
        incarnation = end[INCARNATION]
        begin = self._next(start) if start[INCARNATION] == incarnation else 0
        return [*split(begin, self._next(end), incarnation, 0, self._options.min_partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, StreamPartition)
        return RangeReader(self._options, partition, arrow_schema(self._columns)).batches()

    def stop(self) -> None:
        if "_client" in self.__dict__:
            self._client.close()
        if isinstance(sys.exc_info()[1], EOFError):
            # The query has ended, and Spark has closed its side of the connection to this process.
            # PySpark would answer that, and print that nobody has got the answer.
            os._exit(0)

    def _position(self, at: int, offsets: Offsets) -> Position:
        return {self._options.stream: at, INCARNATION: offsets.incarnation}

    def _next(self, position: Position) -> int:
        """Returns the offset in a checkpoint. Raises `OptionError` for one of another stream."""
        if self._options.stream not in position:
            names = ", ".join(sorted(position.keys() - {INCARNATION}))
            raise OptionError(
                f"the checkpoint is of stream '{names}', the option says "
                f"'{self._options.stream}'; give each query a checkpoint of its own"
            )
        return int(position[self._options.stream])
