"""The bounds of a soak, and those that were exceeded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .probe import Latency
from .sample import Growth, Rest, Sample, growth

MIB = 1 << 20
WARM_UP = 1
"""Samples at the start of a life that say nothing yet about its growth."""


@dataclass(frozen=True)
class Limit:
    """Exceeded by what grows faster, unless all that was seen of it is a trifle."""

    per_hour: float
    trifle: float

    def exceeded_by(self, found: Growth) -> bool:
        return found.per_hour > self.per_hour and found.seen > self.trifle


@dataclass(frozen=True)
class Bounds:
    """Growth by the hour, the server at rest, and how long it may leave a request unanswered."""

    stall_ms: float = 250.0
    rest_cpu_share: float = 0.02
    rest_written_bytes_per_s: float = 1_024.0
    memory_bytes: Limit = Limit(64 * MIB, 32 * MIB)
    open_files: Limit = Limit(20, 10)
    data_bytes: Limit = Limit(256 * MIB, 128 * MIB)
    output_bytes: Limit = Limit(16 * MIB, MIB)


@dataclass
class Course:
    """The measurements: a sample and a rest for each round."""

    samples: list[Sample] = field(default_factory=list)
    rests: list[Rest] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    restarts_s: list[float] = field(default_factory=list)

    def growths(self) -> dict[str, Growth]:
        """Memory and files grow within a life of the server, the rest over all of them."""
        return {
            "memory_bytes": growth(self._lives(lambda one: one.memory_bytes)),
            "open_files": growth(self._lives(lambda one: one.open_files)),
            "data_bytes": growth([self._whole(lambda one: one.data_bytes)]),
            "output_bytes": growth([self._whole(lambda one: one.output_bytes)]),
        }

    def _lives(self, value: Callable[[Sample], float]) -> list[list[tuple[float, float]]]:
        lives = sorted({one.life for one in self.samples})
        groups = [[one for one in self.samples if one.life == life] for life in lives]
        return [_points(group, value) for group in groups]

    def _whole(self, value: Callable[[Sample], float]) -> list[tuple[float, float]]:
        return _points(self.samples, value)

    def figures(self) -> dict[str, object]:
        return {
            "rounds": len(self.samples),
            "stall_ms": max((one.stall_ms for one in self.latencies), default=0.0),
            "health_p99_ms": max((one.p99_ms for one in self.latencies), default=0.0),
            "rest_cpu_share": round(max((one.cpu_share for one in self.rests), default=0.0), 4),
            "rest_written_bytes_per_s": round(
                max((one.written_bytes_per_s for one in self.rests), default=0.0)
            ),
            "restart_max_s": round(max(self.restarts_s, default=0.0), 2),
            **{f"{name}_per_hour": round(found.per_hour) for name, found in self.growths().items()},
        }


def _points(
    samples: Sequence[Sample], value: Callable[[Sample], float]
) -> list[tuple[float, float]]:
    return [(one.at_s, value(one)) for one in samples[WARM_UP:]]


def exceeded(course: Course, bounds: Bounds) -> list[str]:
    """A sentence for each bound that was broken, with both values."""
    figures = course.figures()
    found = [
        f"{name}: {figures[name]}, allowed are {getattr(bounds, name)}"
        for name in ("stall_ms", "rest_cpu_share", "rest_written_bytes_per_s")
        if float(str(figures[name])) > getattr(bounds, name)
    ]
    for name, grown in course.growths().items():
        limit: Limit = getattr(bounds, name)
        if limit.exceeded_by(grown):
            found.append(
                f"{name}: grew by {grown.seen:,.0f}, {grown.per_hour:,.0f} an hour; "
                f"allowed are {limit.per_hour:,.0f} an hour"
            )
    return found
