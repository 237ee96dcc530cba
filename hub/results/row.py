"""A row of a job's results, as it is published, and the hour that it belongs to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

HOUR_S: Final = 3_600
MINUTE_S: Final = 60
MAX_KEY_CHARACTERS: Final = 500


@dataclass(frozen=True, slots=True)
class Shape:
    """The members of a job's rows: that with their time, those that name their group, those that
    are added up over minutes, and those of which the largest counts.

    `has_updates` tells jobs that publish a minute again when it has changed.
    """

    time: str
    keys: tuple[str, ...]
    sums: tuple[str, ...]
    largest: tuple[str, ...]
    has_updates: bool = True

    @property
    def values(self) -> tuple[str, ...]:
        return (*self.sums, *self.largest)


SHAPES: Final[Mapping[str, Shape]] = {
    "rollup": Shape(
        "minute", ("exchange", "routing_key"), ("messages", "bytes", "late"), ("age_p99_ms",)
    ),
    "delivery-health": Shape(
        "minute", ("subscription", "topic"),
        ("attempts", "delivered", "retried", "dead", "gone"), ("latency_p99_ms",),
    ),
    "trending": Shape("until", ("term",), (), ("documents", "expected", "score"), False),
}  # fmt: skip
"""The jobs whose results are kept, by name."""


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A row of results. `at` is the hour in seconds since 1970, `minute` the one in it; of trending
    terms it is the end of the window, and 0. Of two rows of a minute that with the higher `offset`
    holds."""

    job: str
    at: int
    keys: tuple[str, ...]
    minute: int
    offset: int
    values: tuple[float, ...]


def read_row(job: str, body: bytes) -> ResultRow | None:
    """Returns the row of a message, None for a message that no job publishes."""
    shape = SHAPES.get(job)
    try:
        found = msgspec.json.decode(body)
        assert shape is not None and isinstance(found, dict)
        at_s = int(datetime.fromisoformat(found[shape.time]).timestamp())
        start_s = at_s - at_s % HOUR_S if shape.has_updates else at_s
        return ResultRow(
            job,
            start_s,
            tuple(_key(found.get(name)) for name in shape.keys),
            (at_s - start_s) // MINUTE_S,
            int(found["offset"]) if shape.has_updates else 0,
            tuple(_number(found.get(name)) for name in shape.values),
        )
    except (AssertionError, KeyError, TypeError, ValueError, OverflowError):
        return None  # anybody who may write to the exchange can publish there


def totals(shape: Shape, minutes: Mapping[int, list[float]]) -> list[float]:
    """Returns the totals of an hour; a minute is its offset, and the values of its row."""
    columns = list(zip(*minutes.values(), strict=True))[1:]
    summed = len(shape.sums)
    return [sum(one) if at < summed else max(one) for at, one in enumerate(columns)]


def _key(value: Any) -> str:
    return "" if value is None else str(value)[:MAX_KEY_CHARACTERS].replace("\0", "")


def _number(value: Any) -> float:
    number = 0.0 if value is None else float(value)
    if not math.isfinite(number):
        raise ValueError
    return number
