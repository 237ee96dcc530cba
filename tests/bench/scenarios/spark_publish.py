"""Spark publishes to an exchange: staged rows, and one commit that is synced."""

from __future__ import annotations

from ..brokers import Broker
from ..figures import Figures
from ..scenario import Scenario, Settings
from ..spark import EXCHANGE, KEYS, options, session, standing, wait_for
from .spark_read import RUNS, SMALL_BYTES, measure

BODY = f"cast(rpad(cast(id AS string), {SMALL_BYTES}, '.') AS binary) AS body"


def publish(broker: Broker, settings: Settings) -> Figures:
    """In: rows with keys and bodies of their own that are in a stream afterwards."""
    assert broker.http is not None
    count = settings.messages // 2
    rows = session().range(count, numPartitions=2)
    rows = rows.selectExpr(f"concat('key.', id % {KEYS}) AS routing_key", BODY)

    def write() -> None:
        writing = rows.write.format("warren").options(**options(broker, exchange=EXCHANGE))
        writing.mode("append").save()

    with standing(broker):
        line = measure(broker, count, write)
        wait_for(broker.http, count * (RUNS + 1))
    line.in_rate, line.out_rate = line.out_rate, None
    return line


SCENARIOS = (Scenario("spark-publish", publish, 150_000, http=True, spark=True),)
