"""A server is killed and started again while Spark reads a stream: each row is counted once."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor

from ..brokers import Broker
from ..client import BenchError
from ..figures import Figures
from ..scenario import Scenario, Settings
from ..spark import NAME, filled, options, session, varied
from ..spent import Spent
from .spark_read import SMALL_BYTES

TASKS = 20
DONE_BEFORE, DONE_MOST = 5, 15
"""Of the tasks, so many are done when the server is killed, at least and at most."""
Counts = tuple[int, int]
"""The number of rows, and the sum of their offsets."""


def _read(broker: Broker) -> Counts:
    given = options(broker, stream=NAME, minPartitions=str(TASKS))
    rows = session().read.format("warren").options(**given).load()
    found = rows.selectExpr("count(*)", "sum(offset)").first()
    assert found is not None
    return found[0], found[1]


def _done() -> int:
    """Returns how many tasks of the query are done."""
    tracker = session().sparkContext.statusTracker()
    jobs = filter(None, map(tracker.getJobInfo, tracker.getActiveJobsIds()))
    stages = filter(None, (tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds))
    return sum(stage.numCompletedTasks for stage in stages)


def _wait(reading: Future[Counts]) -> int:
    """Waits for the moment to kill the server; returns how many tasks are done then."""
    while (done := _done()) < DONE_BEFORE and not reading.done():
        time.sleep(0.01)
    if not DONE_BEFORE <= done <= DONE_MOST:
        raise BenchError(f"{done} of {TASKS} tasks were seen at the kill: give more --messages")
    return done


def read_through_a_restart(broker: Broker, settings: Settings) -> Figures:
    """Out: rows, with the restart in between. The seconds are those of the restart."""
    count = settings.messages
    with filled(broker, varied(SMALL_BYTES), count), ThreadPoolExecutor(1) as reader:
        start = time.monotonic()
        reading = reader.submit(_read, broker)
        done = _wait(reading)
        restart_s = broker.restart(True)
        spent = Spent(broker)
        rows, offsets = reading.result()
        rate = count / (time.monotonic() - start)
        peak_mb = spent.peak_mb()
    if (rows, offsets) != (count, count * (count - 1) // 2):
        raise BenchError(f"{rows:,} rows of {count:,}, with offsets that add up to {offsets:,}")
    line = Figures(None, rate, rss_mb=peak_mb, seconds=restart_s)
    line.note = f"exactly {rows:,} rows; killed when {done} of {TASKS} tasks were done"
    return line


SCENARIOS = (
    Scenario(
        "spark-read-restart", read_through_a_restart, fresh=True, http=True, long=True, spark=True
    ),
)
