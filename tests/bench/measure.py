"""Measures the processor time and memory of a broker, from /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
RESET_PEAK = "5"


@dataclass(frozen=True)
class Usage:
    """`cpu_s` is user and system time together; memory is resident."""

    cpu_s: float
    rss_bytes: int
    peak_bytes: int


def _stat(pid: int) -> list[str]:
    """The fields after the command, which may itself hold spaces and parentheses."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def process_tree(root: int) -> list[int]:
    """The process and all its descendants that are alive."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                children.setdefault(int(_stat(int(entry.name))[1]), []).append(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue  # It ended between the listing and the reading.
    tree = [root]
    for pid in tree:
        tree += children.get(pid, [])
    return tree


def _status_bytes(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"/proc/{pid}/status has no {field}")


@dataclass(frozen=True)
class FileUse:
    """Bytes that went through read() and write() and their kin."""

    read: int
    written: int


def _io_bytes(pid: int) -> tuple[int, int]:
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    fields = dict(line.split(": ") for line in lines)
    return int(fields["rchar"]), int(fields["wchar"])


class Meter:
    """Reads the use of process trees; they are taken once, when the meter is made."""

    def __init__(self, *roots: int) -> None:
        self.pids = [pid for root in roots for pid in process_tree(root)]

    def files(self) -> FileUse:
        used = [_io_bytes(pid) for pid in self.pids]
        return FileUse(sum(read for read, _ in used), sum(written for _, written in used))

    def read(self) -> Usage:
        ticks = sum(sum(map(int, _stat(pid)[11:13])) for pid in self.pids)
        return Usage(
            ticks / TICKS_PER_S,
            sum(_status_bytes(pid, "VmRSS") for pid in self.pids),
            sum(_status_bytes(pid, "VmHWM") for pid in self.pids),
        )

    def reset_peak(self) -> None:
        for pid in self.pids:
            Path(f"/proc/{pid}/clear_refs").write_text(RESET_PEAK)


def percentile(values: list[float], percent: float) -> float:
    """The nearest-rank percentile; the list must not be empty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
