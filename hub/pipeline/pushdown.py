"""Offsets and times of arrival that a query asks for, found in its filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

_PRECISION = timedelta(milliseconds=1)
"""The precision of times of arrival."""
_LAST = datetime.max.replace(tzinfo=UTC) - _PRECISION
"""Behind it there is nothing to leave out, and no time behind that of a filter."""


@dataclass(slots=True)
class OffsetBounds:
    """The bounds that filters set: offsets from `start` to before `end`, and messages that arrived
    from `since` to before `until`. None is no bound; rows outside are filtered by Spark anyway."""

    start: int | None = None
    end: int | None = None
    since: datetime | None = None
    until: datetime | None = None

    def add(self, found: Filter) -> None:
        """Takes in a filter that bounds offsets or times of arrival."""
        column = getattr(found, "attribute", None)
        if column not in (("offset",), ("timestamp",)):
            return
        match found:
            case EqualTo(_, value) | EqualNullSafe(_, value):
                self._bound(value, value)
            case GreaterThan(_, value) | GreaterThanOrEqual(_, value):
                self._bound(value, None)
            case LessThan(_, value) | LessThanOrEqual(_, value):
                self._bound(None, value)
            case In(_, values):
                known = [value for value in values if value is not None]
                if known:
                    self._bound(min(known), max(known))

    def _bound(self, low: int | datetime | None, high: int | datetime | None) -> None:
        """Bounds include both values: what is at them, Spark decides."""
        if isinstance(low, int):
            self.start = low if self.start is None else max(self.start, low)
        if isinstance(high, int):
            self.end = high + 1 if self.end is None else min(self.end, high + 1)
        if isinstance(low, datetime):
            low = _utc(low)
            self.since = low if self.since is None else max(self.since, low)
        if isinstance(high, datetime) and _utc(high) <= _LAST:
            high = _utc(high) + _PRECISION
            self.until = high if self.until is None else min(self.until, high)


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)


class OptionalPushdown:
    """A reader's `pushFilters` that is used where Spark pushes filters down, and not missed where
    it does not.

    Spark refuses to read with a reader that has a `pushFilters` of its own while
    `spark.sql.python.filterPushdown.enabled` is false, lest filters be ignored. Here every filter
    goes back to Spark, so nothing depends on it.
    """

    def __init__(self, add: Callable[[Filter], None]) -> None:
        self._add = add
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        for found in filters:
            self._add(found)
        return filters
