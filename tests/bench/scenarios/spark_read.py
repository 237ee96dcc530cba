"""Spark reads a stream: to nothing, and to Parquet. Messages differ in key and body, or in id and
headers too."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..brokers import Broker
from ..client import BenchError
from ..figures import Figures, Goal
from ..frames import Stream
from ..scenario import Scenario, Settings
from ..spark import NAME, filled, keyed, options, scan, session, varied
from ..spent import Spent

SMALL_BYTES, KIB_BYTES = 100, 1_024
RUNS = 3
HUB_CPU_US = 0.3


def measure(broker: Broker, count: int, read: Callable[[], None]) -> Figures:
    """Out: rows of the fastest of three runs behind one that warms up. The CPU is the hub's."""
    read()
    spent = Spent(broker)
    times_s = [_timed(read) for _ in range(RUNS)]
    line = Figures(None, count / min(times_s), spent.cpu_us(count * RUNS), spent.peak_mb())
    line.note = f"{count:,} rows, slowest {count / max(times_s):,.0f}/s"
    return line


def _timed(read: Callable[[], None]) -> float:
    start = time.monotonic()
    read()
    return time.monotonic() - start


def to_nothing(
    make: Callable[[int], Stream], body_bytes: int, broker: Broker, settings: Settings
) -> Figures:
    """A scan of the whole stream, every column."""
    count = settings.messages * 2 * SMALL_BYTES // body_bytes
    with filled(broker, make(body_bytes), count):
        line = measure(broker, count, partial(scan, broker))
    assert line.cpu_us is not None
    line.goals.append(Goal(f"{HUB_CPU_US} us of the hub at most", line.cpu_us <= HUB_CPU_US))
    return line


def to_parquet(broker: Broker, settings: Settings) -> Figures:
    """A streaming query takes the whole stream to files, and ends."""
    count = settings.messages
    with filled(broker, varied(SMALL_BYTES), count), tempfile.TemporaryDirectory() as directory:
        places = (Path(directory, str(number)) for number in range(RUNS + 1))
        line = measure(broker, count, lambda: _archive(broker, next(places)))
        for place in Path(directory).iterdir():
            stored = session().read.parquet(str(place / "rows")).count()
            if stored != count:
                raise BenchError(f"{stored} of {count} rows are in the files")
    return line


def _archive(broker: Broker, place: Path) -> None:
    reading = session().readStream.format("warren").options(**options(broker, stream=NAME))
    writing = reading.load().writeStream.format("parquet").option("path", str(place / "rows"))
    query = (
        writing.option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def row(name: str, run: Callable[[Broker, Settings], Figures], floor: float) -> Scenario:
    return Scenario(name, run, floor, http=True, spark=True)


SCENARIOS = (
    row("spark-read-100", partial(to_nothing, keyed, SMALL_BYTES), 1_000_000),
    row("spark-read-1k", partial(to_nothing, keyed, KIB_BYTES), 250_000),
    row("spark-read-100-varied", partial(to_nothing, varied, SMALL_BYTES), 300_000),
    row("spark-parquet", to_parquet, 300_000),
)
