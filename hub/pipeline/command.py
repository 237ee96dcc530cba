"""Runs a job in this process, as `warren pipeline run` does."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .chart import NoChart, check_chart, draw
from .directory_lock import exclusive
from .errors import (
    DataLossError,
    OptionError,
    OutputError,
    PipelineError,
    ReadError,
    SchemaError,
    TooLargeError,
    UnavailableError,
    WriteError,
)
from .java import NoJava
from .jobs.job import RESULTS, Job, Task, read_parameters
from .jobs.registry import find_job
from .leftovers import MANIFEST_FOLDER
from .master import check_master
from .options import ServerLogin
from .outages import WAIT_S, run_over_outages
from .progress import Progress, on_terminal
from .server import ServerClient, declare_results, reporter
from .session import LOCAL, NICENESS, NoSpark, spark_session
from .shell import run_shell
from .spark_errors import explain, is_from_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILED: Final = 1
UNUSABLE: Final = 2
NOT_INSTALLED: Final = 5
_CODES: Final = {
    **dict.fromkeys((OptionError, SchemaError, OutputError, DataLossError), UNUSABLE),
    **dict.fromkeys((ReadError, WriteError, TooLargeError, UnavailableError), UNUSABLE),
    **dict.fromkeys((NoJava, NoSpark, NoChart), NOT_INSTALLED),
}


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The arguments of `warren pipeline run`. `given` has the job's parameters as text; `stream`
    and `out` are empty where they are not given."""

    job: str
    server: ServerLogin
    vhost: str
    stream: str
    out: str
    given: Mapping[str, str]
    source: str | None = None
    follow: bool = False
    results: str | None = RESULTS
    master: str = LOCAL
    wait_s: float = WAIT_S
    niceness: int = NICENESS
    chart: Path | None = None


def exit_code(error: PipelineError) -> int:
    return _CODES.get(type(error), FAILED)


def open_shell(server: ServerLogin, vhost: str, master: str, niceness: int) -> None:
    """Returns when the user has left the shell. Raises `PipelineError`."""
    check_master(master)
    with ServerClient(server) as client:
        client.get("/health/live")
    session = spark_session("warren shell", master=master, niceness=niceness)
    try:
        run_shell(session, server, vhost)
    finally:
        session.stop()


def run_job(request: RunRequest) -> None:
    """Returns when the job is done, or was stopped by SIGTERM or SIGINT.

    All that can be refused is refused before Spark starts. Raises `PipelineError`.
    """
    job, task = find_job(request.job), _task(request)
    check_master(request.master)
    if request.chart is not None:
        if job.chart is None:
            raise OptionError(f"--chart {request.chart}: of job '{job.name}' there is no picture")
        check_chart(request.chart)
    with _locked(task), ServerClient(task.server) as client:
        _check(job, task, client)
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}"
        to_server = reporter(client, task.vhost, task.stream, job.name, name)
        progress = Progress(on_terminal(job.name, sys.stderr), to_server)
        _run(job, task, progress, request)


def _task(request: RunRequest) -> Task[Any]:
    job = find_job(request.job)
    if job.needs_stream and not request.stream:
        raise OptionError(f"job '{job.name}' reads a stream: name it with --stream")
    return Task(
        request.server, request.vhost, request.stream, _out(job, request.out),
        read_parameters(job, request.given), request.source, request.follow, request.results,
    )  # fmt: skip


def _out(job: Job[Any], out: str) -> Path | None:
    if not job.makes_table:
        if out:
            raise OptionError(f"--out {out}: job '{job.name}' makes no table; leave it out")
        return None
    if not out:
        raise OptionError(f"job '{job.name}' makes a table: name its directory with --out")
    if "://" in out:
        raise OptionError(f"--out {out} is a URL: give a directory that all machines share")
    return Path(out).absolute()


@contextmanager
def _locked(task: Task[Any]) -> Iterator[None]:
    """Makes the directory, for this run alone. Raises `OutputError`."""
    if task.out is None:
        yield
        return
    _check_directory(task.out)
    with exclusive(task.out):
        yield


def _check(job: Job[Any], task: Task[Any], client: ServerClient) -> None:
    """Raises `PipelineError` for what can't be used."""
    # A run waits for a server that starts again; whoever has just typed its URL need not.
    client.get("/health/live")
    job.check(task)
    if task.results is not None:
        declare_results(task.server, task.vhost, task.results)


def _check_directory(directory: Path) -> None:
    try:
        _check_outside(directory)
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise OutputError(f"--out {directory} can't be written: {error.strerror}") from error


def _check_outside(directory: Path) -> None:
    """Raises `OutputError` for a directory inside that of another run."""
    for place in directory.resolve().parents:
        if (place / MANIFEST_FOLDER).exists():
            raise OutputError(
                f"--out {directory} is inside {place}, which has the table of another run: name a "
                "directory beside it"
            )


def _run(job: Job[Any], task: Task[Any], progress: Progress, request: RunRequest) -> None:
    """Raises what went wrong as an error of the pipeline, but for mistakes in the code."""
    try:
        with progress.alive():
            session = spark_session(
                f"warren {job.name}", master=request.master, niceness=request.niceness
            )
            try:
                # Here, since Spark puts a handler of its own in the place of SIGINT's.
                with _stopped_by_signals(progress):
                    _run_in(session, job, task, progress, request)
            finally:
                session.stop()
    except Exception as error:
        if progress.stopped and (is_from_spark(error) or isinstance(error, ConnectionError)):
            # The signal has reached Java too, as from systemd. What was not committed never was.
            progress.end()
            return
        found = explain(error)
        progress.end(str(found))
        raise found from error
    progress.end()


def _run_in(
    session: SparkSession, job: Job[Any], task: Task[Any], progress: Progress, request: RunRequest
) -> None:
    run = partial(job.run, session, task, progress)
    if task.follow:
        run_over_outages(run, task.server, progress, request.wait_s)
    else:
        run()
    if request.chart is not None and job.chart is not None:
        draw(job.chart, task.directory, request.chart)


@contextmanager
def _stopped_by_signals(progress: Progress) -> Iterator[None]:
    """Has SIGTERM and SIGINT end the run once what it has begun is complete."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: progress.stop()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
