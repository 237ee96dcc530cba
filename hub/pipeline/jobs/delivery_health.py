"""The job `delivery-health`: how well deliveries go, by subscription, topic and minute.

It reads a stream that is bound to the exchange `hub.attempts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..chart import Chart, Panel
from .job import Job
from .rollup import DELAY, percentiles
from .updates import Parameters, Updates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ATTEMPT: Final = (
    "from_json(cast(body AS string),"
    " 'subscription string, topic string, outcome string, latency_ms double')"
)


def delivery_health(rows: DataFrame) -> DataFrame:
    """Returns for each minute of arrival, subscription and topic:

    - `attempts`, and how many of them were `delivered`, `retried`, `dead` (failed for good) and
      `gone` (the callback has ended the subscription),
    - `success_rate`, the share of those delivered,
    - `latency_p50_ms` and `latency_p99_ms`,
    - `offset` of the last one.

    What is no attempt counts too, in groups without subscription and topic.
    """
    from pyspark.sql.functions import expr, window

    outcomes = ("delivered", "retried", "dead", "gone")
    return (
        rows.selectExpr("timestamp", "offset", f"{_ATTEMPT} AS attempt")
        .selectExpr("timestamp", "offset", "attempt.*")
        .withWatermark("timestamp", DELAY)
        .groupBy(window("timestamp", "1 minute").alias("minute"), "subscription", "topic")
        .agg(
            expr("count(*) AS attempts"),
            *(expr(f"count_if(outcome <=> '{name}') AS {name}") for name in outcomes),
            expr(f"{percentiles('latency_ms')} AS latency_ms"),
            expr("max(offset) AS offset"),
        )
        .selectExpr(
            "minute.start AS minute", "subscription", "topic", "attempts", *outcomes,
            "delivered / attempts AS success_rate",
            "latency_ms[0] AS latency_p50_ms", "latency_ms[1] AS latency_p99_ms",
            "offset",
        )
    )  # fmt: skip


CHART: Final = Chart(
    "Delivery health",
    ("subscription", "topic"),
    "subscription",
    "attempts",
    (
        Panel("delivered, percent", "delivered", whole="attempts"),
        Panel("attempts", "attempts"),
        Panel("latency, median, ms", "latency_p50_ms", "max"),
        Panel("latency, 99th percentile, ms", "latency_p99_ms", "max"),
    ),
)
_UPDATES: Final = Updates("delivery-health", lambda rows, _: delivery_health(rows))
DELIVERY_HEALTH: Final[Job[Any]] = Job(
    _UPDATES.job,
    "Measures deliveries by minute, subscription and topic.",
    Parameters,
    _UPDATES.run,
    _UPDATES.check,
    chart=CHART,
)
