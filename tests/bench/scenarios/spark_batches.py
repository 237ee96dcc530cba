"""How long a micro-batch takes that follows a stream."""

from __future__ import annotations

import statistics
import tempfile

from ..brokers import Broker
from ..client import BenchError
from ..figures import Figures, Goal
from ..flow import Flow, fill
from ..producer import Load
from ..scenario import Scenario, Settings
from ..spark import FILL_LIMIT_S, NAME, filled, options, session, varied
from .spark_read import SMALL_BYTES

BATCHES = 20
BATCH_ROWS = 10_000
GOAL_MS = 300.0


def follow(broker: Broker, settings: Settings) -> Figures:
    """p50: of a query to nothing that has seen all before; each batch has ten thousand rows."""
    publishes = varied(SMALL_BYTES)
    load = Load(FILL_LIMIT_S, limit=BATCH_ROWS)
    times_ms: list[float] = []
    with filled(broker, publishes, BATCH_ROWS), tempfile.TemporaryDirectory() as checkpoint:
        reading = session().readStream.format("warren").options(**options(broker, stream=NAME))
        writing = reading.load().writeStream.format("noop")
        query = writing.option("checkpointLocation", checkpoint).start()
        query.processAllAvailable()
        for _ in range(BATCHES):
            fill(broker, Flow((NAME,), ((lambda: publishes, load),)))
            query.processAllAvailable()
            times_ms += [
                float(batch.durationMs["triggerExecution"])
                for batch in query.recentProgress
                if batch.numInputRows
            ][-1:]
        query.stop()
    if len(times_ms) != BATCHES:
        raise BenchError(f"{len(times_ms)} of {BATCHES} batches")
    p50_ms = statistics.median(times_ms)
    line = Figures(p50_ms=p50_ms, p99_ms=max(times_ms), note=f"{BATCHES} batches; p99 is the most")
    line.goals.append(Goal(f"{GOAL_MS:.0f} ms at the median at most", p50_ms <= GOAL_MS))
    return line


SCENARIOS = (Scenario("spark-micro-batch", follow, http=True, spark=True),)
