"""Results as lines of a chart: the largest groups, in steps of an hour or a day."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from .row import Shape

if TYPE_CHECKING:
    from .repository import HourTotals


class Group(NamedTuple):
    """A line of a chart. `values` has a list for each value of the job, None where there was no row
    at a time."""

    name: str
    values: dict[str, list[float | None]]


class Series(NamedTuple):
    """The lines of a chart. `times` are the beginnings of the steps in seconds since 1970; none
    without a row."""

    times: list[int]
    groups: list[Group]


def series_of(shape: Shape, found: Iterable[HourTotals], by: int, step_s: int, top: int) -> Series:
    """Groups by one of the keys; those with the largest sum of the first value come first."""
    cells: dict[str, dict[int, list[float]]] = {}
    summed = len(shape.sums)
    for one in found:
        at = one.at - one.at % step_s
        steps = cells.setdefault(one.keys[by], {})
        before = steps.get(at)
        steps[at] = one.values if before is None else [
            a + b if number < summed else max(a, b)
            for number, (a, b) in enumerate(zip(before, one.values, strict=True))
        ]  # fmt: skip
    names = sorted(cells, key=lambda name: (-sum(row[0] for row in cells[name].values()), name))
    times = sorted({at for steps in cells.values() for at in steps})
    return Series(times, [_group(name, cells[name], times, shape) for name in names[:top]])


def _group(name: str, steps: dict[int, list[float]], times: list[int], shape: Shape) -> Group:
    return Group(
        name,
        {
            value: [steps[at][number] if at in steps else None for at in times]
            for number, value in enumerate(shape.values)
        },
    )
