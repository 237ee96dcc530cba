"""The printed result: one live line a scenario, then a Markdown table of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .figures import Figures
from .scenario import Scenario

Results = dict[tuple[str, str], Figures]
"""By scenario name and broker name."""

WIDTH = 26
REFERENCE = "RabbitMQ"
"""The broker that floors are not meant for."""


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _small(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def _times(line: Figures) -> str:
    if line.p50_ms is None or line.p99_ms is None:
        return "-"
    return f"{line.p50_ms:.2f} / {line.p99_ms:.2f}"


def _seconds(line: Figures) -> str:
    return "-" if line.seconds is None else f"{line.seconds:.3g}"


def live(broker: str, scenario: Scenario, line: Figures) -> str:
    """One line, printed as soon as the scenario is done."""
    text = (
        f"{scenario.name:{WIDTH}} in {_rate(line.in_rate):>11}/s  out {_rate(line.out_rate):>11}/s"
    )
    text += f"  cpu {_small(line.cpu_us):>7} us  rss {_small(line.rss_mb):>7} MB"
    text += f"  p50/p99 {_times(line)} ms" if line.p50_ms is not None else ""
    for column in _SOMETIMES:
        text += f"  {column.title} {column.cell(line)}" if column.cell(line) != "-" else ""
    text += f"  ({line.note})" if line.note else ""
    return text if broker == REFERENCE else text + "".join(f"  [{one}]" for one in _goals(line))


@dataclass(frozen=True)
class _Column:
    title: str
    cell: Callable[[Figures], str]


_COLUMNS = (
    _Column("in/s", lambda line: _rate(line.in_rate)),
    _Column("out/s", lambda line: _rate(line.out_rate)),
    _Column("CPU us", lambda line: _small(line.cpu_us)),
    _Column("RSS MB", lambda line: _small(line.rss_mb)),
    _Column("p50 / p99 ms", _times),
    _Column("note", lambda line: line.note),
)
_SOMETIMES = (
    _Column("seconds", _seconds),
    _Column("written per byte in", lambda line: _small(line.written)),
    _Column("disk MB", lambda line: _small(line.disk_mb)),
    _Column("syncs/s", lambda line: _rate(line.syncs)),
)
"""Left out of a table in which no row has them."""


def _columns(results: Results) -> list[_Column]:
    lines = list(results.values())
    wanted = [one for one in _SOMETIMES if any(one.cell(line) != "-" for line in lines)]
    return [*_COLUMNS[:-1], *wanted, _COLUMNS[-1]]


def _goals(line: Figures) -> list[str]:
    return [f"{goal.text} {'ok' if goal.met else 'MISSED'}" for goal in line.goals]


def headline(line: Figures) -> float | None:
    """The figure that floors and ratios speak of."""
    return line.in_rate if line.out_rate is None else line.out_rate


def floor(scenario: Scenario, line: Figures) -> str:
    """The required figure, and whether it was reached."""
    found = _goals(line)
    if scenario.floor is not None:
        found.insert(0, _floor(scenario.floor, line, is_p99_ms=scenario.floor_is_p99_ms))
    return "; ".join(found)


def _floor(wanted: float, line: Figures, *, is_p99_ms: bool) -> str:
    if is_p99_ms:
        met = line.p99_ms is not None and line.p99_ms <= wanted
        text = f"p99 <= {wanted:.0f} ms"
    else:
        met = (headline(line) or 0) >= wanted
        text = f">= {wanted:,.0f}"
    return text + (" ok" if met else " MISSED")


def _ratio(ours: Figures, theirs: Figures) -> str:
    found: list[str] = []
    top, bottom = headline(ours), headline(theirs)
    if top and bottom:
        found.append(f"{top / bottom:.1f}x")
    if ours.seconds and theirs.seconds and ours.job == theirs.job:
        found.append(f"{theirs.seconds / ours.seconds:.1f}x as fast")
    if ours.p99_ms and theirs.p99_ms:
        found.append(f"{ours.p99_ms / theirs.p99_ms:.2f} of its p99")
    return ", ".join(found)


def markdown(scenarios: Sequence[Scenario], brokers: Sequence[str], results: Results) -> str:
    """All results: columns for each broker, then the ratio of the first to the second."""
    titles, columns = ["scenario"], _columns(results)
    for broker in brokers:
        titles += [f"{broker} {column.title}" for column in columns]
    titles += ["floor", "ratio"]
    rows = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for scenario in scenarios:
        lines = [results.get((scenario.name, broker)) for broker in brokers]
        if not any(lines):
            continue
        cells = [scenario.name]
        for line in lines:
            cells += [column.cell(line) if line else "" for column in columns]
        ours = None if brokers[0] == REFERENCE else lines[0]
        cells.append(floor(scenario, ours) if ours else "")
        present = [line for line in lines if line]
        cells.append(_ratio(*present) if len(present) == 2 else "")
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)
