"""The table of a job's results: rows in its directory, and messages."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..errors import OutputError
from ..manifest import DataFile, Manifest, ManifestCommit
from .job import Task
from .merging import merge_small

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Origin = dict[str, Any]
"""The source of a table: `job`, `vhost`, `stream` and `incarnation`."""
RESULTS: Final = "results"
"""Key in the details of a commit: whether its rows are published."""


class Table:
    """The results of a job, in the directory of its task."""

    def __init__(self, task: Task[Any], origin: Origin) -> None:
        """Raises `OutputError` if the directory has a table of another origin."""
        self.manifest = Manifest(task.directory)
        self._task = task
        last = self.manifest.last
        if last is not None:
            _check(task.directory, last.details, origin)
        details = {"table": secrets.token_hex(16), **origin} if last is None else last.details
        self._details = details | {RESULTS: task.results is not None}

    def add(self, found: DataFrame, key: str) -> bool:
        """Adds rows to the table and publishes them, each once, if the task has results; returns
        false for a key that was committed before, under which nothing is added."""
        from .parquet_files import write_files

        is_new = self.manifest.find(key) is None
        files = write_files(found, self._task.directory, {}) if is_new else []
        if files:
            self.manifest.commit(key, files, details=self._details)
        published = self._publish(found.sparkSession)
        merge_small(
            self.manifest, lambda commit: commit.number < published or not _has_results(commit)
        )
        return is_new

    def _publish(self, session: SparkSession) -> int:
        """Publishes the commits that are to be and are not yet, also those of a run that was
        killed; returns below which number all are published then."""
        from ..publishing import TablePublisher

        exchange = self._task.results
        if exchange is None:
            return 0
        series = f"results-{self._details['table']}"
        with TablePublisher(self._task.server, self._task.vhost, exchange, series) as publisher:
            for commit in self.manifest.commits[publisher.last() :]:
                if not commit.files or not _has_results(commit):
                    continue
                rows = read_files(session, self.manifest.directory, commit.files)
                publisher.publish(commit.number + 1, _messages(rows, self._details["job"]))
        return len(self.manifest.commits)


def _has_results(commit: ManifestCommit) -> bool:
    """Whether a commit's rows are published: those of a run with `--results off` are not."""
    return bool(commit.details.get(RESULTS, True))


def _messages(rows: DataFrame, job: str) -> pa.Table:
    """Returns a message for each row, in JSON."""
    return rows.selectExpr(
        "to_json(struct(*)) AS body",
        f"'{job}' AS routing_key",
        "'application/json' AS content_type",
    ).toArrow()


def _check(directory: Path, found: Origin, origin: Origin) -> None:
    for name, value in origin.items():
        if found.get(name) != value:
            raise OutputError(
                f"{directory} has results of {name} '{found.get(name)}', not of '{value}': give "
                "another directory"
            )


def stream_origin(job: str, task: Task[Any]) -> Origin:
    """Returns the origin of results from the task's stream."""
    incarnation = task.offsets().incarnation
    return {"job": job, "vhost": task.vhost, "stream": task.stream, "incarnation": incarnation}


def stream_check(job: str) -> Callable[[Task[Any]], None]:
    """Returns a check that the stream is there and that the directory fits it."""

    def check(task: Task[Any]) -> None:
        Table(task, stream_origin(job, task))

    return check


def open_archive(place: str) -> Manifest:
    """Returns the manifest of an archive. Raises `OutputError` if there is none."""
    found = Manifest(Path(place))
    if not found.files() or found.commits[0].details.get("job") != "archive":
        raise OutputError(
            f"archive='{place}' is no archive: give the directory that the job archive wrote"
        )
    return found


def archive_origin(job: str, archive: Manifest) -> Origin:
    """Returns the origin of results from an archive, which is that of its stream."""
    assert archive.last is not None
    details = archive.last.details
    return {"job": job, **{name: details.get(name) for name in ("vhost", "stream", "incarnation")}}


def lag_behind(task: Task[Any], archive: Manifest) -> int | None:
    """Returns how many messages the task's stream has behind an archive of it; None if that is of
    an earlier stream of the name."""
    last, offsets = archive.last, task.offsets()
    if last is None or last.details.get("incarnation") != offsets.incarnation:
        return None
    return max(0, offsets.next - (last.next or 0))


def read_files(session: SparkSession, directory: Path, files: Iterable[DataFile]) -> DataFrame:
    """Returns the rows of files that a manifest names, at least one."""
    return session.read.parquet(*(str(directory / file.path) for file in files))
