"""The result of one run of a scenario: one line of the table."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Goal:
    """The figure that Warren must reach, where that depends on the disk or on another rate."""

    text: str
    met: bool


@dataclass
class Figures:
    """Rates are messages per second, times are milliseconds.

    `seconds` is the time of a whole job of `job` messages or objects; `written` the bytes given
    to write() for files per byte of published frames, `disk_mb` what the data directory takes
    up, `syncs` calls of fsync and fdatasync a second.
    """

    in_rate: float | None = None
    out_rate: float | None = None
    cpu_us: float | None = None
    rss_mb: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    note: str = ""
    seconds: float | None = None
    job: int = 0
    written: float | None = None
    disk_mb: float | None = None
    syncs: float | None = None
    goals: list[Goal] = field(default_factory=list)

    def remark(self, text: str) -> None:
        """Adds to the note."""
        self.note += f", {text}" if self.note else text
