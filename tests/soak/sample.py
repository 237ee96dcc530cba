"""The resources of a server at one moment, and their growth in an hour."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.disk import directory_bytes
from tests.bench.measure import Meter

HOUR_S = 3_600.0


@dataclass(frozen=True)
class Sample:
    """`life` counts the server's starts; `output_bytes` is what all of them have printed."""

    life: int
    at_s: float
    memory_bytes: int
    open_files: int
    data_bytes: int
    output_bytes: int


def take_sample(life: int, pid: int, data: Path, output_bytes: int) -> Sample:
    return Sample(
        life, time.monotonic(), Meter(pid).read().rss_bytes, len(os.listdir(f"/proc/{pid}/fd")),
        directory_bytes(data), output_bytes,
    )  # fmt: skip


@dataclass(frozen=True)
class Growth:
    """A straight line through what was seen."""

    per_hour: float
    seen: float
    """The rise of the line over the measured time."""


def growth(points: Iterable[Sequence[tuple[float, float]]]) -> Growth:
    """Of groups of points, each seconds and value: the one slope that fits all groups best.

    Each group has a height of its own, so what a restart gives back is not taken for growth.
    """
    products = squares = longest_s = 0.0
    for group in points:
        middle_s = sum(at for at, _ in group) / max(1, len(group))
        middle = sum(value for _, value in group) / max(1, len(group))
        products += sum((at - middle_s) * (value - middle) for at, value in group)
        squares += sum((at - middle_s) ** 2 for at, _ in group)
        if group:
            longest_s = max(longest_s, group[-1][0] - group[0][0])
    slope = products / squares if squares else 0.0
    return Growth(slope * HOUR_S, slope * longest_s)


@dataclass(frozen=True)
class Rest:
    """The resources that a server spends at rest."""

    cpu_share: float
    written_bytes_per_s: float


class RestMeter:
    """Measures from its making to `read`."""

    def __init__(self, pid: int) -> None:
        self._meter = Meter(pid)
        self._begun_s = time.monotonic()
        self._cpu_s = self._meter.read().cpu_s
        self._written = self._meter.files().written

    def read(self) -> Rest:
        seconds = time.monotonic() - self._begun_s
        cpu_s = self._meter.read().cpu_s - self._cpu_s
        return Rest(cpu_s / seconds, (self._meter.files().written - self._written) / seconds)
