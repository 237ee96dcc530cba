"""Draws the table of a job as a picture (SVG): how its groups went over time.

It is drawn from the files that the manifest names, of each group the row that holds. Times are by
the minute; those of more than two days by the hour, of more than two months by the day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from .errors import OptionError, OutputError, PipelineError
from .manifest import Manifest, files

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

TOP: Final = 6
"""Groups that have a line of their own, those with the most; the others are added up."""
OTHERS: Final = "others"
SUFFIX: Final = ".svg"
MARKED: Final = 60
"""Points of a line that are marked; of more the line is enough."""
_HEIGHT_INCHES: Final = 2.4
_WIDTH_INCHES: Final = 9.0
_STEPS: Final = (("2D", "min"), ("60D", "h"))
"""Up to how long which step is taken; a day beyond."""


class NoChart(PipelineError):
    """Matplotlib is not installed."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One of the charts of a picture: a column, or the share of one column in another, in percent.

    `combine` says what the value of several rows is. Where a group has no row, a sum is 0, and of
    anything else there is none.
    """

    title: str
    column: str
    combine: Literal["sum", "max"] = "sum"
    whole: str | None = None
    scale: Literal["linear", "log"] = "linear"


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture of a job's table: `group` is the column whose values are lines, and `keys` tell
    rows of the same minute apart. `size` says which groups are the largest."""

    title: str
    keys: tuple[str, ...]
    group: str
    size: str
    panels: tuple[Panel, ...]


def check_chart(file: Path) -> None:
    """Raises `NoChart` without Matplotlib, `OptionError` for a file of another format, and
    `OutputError` for one that can't be written."""
    if file.suffix != SUFFIX:
        raise OptionError(f"--chart {file}: give a file whose name ends in {SUFFIX}")
    if not file.parent.is_dir() or file.is_dir():
        raise OutputError(f"--chart {file} can't be written: give a file in an existing directory")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise NoChart(
            f"--chart needs Matplotlib ({error}); run pip install 'warrenmq[spark]'"
        ) from error


def draw(chart: Chart, directory: Path, file: Path) -> bool:
    """Draws the table of a directory; false if it has no rows, of which there is no picture.

    Raises `OutputError` if it can't be read or written.
    """
    if not Manifest(directory).files():
        return False
    rows = _with_groups(chart, _rows(chart, directory))
    try:
        _save(chart, rows, file)
    except OSError as error:
        raise OutputError(f"--chart {file} can't be written: {error.strerror}") from error
    return True


def _rows(chart: Chart, directory: Path) -> pd.DataFrame:
    """Returns of each minute and keys the row that holds."""
    import pyarrow.dataset

    columns = {"minute", "offset", *chart.keys, chart.size}
    columns |= {one for panel in chart.panels for one in (panel.column, panel.whole) if one}
    dataset = pyarrow.dataset.dataset(files(directory))
    frame: pd.DataFrame = dataset.to_table(columns=sorted(columns)).to_pandas()
    keys = ["minute", *chart.keys]
    return frame.sort_values("offset").drop_duplicates(keys, keep="last")


def _with_groups(chart: Chart, rows: pd.DataFrame) -> pd.DataFrame:
    """Returns rows with the column `line`: the group, or that of the others."""
    names = rows[chart.group].fillna("(none)").astype(str).replace("", "(none)")
    sizes = rows[chart.size].groupby(names).sum().sort_values(ascending=False)
    return rows.assign(line=names.where(names.isin(sizes.index[:TOP]), OTHERS))


def _step(minutes: pd.Series) -> str:
    import pandas as pd

    length = minutes.max() - minutes.min()
    return next((step for most, step in _STEPS if length <= pd.Timedelta(most)), "D")


def _lines(panel: Panel, rows: pd.DataFrame, step: str) -> pd.DataFrame:
    """Returns a column for each line, a row for each step of the time, without a gap."""
    if panel.whole is not None:
        part, whole = (_lines(Panel("", name), rows, step) for name in (panel.column, panel.whole))
        return 100 * part / whole.where(whole > 0)
    at = rows.minute.dt.floor(step)
    grouped = rows.assign(at=at).pivot_table(
        index="at", columns="line", values=panel.column, aggfunc=panel.combine, sort=False
    )
    import pandas as pd

    times = pd.date_range(at.min(), at.max(), freq=step)
    found = grouped.reindex(times)
    return found.fillna(0) if panel.combine == "sum" else found


def _save(chart: Chart, rows: pd.DataFrame, file: Path) -> None:
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    step = _step(rows.minute)
    height = _HEIGHT_INCHES * len(chart.panels)
    # Text as text, and the same picture of the same table.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": chart.title}):
        figure = Figure(figsize=(_WIDTH_INCHES, height), layout="constrained")
        FigureCanvasSVG(figure)
        axes: list[Axes] = [*figure.subplots(len(chart.panels), squeeze=False, sharex=True)[:, 0]]
        names = {"min": "minute", "h": "hour", "D": "day"}
        figure.suptitle(f"{chart.title}, by {chart.group} and {names[step]}")
        lines = sorted(set(rows.line), key=lambda name: (name == OTHERS, name))
        for axis, panel in zip(axes, chart.panels, strict=True):
            _plot(axis, panel, _lines(panel, rows, step), lines)
        axes[0].legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
        figure.savefig(file, format="svg", metadata={"Date": None})


def _plot(axis: Axes, panel: Panel, values: pd.DataFrame, lines: Sequence[str]) -> None:
    for number, name in enumerate(lines):
        if name in values:
            known = values[name].dropna()
            axis.plot(
                known.index, known, label=name, color=f"C{number}", linewidth=1.5,
                marker="o" if len(known) < MARKED else None, markersize=3,
            )  # fmt: skip
    axis.set_title(panel.title, loc="left", fontsize="medium")
    axis.set_yscale(panel.scale)
    if panel.scale == "linear":
        axis.set_ylim(bottom=0, top=105 if panel.whole else None)
    axis.grid(axis="y", alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
