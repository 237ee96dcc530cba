"""The job `rollup`: what went through a stream in each minute, by exchange and routing key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..chart import Chart, Panel
from . import updates
from .job import Job, parameter
from .updates import Updates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ACCURACY: Final = 1000
"""Percentiles are off by a thousandth of the messages at most."""
DELAY: Final = "10 minutes"
"""How long the counts of a minute are kept. Messages arrive in order, so it is for a clock that was
set back."""
_AGE_MS: Final = "unix_millis(timestamp) - unix_millis(message_timestamp)"


@dataclass(frozen=True, slots=True)
class Parameters(updates.Parameters):
    late_s: float = parameter(
        60.0, "Age in seconds at arrival from which on a message is counted as late.", low=0
    )


def percentiles(column: str) -> str:
    """Returns an expression of the median and the 99th percentile."""
    return f"percentile_approx({column}, array(0.5, 0.99), {ACCURACY})"


def rollup(rows: DataFrame, late_s: float) -> DataFrame:
    """Returns for each minute of arrival, exchange and routing key:

    - `messages` and `bytes` of their bodies, with `size_p50` and `size_p99` in bytes,
    - `age_p50_ms` and `age_p99_ms`: how old messages were when they arrived, by the time that their
      publishers have given, which AMQP has in seconds; null if none has,
    - `late`: how many were older than `late_s` then,
    - `offset` of the last one.
    """
    from pyspark.sql.functions import expr, window

    return (
        rows.selectExpr(
            "timestamp", "exchange", "routing_key", "offset", "octet_length(body) AS size",
            f"{_AGE_MS} AS age_ms",
        )
        .withWatermark("timestamp", DELAY)
        .groupBy(window("timestamp", "1 minute").alias("minute"), "exchange", "routing_key")
        .agg(
            expr("count(*) AS messages"),
            expr("sum(size) AS bytes"),
            expr(f"count_if(age_ms > {late_s * 1000}) AS late"),
            expr(f"{percentiles('size')} AS size"),
            expr(f"{percentiles('age_ms')} AS age_ms"),
            expr("max(offset) AS offset"),
        )
        .selectExpr(
            "minute.start AS minute", "exchange", "routing_key", "messages", "bytes", "late",
            "size[0] AS size_p50", "size[1] AS size_p99",
            "age_ms[0] AS age_p50_ms", "age_ms[1] AS age_p99_ms", "offset",
        )
    )  # fmt: skip


CHART: Final = Chart(
    "Rollup",
    ("exchange", "routing_key"),
    "exchange",
    "messages",
    (
        Panel("messages", "messages"),
        Panel("bytes", "bytes"),
        Panel("size of a message, 99th percentile, bytes", "size_p99", "max"),
        Panel("age at arrival, 99th percentile, ms", "age_p99_ms", "max"),
    ),
)
_UPDATES: Final = Updates("rollup", lambda rows, given: rollup(rows, given.late_s))
ROLLUP: Final[Job[Any]] = Job(
    _UPDATES.job,
    "Counts messages and bytes by minute, exchange and routing key.",
    Parameters,
    _UPDATES.run,
    _UPDATES.check,
    chart=CHART,
)
