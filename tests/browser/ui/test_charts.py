"""Charts of the web UI: marks, gaps, and the cursor that all of them share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from .signed_in import SignedInPage

pytestmark = pytest.mark.thorough

NOON_S = 1_795_780_800
MARKS = "[...document.querySelectorAll('.plot [text-anchor=end]')].map((one) => one.textContent)"
SHOWN = "[...document.querySelectorAll('.legend b')].map((one) => one.textContent)"


def _draw(ui: SignedInPage, values: Sequence[float | None], text: str, more: Any = None) -> None:
    """Adds a chart with a sample for each minute; `text` is one of the UI's functions."""
    times = [NOON_S + 60 * number for number in range(len(values))]
    ui.page.run(f"""Promise.all([import('/ui/lib/chart.js'), import('/ui/lib/format.js')]).then(
      ([{{chart}}, format]) => {{
        const lines = [{{label: 'Line', color: 1}}];
        const options = {{title: 'A chart', lines, text: format.{text}, ...{json.dumps(more)}}};
        const drawing = chart(options);
        document.querySelector('main').append(drawing);
        drawing.show({json.dumps([times, list(values)])});
      }})""")
    ui.page.wait("document.querySelector('main warren-chart:last-child text')")


def _cleared(ui: SignedInPage) -> None:
    ui.go("/vhosts")
    ui.page.run("document.querySelector('main').replaceChildren()")


def test_counts_are_marked_at_whole_numbers_and_bytes_at_powers_of_two(ui: SignedInPage) -> None:
    for values, text, more, marks in [
        ([0, 1, 2], "count", None, ["0", "1", "2"]),
        ([0, 9_000], "count", None, ["0", "2,000", "4,000", "6,000", "8,000"]),
        ([0, 1], "rate", None, ["0/s", "0.5/s", "1.0/s"]),
        ([0, 5 * 2**20], "bytes", {"unit": 1024}, ["0 B", "2.0 MiB", "4.0 MiB"]),
    ]:
        _cleared(ui)
        _draw(ui, values, text, more)
        assert ui.page.run(MARKS) == marks


def test_a_sample_between_gaps_is_a_dot(ui: SignedInPage) -> None:
    _cleared(ui)
    _draw(ui, [1, 2, None, 3, None, 4, 5], "count")
    path = ui.page.run("document.querySelector('.plot path').getAttribute('d')")
    assert [part.count("L") for part in path.split("M")[1:]] == [1, 0, 1]


def test_a_chart_without_room_or_samples_has_no_lines(ui: SignedInPage) -> None:
    _cleared(ui)
    _draw(ui, [1, 2, 3] * 1_000, "count")
    ui.page.run("(document.querySelector('main').style.width = '80px')")
    ui.page.wait("document.querySelector('.plot').getBoundingClientRect().width < 64 + 28")
    ui.page.run("(document.querySelector('main').style.width = '')")
    _draw(ui, [10, 20, 30], "count")
    ui.page.run("document.querySelector('main warren-chart:last-child').show([[], []])")
    ui.point("warren-chart .plot")
    ui.page.wait("document.querySelector('.cursor')")
    assert not ui.page.run("document.querySelectorAll('.cursor[x1=NaN]').length")


def test_the_cursor_is_at_the_same_time_in_all_charts(ui: SignedInPage) -> None:
    _cleared(ui)
    _draw(ui, [1, 2, 3, 4, 5], "count")
    _draw(ui, [10, 20, 30, 40, 50], "count")
    assert ui.page.run(SHOWN) == ["5", "50"]
    box = ui.page.run("document.querySelector('.plot').getBoundingClientRect().toJSON()")
    middle = box["x"] + 64 + (box["width"] - 64 - 28) / 2
    for below, shown in [(60, "3,30"), (-40, "5,50")]:
        move = {"type": "pointerMove", "x": round(middle), "y": round(box["y"] + below)}
        pointer = {"type": "pointer", "id": "mouse", "actions": [move]}
        ui.page.command("input.performActions", actions=[pointer])
        ui.page.wait(f"{SHOWN}.join() === '{shown}'")
