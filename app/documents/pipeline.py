"""The documents of streams, transactions, and runs of pipeline jobs."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from .common import Kind, Time


class StreamOffsets(TypedDict):
    """The offsets of a stream; `at` for a timestamp, `limit` for a number of bytes."""

    stream: str
    vhost: str
    source: Kind
    first: int
    next: int
    incarnation: str
    bytes: int | None
    archived_first: int | None
    at: NotRequired[int]
    limit: NotRequired[int]


class PipelineRun(TypedDict):
    """A run of a job. `rows` are messages that it has processed, `dropped` those that came too late
    to be counted; `stream` is empty if it reads none."""

    job: str
    run: str
    vhost: str
    stream: str
    owner: str
    state: Literal["running", "done", "failed", "lost"]
    rows: int
    lag: int | None
    dropped: int
    error: str
    started: Time | None
    updated: Time | None


class PipelineArchive(TypedDict):
    """An archive of a stream. `offset` is null for an archive that a policy names and that has not
    reported."""

    vhost: str
    stream: str
    source: Kind
    archive: str
    offset: int | None
    lag: int
    bytes_behind: int | None
    manifest: str | None
    updated: Time | None
    retention_waits: bool
    exceeded: str | None


class PipelineCapture(TypedDict):
    """A binding of a stream, which has the offsets from `first` to before `next`."""

    vhost: str
    exchange: str
    routing_key: str
    stream: str
    first: int
    next: int


class Pipeline(TypedDict):
    runs: list[PipelineRun]
    captures: list[PipelineCapture]
    archives: list[PipelineArchive]


class ResultGroup(TypedDict):
    """A line of a chart: `values` has a list for each value of the job, with null where there was
    none at a time."""

    name: str
    values: dict[str, list[float | None]]


PipelineResults = TypedDict(
    "PipelineResults",
    {
        "job": str,
        "vhost": str,
        "by": str,
        "step": Literal["hour", "day"],
        "from": Time | None,
        "until": Time | None,
        "times": list[int],
        "groups": list[ResultGroup],
    },
)
"""`times` are the beginnings of the steps, in seconds since 1970; the largest group comes first."""


class Staged(TypedDict):
    rows: int


class TransactionCommitted(TypedDict):
    published: int | None
    unrouted: int
    replayed: bool
    last: int
