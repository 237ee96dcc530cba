"""Formats the tables of `warren pipeline list`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .jobs.job import Job, parameters_of

_RUN: Final = (
    "job",
    "run",
    "vhost",
    "stream",
    "state",
    "rows",
    "lag",
    "dropped",
    "updated",
    "error",
)
_CAPTURE: Final = ("vhost", "exchange", "routing_key", "stream", "first", "next")
_ARCHIVE: Final = ("vhost", "stream", "archive", "offset", "lag", "updated")


def describe_jobs(jobs: Mapping[str, Job[Any]]) -> str:
    """Returns each job with its sentence, and its parameters with defaults."""
    return "\n\n".join("\n".join(_job_lines(job)) for job in jobs.values())


def _job_lines(job: Job[Any]) -> Iterator[str]:
    yield f"{job.name}: {job.description}"
    rows = [
        (f"  {one.name}={_value(one.default)}", f"{one.description} Takes {one.wanted}.")
        for one in parameters_of(job)
    ]
    yield from _aligned(rows)


def job_documents(jobs: Mapping[str, Job[Any]]) -> Iterator[Mapping[str, Any]]:
    """Yields each job as a document for programs."""
    for job in jobs.values():
        parameters = [
            {"name": one.name, "default": one.default, "description": one.description}
            for one in parameters_of(job)
        ]
        yield {"name": job.name, "description": job.description, "parameters": parameters}


def describe_runs(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Returns tables of the runs, captures and archives that a server knows."""
    tables = (("runs", _RUN), ("captures", _CAPTURE), ("archives", _ARCHIVE))
    return "\n\n".join(_table(name, columns, found.get(name, ())) for name, columns in tables)


def _table(name: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return f"no {name}"
    cells = [tuple(_text(row.get(column)) for column in columns) for row in rows]
    return "\n".join(_aligned([tuple(column.upper() for column in columns), *cells]))


def _value(default: Any) -> str:
    """Returns a default as `--set` takes it."""
    return str(default).lower() if isinstance(default, bool) else str(default)


def _text(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else " ".join(str(value).split())


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
