"""A run of a job, as it reports itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MAX_NAME_BYTES = 200
MAX_STREAM_BYTES = 255
MAX_ERROR_BYTES = 8_000
MAX_COUNT = 2**63 - 1


class RunState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RunReport:
    """A report of a run: `rows` are messages that it has processed since it began, `lag` those of
    the stream that come behind them, None if that is not known, `dropped` those that came too late
    to be counted."""

    state: RunState
    rows: int = 0
    lag: int | None = None
    error: str = ""
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """A run with its last report; `stream` is empty if it reads none. Times are wall time in
    seconds."""

    job: str
    name: str
    vhost: str
    stream: str
    owner: str
    report: RunReport
    started_at: float
    """The time of its first report."""
    updated_at: float
