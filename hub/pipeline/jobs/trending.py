"""The job `trending`: terms that are more frequent in recent documents than before."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from ..client import Offsets, StreamClient
from ..progress import Progress
from .documents import documents
from .job import Job, Task, parameter
from .ranges import read_range, repeat
from .table import Table, stream_check, stream_origin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME: Final = "trending"
_TERMS: Final = r"array_distinct(regexp_extract_all(lower(text), r'[\p{L}\p{M}\p{N}]{3,}', 0))"
_MICROSECONDS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Parameters:
    window_s: int = parameter(
        3600, "Length of the window in seconds, up to the newest document.", low=1
    )
    before_s: int = parameter(
        86400, "Length in seconds of the time before the window, with which it is compared.", low=1
    )
    least: int = parameter(
        3, "Minimum number of documents in the window that contain a term.", low=1
    )
    top: int = parameter(50, "Maximum number of terms in the result.", low=1)
    every_s: float = parameter(60.0, "With --follow, seconds between two comparisons.", low=1)


def trending(
    found: DataFrame, until_us: int, window_s: int, before_s: int, least: int, top: int
) -> DataFrame:
    """Compares the documents of the window that ends with `until_us` with those of the time before
    it. Returns the `top` terms of the window:

    - `term`, in lower case; those of fewer than three letters are left out,
    - `documents`: how many of the window have it, `least` or more,
    - `expected`: how many it would be if it were as frequent as before,
    - `score`: how many standard deviations there are more,
    - `until`: the end of the window.
    """
    begin_us = until_us - window_s * _MICROSECONDS
    marked = found.where(
        f"timestamp <= timestamp_micros({until_us})"
        f" AND timestamp > timestamp_micros({begin_us - before_s * _MICROSECONDS})"
    ).selectExpr(f"timestamp > timestamp_micros({begin_us}) AS is_new", f"{_TERMS} AS terms")
    totals = _counted(marked)
    counts = _counted(marked.selectExpr("is_new", "explode(terms) AS term"), "term")
    return (
        counts.where(f"new >= {least}")
        .crossJoin(totals.selectExpr("new AS all_new", "old AS all_old"))
        .selectExpr("term", "new AS documents", "old * all_new / greatest(all_old, 1) AS expected")
        .selectExpr("*", "(documents - expected) / sqrt(expected + 1) AS score")
        .where("score > 0")
        .selectExpr(f"timestamp_micros({until_us}) AS until", "*")
        .orderBy("score", "documents", "term", ascending=[False, False, True])
        .limit(top)
    )


def _counted(marked: DataFrame, *columns: str) -> DataFrame:
    from pyspark.sql.functions import expr

    return marked.groupBy(*columns).agg(
        expr("count_if(is_new) AS new"), expr("count_if(NOT is_new) AS old")
    )


def run(session: SparkSession, task: Task[Parameters], progress: Progress) -> None:
    """Adds the terms of the window that ends with the last document."""
    table = Table(task, stream_origin(NAME, task))
    repeat(task, progress, lambda offsets: _compare(session, task, table, offsets))


def _compare(session: SparkSession, task: Task[Parameters], table: Table, offsets: Offsets) -> int:
    """Returns the offset of the first document."""
    if offsets.first == offsets.next:
        return offsets.next
    with closing(task.client()) as client:
        return _add_terms(session, task, table, client, offsets.next)


def _add_terms(
    session: SparkSession, task: Task[Parameters], table: Table, client: StreamClient, end: int
) -> int:
    given = task.parameters
    (last,) = (
        read_range(session, task, end - 1, end).selectExpr("unix_micros(timestamp) AS at").collect()
    )
    until = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=last.at)
    start = client.offset_at(until - timedelta(seconds=given.window_s + given.before_s))
    found = documents(read_range(session, task, start, end)).persist()
    try:
        terms = trending(found, last.at, given.window_s, given.before_s, given.least, given.top)
        table.add(terms, f"{end}/{given}")
    finally:
        found.unpersist()
    return start


TRENDING: Final[Job[Any]] = Job(
    NAME,
    "Finds terms that documents have more often than before.",
    Parameters,
    run,
    stream_check(NAME),
)
