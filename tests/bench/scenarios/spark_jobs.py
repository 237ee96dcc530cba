"""Jobs of the pipeline: `archive`, `rollup`, and `near-duplicates` of ten thousand entries."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.entries import near_copies

from ..brokers import Broker
from ..client import BenchError
from ..figures import Figures
from ..frames import PERSISTENT, Message, Stream
from ..scenario import Settings
from ..spark import EXCHANGE, NAME, filled, options, session, varied
from .spark_read import RUNS, SMALL_BYTES, measure, row

if TYPE_CHECKING:
    import pyarrow as pa

ENTRIES = 10_000
SHARE = 10
RECALL = 0.95


class _Runs:
    """Runs of one job, each in a new directory below one."""

    def __init__(self, broker: Broker, job: str, top: Path) -> None:
        self._broker, self._job, self._top = broker, job, top
        self._count = 0

    def run(self) -> None:
        from warrenmq.hub.pipeline.jobs.job import Task, read_parameters
        from warrenmq.hub.pipeline.jobs.registry import find_job
        from warrenmq.hub.pipeline.options import server_options
        from warrenmq.hub.pipeline.progress import Progress

        job, self._count = find_job(self._job), self._count + 1
        task: Task[Any] = Task(
            server_options(options(self._broker)), "/", NAME, self._top / str(self._count),
            read_parameters(job, {}), results=None,
        )  # fmt: skip
        job.run(session(), task, Progress())

    def tables(self) -> Iterator[pa.Table]:
        """Yields the table of each run."""
        import pyarrow.dataset

        from warrenmq.hub.pipeline.manifest import files

        for directory in self._top.iterdir():
            yield pyarrow.dataset.dataset(files(directory)).to_table()

    def rows(self) -> Iterator[int]:
        """Yields how many rows the table of each run has, by its manifest."""
        from warrenmq.hub.pipeline.manifest import Manifest

        for directory in self._top.iterdir():
            yield sum(file.rows for file in Manifest(directory).files())


@contextmanager
def _runs(broker: Broker, job: str) -> Iterator[_Runs]:
    with tempfile.TemporaryDirectory() as top:
        yield _Runs(broker, job, Path(top))


def archive(broker: Broker, settings: Settings) -> Figures:
    """Out: messages that are in Parquet, by exchange and day, and in a manifest."""
    count = settings.messages
    with filled(broker, varied(SMALL_BYTES), count), _runs(broker, "archive") as runs:
        line = measure(broker, count, runs.run)
        if (found := [*runs.rows()]) != [count] * (RUNS + 1):
            raise BenchError(f"archives have {found} rows, not {count}")
    return line


def rollup(broker: Broker, settings: Settings) -> Figures:
    """Out: messages that are counted by minute, exchange and key, of two million."""
    count = 2 * settings.messages
    with filled(broker, varied(SMALL_BYTES), count), _runs(broker, "rollup") as runs:
        line = measure(broker, count, runs.run)
        for table in runs.tables():
            updates = table.to_pandas().sort_values("offset")
            found = updates.drop_duplicates(["minute", "exchange", "routing_key"], keep="last")
            if (counted := int(found.messages.sum())) != count:
                raise BenchError(f"{counted} of {count} messages are counted")
    return line


def near_duplicates(broker: Broker, settings: Settings) -> Figures:
    """Out: entries that were compared with all others, of which a tenth are nearly the same as
    one."""
    texts, alike = near_copies(ENTRIES, SHARE, 3)
    bodies = [json.dumps({"id": str(at), "title": text}) for at, text in enumerate(texts)]
    size = max(map(len, bodies))
    messages = [Message(EXCHANGE, "feed", body.ljust(size).encode(), PERSISTENT) for body in bodies]
    publishes = Stream.join([message.published() for message in messages])
    wanted = sum(share >= 0.7 for share in alike.values())
    with filled(broker, publishes, ENTRIES), _runs(broker, "near-duplicates") as runs:
        line = measure(broker, ENTRIES, runs.run)
        least = min(runs.rows())
    if least < RECALL * wanted:
        raise BenchError(f"{least} of {wanted} pairs were found")
    line.remark(f"{least} of {wanted} pairs")
    return line


SCENARIOS = (
    row("spark-archive", archive, 300_000),
    # Two million in 5 s, ten thousand in 6 s.
    row("spark-rollup", rollup, 400_000),
    row("spark-near-duplicates", near_duplicates, 1_667),
)
