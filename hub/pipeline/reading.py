"""Reads the messages between two offsets, as the tasks of batches and streams do."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final

import numpy as np
import pyarrow as pa

from .allocation import keep_freed_memory
from .boundaries import report_loss
from .chunk_format import Records, read_chunks
from .client import ChunksRead, StreamClient
from .columns import decode
from .errors import DataLossError
from .options import ReadOptions
from .planner import StreamPartition

BATCH_ROWS: Final = 16_384
"""About how many rows are decoded at once: what is read again and again of these fits into the
processor's cache, and calls cost little for each."""


class RangeReader:
    """Reads one partition; used once."""

    def __init__(self, options: ReadOptions, partition: StreamPartition, schema: pa.Schema) -> None:
        self._options = options
        self._partition = partition
        self._schema = schema
        self._client = client_of(options)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields all rows in order. The next answer is fetched while one is decoded.

        Raises `DataLossError` for offsets that can't be read, unless that is to be accepted, and
        `ReadError` and `DamagedChunk`.
        """
        keep_freed_memory()
        at, end = self._partition.start, self._partition.end
        with closing(self._client), ThreadPoolExecutor(1) as fetcher:
            coming = fetcher.submit(self._fetch, at)
            while at < end:
                answer = coming.result()
                if answer.next < end:
                    coming = fetcher.submit(self._fetch, answer.next)
                yield from self._decoded(answer, at)
                at = answer.next

    def _fetch(self, at: int) -> ChunksRead:
        lossy = not self._options.fail_on_data_loss
        end, incarnation = self._partition.end, self._partition.incarnation
        try:
            answer = self._client.chunks(at, end, incarnation, skip_damaged=lossy)
        except DataLossError:
            if not lossy:
                raise
            return self._skipped(at)
        if answer.next <= at:
            raise DataLossError(
                f"{self._client.name} ends at offset {at}, and messages up to {end} were there: "
                "it has lost them; begin with a new checkpoint"
            )
        return answer

    def _skipped(self, at: int) -> ChunksRead:
        """Returns an empty answer up to the first message that is there."""
        offsets, end = self._client.offsets(), self._partition.end
        if offsets.incarnation != self._partition.incarnation:
            return ChunksRead(b"", end)
        return ChunksRead(b"", min(end, max(at, offsets.first)))

    def _decoded(self, answer: ChunksRead, at: int) -> Iterator[pa.RecordBatch]:
        records = read_chunks(answer.data)
        self._check(records, at, answer.next)
        for part in parts(records):
            stream, end = self._options.stream, self._partition.end
            batch = decode(answer.data, part, stream, at, end, self._schema)
            if batch.num_rows:
                yield batch

    def _check(self, records: Records, at: int, behind: int) -> None:
        """Raises `DataLossError` for a gap between two records, before the first or behind the
        last."""
        begins = np.append(records.offsets, behind)
        ends = np.append(at, records.offsets + records.counts)
        for gap in np.flatnonzero(begins > ends):
            loss = f"messages {ends[gap]} to {begins[gap] - 1} are missing in {self._client.name}"
            report_loss(self._options, loss)


def parts(records: Records) -> Iterator[Records]:
    """Yields the records in groups of some thousand messages."""
    if not len(records.ends):
        return
    numbers = np.cumsum(records.counts) // BATCH_ROWS
    cuts = np.flatnonzero(np.diff(numbers)) + 1
    for low, high in zip([0, *cuts], [*cuts, len(numbers)], strict=True):
        yield Records(*(column[low:high] for column in records))


def client_of(options: ReadOptions) -> StreamClient:
    return StreamClient(options.server, options.vhost, options.stream, options.source)
