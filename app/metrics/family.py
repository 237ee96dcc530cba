"""A family of metrics: its name, type and help, and the source of its samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from ...core.histogram import Histogram

Value = int | float | Histogram
Samples = Iterable[tuple[tuple[str, ...], Value]]
"""The values of labels, in the order of the family's labels, each with its value."""
Source = TypeVar("Source")


class Kind(StrEnum):
    COUNTER = "counter"
    """Its name ends with `_total`."""
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family(Generic[Source]):
    """A family of metrics. `read` returns its samples from a source."""

    name: str
    kind: Kind
    help: str
    read: Callable[[Source], Samples]
    labels: tuple[str, ...] = ()


def counter(name: str, help: str, read: Callable[[Source], float]) -> Family[Source]:
    """Returns a counter without labels."""
    return Family(name, Kind.COUNTER, help, lambda source: [((), read(source))])


def gauge(name: str, help: str, read: Callable[[Source], float]) -> Family[Source]:
    """Returns a gauge without labels."""
    return Family(name, Kind.GAUGE, help, lambda source: [((), read(source))])


def histogram(name: str, help: str, read: Callable[[Source], Histogram]) -> Family[Source]:
    """Returns a histogram without labels."""
    return Family(name, Kind.HISTOGRAM, help, lambda source: [((), read(source))])
