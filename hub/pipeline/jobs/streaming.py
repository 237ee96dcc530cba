"""Runs a streaming query of a job: to the end of the stream, or until the run is stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from ..progress import Progress
from ..spark_errors import explain
from .job import Task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import SourceProgress
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

POLL_S: Final = 1


class Stopped(Exception):
    """A run was stopped, so no further micro-batch is begun."""


def read_stream(session: SparkSession, task: Task[Any], **options: str) -> DataFrame:
    """Returns the task's stream as a data frame of a streaming query."""
    return session.readStream.format("warren").options(**task.options(), **options).load()


def run_query(
    writing: DataStreamWriter,
    task: Task[Any],
    progress: Progress,
    process: Callable[[DataFrame, str], object],
    *,
    every_s: float = 0.0,
) -> None:
    """Has `process` called with each micro-batch and its key, until the stream ends or the run is
    stopped; a batch that has begun is completed first.

    A key is the same again when a batch is repeated after a crash, and no other batch has it. With
    `--follow` there is a batch every `every_s` seconds at most. Raises what `process` raised, or
    what Spark says as one of the pipeline's errors.
    """
    trigger: dict[str, Any] = {"availableNow": True}
    if task.follow:
        trigger = {"processingTime": f"{round(every_s * 1000)} milliseconds"}
    batches = _Batches(process, progress)
    query = (
        writing.foreachBatch(batches)
        .option("checkpointLocation", str(task.checkpoint))
        .trigger(**trigger)
        .start()
    )
    batches.begin(str(query.id))
    try:
        _wait(query, task.stream, progress, batches)
    except Exception as error:
        if progress.stopped and isinstance(batches.failure, Stopped | None):
            # The signal may have reached Java too, which then ends in its own way.
            return
        raise explain(batches.failure or error) from error
    finally:
        query.stop()


class _Batches:
    """Hands batches over, and keeps what went wrong there: Spark's own error has it as a text."""

    def __init__(self, process: Callable[[DataFrame, str], object], progress: Progress) -> None:
        self._process = process
        self._progress = progress
        self._query: Future[str] = Future()
        self.busy = False
        self.failure: Exception | None = None

    def begin(self, query: str) -> None:
        """Says which query it is, which is known once Spark has started it."""
        self._query.set_result(query)

    def __call__(self, batch: DataFrame, number: int) -> None:
        self.busy = True
        try:
            if self._progress.stopped:
                raise Stopped
            self._process(batch, f"{self._query.result()}/{number}")
        except Exception as error:
            self.failure = error
            raise
        finally:
            self.busy = False


def _wait(query: StreamingQuery, stream: str, progress: Progress, batches: _Batches) -> None:
    """Raises what Spark raises if the query fails."""
    counts = _Counts(stream, progress)
    while not query.awaitTermination(POLL_S):
        counts.take(query)
        if progress.stopped and not batches.busy:
            query.stop()
    counts.take(query)


class _Counts:
    """Takes what Spark says of each micro-batch, and while there is none, once: messages, what it
    has dropped of them behind the watermark, and what the stream has behind them."""

    def __init__(self, stream: str, progress: Progress) -> None:
        self._stream = stream
        self._progress = progress
        self._taken: set[str] = set()

    def take(self, query: StreamingQuery) -> None:
        recent = query.recentProgress
        for batch in recent:
            if batch.timestamp not in self._taken:
                late = sum(state.numRowsDroppedByWatermark for state in batch.stateOperators)
                self._progress.drop(late)
                self._progress.add(batch.numInputRows, self._lag(batch.sources))
        self._taken = {batch.timestamp for batch in recent}

    def _lag(self, sources: Sequence[SourceProgress]) -> int | None:
        """Returns how many messages of the stream come behind a batch, if Spark says so."""
        for source in sources:
            end, latest = (
                json.loads(text) if text else None
                for text in (source.endOffset, source.latestOffset)
            )
            if isinstance(end, dict) and isinstance(latest, dict):
                return max(0, int(latest[self._stream]) - int(end[self._stream]))
        return None
