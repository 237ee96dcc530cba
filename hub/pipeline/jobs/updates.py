"""Jobs that count messages in groups: each micro-batch adds the groups that it has changed.

The table has updates. Of a group the row with the highest `offset` holds, which is that of the last
message counted in it: `SELECT max_by(struct(*), offset) ... GROUP BY` the group's columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..manifest import Manifest
from ..progress import Progress
from .job import Task, parameter
from .streaming import read_stream, run_query
from .table import (
    Table,
    archive_origin,
    lag_behind,
    open_archive,
    read_files,
    stream_origin,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Parameters:
    archive: str = parameter(
        "", "Directory of an archive of the stream, to count in one pass instead of the stream."
    )
    max_rows: int = parameter(
        1_000_000, "Maximum number of messages that are counted together.", low=1
    )
    every_s: float = parameter(
        10.0, "With --follow, minimum number of seconds between two updates.", low=0
    )


@dataclass(frozen=True, slots=True)
class Updates:
    """A job that counts in groups. `count` makes groups of rows, with the column `offset`."""

    job: str
    count: Callable[[DataFrame, Any], DataFrame]

    def check(self, task: Task[Any]) -> None:
        """Raises `PipelineError` if there is no such stream or archive, or if the directory has
        something else."""
        self._table(task)

    def run(self, session: SparkSession, task: Task[Any], progress: Progress) -> None:
        """Counts an archive, or what has come into a stream since the last run."""
        table, parameters = self._table(task), task.parameters
        if parameters.archive:
            archive = open_archive(parameters.archive)
            counted = self._count(session, archive, table, parameters)
            progress.add(counted, lag_behind(task, archive))
            return
        # A batch without messages would only drop old groups, as the next one with messages does.
        session.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        rows = read_stream(session, task, maxRowsPerTrigger=str(parameters.max_rows))
        updates = self.count(rows, parameters).writeStream.outputMode("update")
        run_query(updates, task, progress, table.add, every_s=parameters.every_s)

    def _count(
        self, session: SparkSession, archive: Manifest, table: Table, parameters: Any
    ) -> int:
        """Returns how many messages were counted, none if they were before."""
        files = archive.files()
        rows = self.count(read_files(session, archive.directory, files), parameters)
        is_new = table.add(rows, f"archive/{len(archive.commits)}/{parameters}")
        return sum(file.rows for file in files) if is_new else 0

    def _table(self, task: Task[Any]) -> Table:
        place = task.parameters.archive
        if not place:
            return Table(task, stream_origin(self.job, task))
        origin = archive_origin(self.job, open_archive(place))
        if (origin["vhost"], origin["stream"]) != (task.vhost, task.stream):
            raise OptionError(
                f"archive='{place}' is of stream '{origin['stream']}' in vhost "
                f"'{origin['vhost']}', not of '{task.stream}' in '{task.vhost}'"
            )
        return Table(task, origin)
