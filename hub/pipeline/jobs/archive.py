"""The job `archive`: a stream in Parquet, by exchange and day.

The manifest is the checkpoint: a commit has the messages from one offset to another, and the next
one begins where the last one ends, so no crash can come between the files and what was read. Tasks
read chunks and write Parquet themselves, in one process. The same rows through a streaming query
take ten times as much CPU: to Java, into its rows, and back.
"""

from __future__ import annotations

import secrets
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ..boundaries import available, resolve
from ..client import Offsets, StreamClient
from ..errors import DataLossError, JobError, OutputError
from ..manifest import DataFile, Manifest, ManifestCommit
from ..options import ReadOptions, read_options
from ..progress import Progress
from ..results import publish_summary
from ..server import ServerClient, report_archive
from .job import Job, Task, parameter
from .merging import merge_small

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INCARNATION: Final = "incarnation"
TASK_ROWS: Final = 10_000
"""A task for fewer rows costs more than it saves."""


@dataclass(frozen=True, slots=True)
class Parameters:
    name: str = parameter(
        "",
        "Name of the archive in the policy key `archive`, with which the stream keeps messages "
        "until they are archived.",
    )
    starting_offset: str = parameter(
        "earliest", "Where a new archive begins: earliest, latest, an offset, or a time."
    )
    max_rows: int = parameter(1_000_000, "Maximum number of rows in a commit.", low=1)
    max_bytes: int = parameter(
        1024**3, "Approximate maximum size of a commit, in bytes of the log.", low=1
    )
    every_s: float = parameter(30.0, "With --follow, seconds from one commit to the next.", low=0)
    fail_on_data_loss: bool = parameter(
        True, "Whether to fail when messages are lost; false continues after them."
    )


def check(task: Task[Parameters]) -> None:
    """Raises `DataLossError` if the stream does not go on where the archive ends, `OptionError` if
    it ends before the first offset of a new one, `OutputError` if the directory is not this
    stream's archive."""
    options, last, offsets = _read_options(task), Manifest(task.directory).last, task.offsets()
    if last is None:
        with closing(task.client()) as client:
            available(_first_offset(options, offsets, client), offsets, options, client)
        return
    found = {name: last.details.get(name) for name in ("job", "vhost", "stream")}
    if found != _identity(task):
        raise OutputError(
            f"{task.directory} is of job '{found['job']}' and stream '{found['stream']}' in vhost "
            f"'{found['vhost']}', not of archive and '{task.stream}' in '{task.vhost}': give "
            "another directory"
        )
    _next_offset(task, last, offsets)


def _first_offset(options: ReadOptions, offsets: Offsets, client: StreamClient) -> int:
    return resolve("starting_offset", options.starting, offsets, client)


def _identity(task: Task[Parameters]) -> dict[str, str]:
    return {"job": "archive", "vhost": task.vhost, "stream": task.stream}


def _next_offset(task: Task[Parameters], last: ManifestCommit, offsets: Offsets) -> int:
    """Returns where the archive goes on. Raises `DataLossError` if it can't without a gap, unless
    that is to be accepted."""
    name, at = task.client().name, last.next or 0
    lossy = not task.parameters.fail_on_data_loss
    if last.details.get(INCARNATION) != offsets.incarnation:
        if lossy:
            return offsets.first
        raise DataLossError(
            f"{name} was deleted and made again since {task.directory} was written, so what came "
            f"behind offset {at} is lost: give another directory"
        )
    if at < offsets.first and not lossy:
        raise DataLossError(
            f"{name} begins at offset {offsets.first}, the archive ends at {at}: messages {at} to "
            f"{offsets.first - 1} are lost; set fail_on_data_loss to false to go on without them"
        )
    return max(at, offsets.first)


def run(session: SparkSession, task: Task[Parameters], progress: Progress) -> None:
    """Commits all messages up to the end of the stream; with `--follow` those that come too."""
    with closing(task.client()) as client:
        _run(_Archive(session, task, client), task, progress)


def _run(archive: _Archive, task: Task[Parameters], progress: Progress) -> None:
    end = archive.client.offsets().next
    archive.report()
    while not progress.stopped:
        offsets = archive.client.offsets()
        goal = offsets.next if task.follow else min(end, offsets.next)
        start = archive.next_offset(offsets)
        if start < goal:
            commit = archive.commit(start, goal, offsets.incarnation)
            archive.report()
            archive.merge()
            start = commit.next or 0
            progress.add(commit.rows, max(0, offsets.next - start))
        if start >= goal:
            progress.add(0, max(0, offsets.next - start))
        if start >= goal and not task.follow:
            return
        if start >= goal:
            progress.wait(task.parameters.every_s)


class _Archive:
    """The table of one run."""

    def __init__(self, session: SparkSession, task: Task[Parameters], client: StreamClient) -> None:
        self.client = client
        self._session = session
        self._task = task
        self._manifest = Manifest(task.directory)
        self._options = _read_options(task)
        self._first: int | None = None

    def next_offset(self, offsets: Offsets) -> int:
        """Returns the first offset that is not archived. Raises `DataLossError` if it is lost."""
        last = self._manifest.last
        if last is not None:
            return _next_offset(self._task, last, offsets)
        if self._first is None:
            self._first = _first_offset(self._options, offsets, self.client)
        return available(self._first, offsets, self._options, self.client)

    def commit(self, start: int, end: int, incarnation: str) -> ManifestCommit:
        """Archives messages from `start` on, as many as a commit may have."""
        parameters = self._task.parameters
        limit = self.client.limit(start, parameters.max_bytes)
        end = min(end, start + parameters.max_rows, limit)
        files = self._write(start, end, incarnation)
        if parameters.fail_on_data_loss:
            _check_complete(files, start, end)
        table = self._table()
        details = {**_identity(self._task), INCARNATION: incarnation, "table": table}
        key = f"{incarnation}/{start}"
        return self._manifest.commit(key, files, first=start, next=end, details=details)

    def merge(self) -> None:
        """Makes fewer files of what was committed in small pieces."""
        merge_small(self._manifest)

    def _table(self) -> str:
        """Returns a name that no other archive has."""
        last = self._manifest.last
        return secrets.token_hex(8) if last is None else str(last.details["table"])

    def report(self) -> None:
        """Reports the last commit, also one that a killed run may not have reported.

        Raises `ReadError` or `WriteError` if the server refuses: a stream that waits for its
        archive would never drop anything again.
        """
        last, name = self._manifest.last, self._task.parameters.name
        if last is None:
            return
        series = f"archive-{last.details['table']}"
        publish_summary(self._task, ARCHIVE.name, _summary(self._task, last), series, last.number)
        if name:
            with ServerClient(self._task.server) as server:
                report_archive(
                    server, self._task.vhost, self._task.stream, self._task.source, name,
                    last.next or 0, str(self._task.directory), last.details[INCARNATION],
                )  # fmt: skip

    def _write(self, start: int, end: int, incarnation: str) -> list[DataFile]:
        """Returns the files that the tasks have written, which are on disk."""
        from ..planner import split
        from .archive_task import write_range

        context = self._session.sparkContext
        count = min(context.defaultParallelism, -(-(end - start) // TASK_ROWS))
        parts = split(start, end, incarnation, 0, count)
        tasks = context.parallelize(parts, len(parts))
        return tasks.flatMap(partial(write_range, self._options, self._task.directory)).collect()


def _summary(task: Task[Parameters], commit: ManifestCommit) -> dict[str, Any]:
    return {
        **_identity(task), "directory": str(task.directory), "commit": commit.number,
        "first": commit.first, "next": commit.next, "rows": commit.rows, "bytes": commit.bytes,
        "files": len(commit.files), "at": commit.at.isoformat(),
    }  # fmt: skip


def _read_options(task: Task[Parameters]) -> ReadOptions:
    """Returns the options of a read; raises `OptionError`."""
    parameters = task.parameters
    lossy = str(parameters.fail_on_data_loss).lower()
    more = {"startingOffset": parameters.starting_offset, "failOnDataLoss": lossy}
    return read_options(task.options() | more)


def _check_complete(files: list[DataFile], start: int, end: int) -> None:
    """Raises `JobError` unless the files have as many rows as there are messages."""
    rows = sum(file.rows for file in files)
    if rows != end - start:
        raise JobError(f"{rows} rows were written of the {end - start} messages from {start} on")


ARCHIVE: Final[Job[Any]] = Job(
    "archive",
    "Keeps a stream in Parquet, in folders by exchange and day.",
    Parameters,
    run,
    check,
)
