"""Publishes rows to an exchange: `write` and `writeStream`.

Tasks stage their rows, and the driver commits those of the attempts that succeeded: all of them are
published, once, or none.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from .errors import OptionError, TooLargeError, UnavailableError, WriteError
from .rows_format import encode, pieces
from .schema import check_written
from .server import ServerClient, require_queue
from .transactions import PATIENCE_S, TransactionClient
from .write_options import BATCH_OPTIONS, STREAM_OPTIONS, WriteOptions, write_options

logger = logging.getLogger(__name__)

_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"


@dataclass(frozen=True)
class StagedPartition(WriterCommitMessage):
    """The rows of a partition that an attempt has staged."""

    query: str
    partition: int
    attempt: int
    pieces: int


class ExchangeWriter(DataSourceArrowWriter):
    """Publishes the rows of a data frame in one transaction. With the option `txId` a repeated
    write, of another process too, publishes nothing."""

    def __init__(
        self, options: Mapping[str, str], columns: dict[str, str], overwrite: bool
    ) -> None:
        if overwrite:
            raise OptionError("an exchange can't be overwritten; use .mode('append')")
        self._options = write_options(options, BATCH_OPTIONS)
        check_written(columns, self._options.queue)
        tx_id = self._options.tx_id
        # The commit is repeated when its answer is lost: without an id of the user's too it needs
        # one that no other write has.
        self._query = f"write-{secrets.token_hex(16)}" if tx_id is None else f"tx-{tx_id}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedPartition:
        return _stage(self._options, self._query, self._options.tx_version, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        options = self._options
        _require_queue(options)
        with closing(_client(options)) as client:
            unrouted = client.commit(self._query, options.tx_version, _attempts(messages))
            _warn(options, unrouted)
            if options.tx_id is None:
                _forget(client, self._query)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _abort(self._options, self._query, self._options.tx_version)


class StreamExchangeWriter(DataSourceStreamArrowWriter):
    """Publishes each micro-batch in one transaction, whose number is the batch's: a batch that is
    run again after a crash publishes nothing if it was committed before.

    Options are read at the first use, for Spark hides an error in the constructor.
    """

    def __init__(self, options: Mapping[str, str], columns: dict[str, str]) -> None:
        self._given = dict(options)
        self._columns = columns

    @cached_property
    def _options(self) -> WriteOptions:
        options = write_options(self._given, STREAM_OPTIONS)
        check_written(self._columns, options.queue)
        return options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedPartition:
        context = TaskContext.get()
        assert context is not None
        query, batch = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
        assert query is not None and batch is not None, "Spark names neither query nor batch"
        return _stage(self._options, query, int(batch), iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        # Without partitions there is nothing to publish, and nobody says which query it is.
        for staged in _staged(messages)[:1]:
            _require_queue(self._options)
            with closing(_client(self._options)) as client:
                self._commit(client, staged.query, batchId, messages)

    def _commit(
        self,
        client: TransactionClient,
        query: str,
        number: int,
        messages: Sequence[WriterCommitMessage | None],
    ) -> None:
        try:
            _warn(self._options, client.commit(query, number, _attempts(messages)))
        except TooLargeError as error:
            # A restart has the same batch again, whatever its options are.
            planned = f"{self._options.checkpoint}/offsets"
            raise TooLargeError(
                f"{error}; the checkpoint has planned this batch: raise max_transaction_bytes of "
                f"the server, or stop the query, delete {planned}/{number} and "
                f"{planned}/.{number}.crc, and give a smaller maxRowsPerTrigger"
            ) from error

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        # Without a task that succeeded nobody says which query it is; what is staged expires.
        for staged in _staged(messages)[:1]:
            _abort(self._options, staged.query, batchId)


def _client(options: WriteOptions) -> TransactionClient:
    return TransactionClient(options.server, options.vhost, options.exchange)


def _require_queue(options: WriteOptions) -> None:
    """Raises `ReadError` if rows are for a queue that is not there: they would be lost."""
    if options.queue is not None:
        with ServerClient(options.server, PATIENCE_S) as client:
            require_queue(client, options.vhost, options.queue)


def _stage(
    options: WriteOptions, query: str, number: int, batches: Iterable[pa.RecordBatch]
) -> StagedPartition:
    """Stages the rows of a task."""
    context = TaskContext.get()
    assert context is not None
    # Spark counts attempts anew after a restart, when tasks of the killed driver may still stage.
    partition, attempt, count = context.partitionId(), secrets.randbits(62), 0
    rows = (encode(batch, options.routing_key) for batch in batches if batch.num_rows)
    with closing(_client(options)) as client:
        for count, piece in enumerate(pieces(rows), 1):
            client.stage(query, number, partition, attempt, count - 1, piece)
    return StagedPartition(query, partition, attempt, count)


def _warn(options: WriteOptions, unrouted: int) -> None:
    """Logs rows that have gone nowhere. Of other exchanges it may be that nobody listens."""
    if unrouted and not options.exchange:
        logger.warning(
            "%d rows are lost: their routing keys are no names of queues in vhost '%s', and the "
            "default exchange has no other bindings",
            unrouted, options.vhost,
        )  # fmt: skip


def _forget(client: TransactionClient, query: str) -> None:
    """Has the server forget a write that nobody repeats, so that it does not make room for it by
    forgetting one that somebody may repeat. A failure is logged: the rows are published."""
    try:
        client.forget(query)
    except (UnavailableError, WriteError) as error:
        logger.warning("%s; the rows are published, and the server remembers that", error)


def _abort(options: WriteOptions, query: str, number: int) -> None:
    """Deletes what is staged. A failure is logged: what has failed before is what users need to
    see."""
    try:
        with closing(_client(options)) as client:
            client.abort(query, number)
    except (UnavailableError, WriteError) as error:
        logger.warning("%s; what is staged there expires", error)


def _staged(messages: Sequence[WriterCommitMessage | None]) -> list[StagedPartition]:
    return [message for message in messages if isinstance(message, StagedPartition)]


def _attempts(messages: Sequence[WriterCommitMessage | None]) -> list[tuple[int, int, int]]:
    return [(one.partition, one.attempt, one.pieces) for one in _staged(messages)]
