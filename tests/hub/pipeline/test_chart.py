"""Pictures of jobs' tables."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warrenmq.hub.pipeline.chart import NoChart, check_chart, draw
from warrenmq.hub.pipeline.errors import OptionError, OutputError
from warrenmq.hub.pipeline.jobs.delivery_health import DELIVERY_HEALTH
from warrenmq.hub.pipeline.jobs.rollup import ROLLUP
from warrenmq.hub.pipeline.manifest import DataFile, Manifest

START = datetime(2026, 1, 31, 12, tzinfo=UTC)
POINT = re.compile(r"[ML] ([\d.]+) ([\d.]+)")


def table(directory: Path, *rows: dict[str, Any]) -> Path:
    """Writes a table of one commit; `minute` counts from noon."""
    made = [row | {"minute": START + timedelta(minutes=row["minute"])} for row in rows]
    pq.write_table(pa.Table.from_pylist(made), directory / "rows.parquet")
    Manifest(directory).commit("0", [DataFile("rows.parquet", len(rows), 1)])
    return directory


def counted(minute: int, exchange: str, messages: int, offset: int) -> dict[str, Any]:
    return {
        "minute": minute, "exchange": exchange, "routing_key": "k", "messages": messages,
        "bytes": 10 * messages, "size_p99": 10, "age_p99_ms": None, "offset": offset,
    }  # fmt: skip


def heights(picture: str, panel: int) -> list[list[float]]:
    """Returns how high the points of each line of a panel are above the axis."""
    part = picture.split('<g id="axes_')[panel]
    floor = max(float(y) for _, y in POINT.findall(part.split('<g id="matplotlib.axis')[0]))
    found = re.findall(r'<g id="line2d_\d+">\s*<path d="([^"]*)"[^>]*stroke-width: 1.5', part)
    return [[floor - float(y) for _, y in POINT.findall(path)] for path in found]


def test_a_rollup_shows_each_exchange_with_the_rows_that_hold(tmp_path: Path) -> None:
    """Of the first minute the later update counts, and a minute without messages has none."""
    assert ROLLUP.chart is not None
    rows = [counted(0, "news", 5, 4), counted(0, "news", 20, 19), counted(2, "news", 10, 40)]
    rows += [counted(minute, f"x{minute}", 100, 50 + minute) for minute in range(5)]
    rows += [counted(minute, "small", 1, 90 + minute) for minute in range(3)]
    file = tmp_path / "rollup.svg"
    assert draw(ROLLUP.chart, table(tmp_path, *rows), file)
    picture = file.read_text()
    for text in ("Rollup, by exchange and minute", "messages", "news", "x4", "others"):
        assert f">{text}</text>" in picture
    assert ">small</text>" not in picture, "it is one of the others"
    news, *_ = heights(picture, 1)
    assert [round(one / news[2], 3) for one in news] == [2, 0, 1, 0, 0]
    draw(ROLLUP.chart, tmp_path, file)
    assert file.read_text() == picture


def test_delivery_health_shows_how_many_percent_were_delivered(tmp_path: Path) -> None:
    assert DELIVERY_HEALTH.chart is not None
    rows = [
        {
            "minute": 60 * 24 * number, "subscription": "sub_1", "topic": None, "attempts": 10,
            "delivered": delivered, "latency_p50_ms": 5.0, "latency_p99_ms": 50.0, "offset": number,
        } for number, delivered in enumerate((10, 5, 0, 10))
    ]  # fmt: skip
    file = tmp_path / "health.svg"
    assert draw(DELIVERY_HEALTH.chart, table(tmp_path, *rows), file)
    picture = file.read_text()
    assert ">Delivery health, by subscription and hour</text>" in picture
    line, *_ = heights(picture, 1)
    assert [round(one / line[0], 2) for one in line] == [1, 0.5, 0, 1]


def test_what_can_not_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ROLLUP.chart is not None
    assert not draw(ROLLUP.chart, tmp_path, tmp_path / "none.svg")
    with pytest.raises(OptionError, match="name ends in .svg"):
        check_chart(tmp_path / "a.png")
    with pytest.raises(OutputError, match="a file in an existing directory"):
        check_chart(tmp_path / "no" / "a.svg")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NoChart, match=r"run pip install 'warrenmq\[spark\]'"):
        check_chart(tmp_path / "a.svg")
