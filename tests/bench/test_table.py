"""The printed table: a column that says nothing, or a ratio of unlike jobs, would mislead."""

from __future__ import annotations

from pathlib import Path

from .disk import directory_bytes
from .figures import Figures, Goal
from .scenario import Scenario, Settings
from .table import REFERENCE, floor, live, markdown

SCENARIO = Scenario("job", lambda _broker, _settings: Figures())


def _table(ours: Figures, theirs: Figures) -> str:
    results = {("job", "Warren"): ours, ("job", REFERENCE): theirs}
    return markdown([SCENARIO], ["Warren", REFERENCE], results)


def test_a_column_without_figures_is_left_out() -> None:
    text = _table(Figures(seconds=1.0), Figures())
    assert "Warren seconds" in text
    assert "disk MB" not in text


def test_seconds_of_the_same_job_are_compared() -> None:
    text = _table(Figures(seconds=2.0, job=10), Figures(seconds=5.0, job=10))
    assert text.endswith("2.5x as fast |")


def test_seconds_of_unlike_jobs_are_not_compared() -> None:
    assert "as fast" not in _table(Figures(seconds=2.0, job=10), Figures(seconds=5.0, job=9))


def test_a_goal_shows_whether_it_was_met() -> None:
    line = Figures(goals=[Goal("ratio >= 0.9", met=False), Goal("p50 <= 1 ms", met=True)])
    assert floor(SCENARIO, line) == "ratio >= 0.9 MISSED; p50 <= 1 ms ok"


def test_goals_are_not_meant_for_the_reference() -> None:
    line = Figures(goals=[Goal("ratio >= 0.9", met=False)])
    assert "MISSED" in live("Warren", SCENARIO, line)
    assert "MISSED" not in live(REFERENCE, SCENARIO, line)


def test_a_step_is_cut_off_unless_the_whole_job_is_wanted() -> None:
    assert Settings().bound_s(5.0) == 5.0
    assert Settings(complete=True).bound_s(5.0) > 60


def test_a_directory_counts_blocks_and_not_lengths(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "data").write_bytes(bytes(100_000))
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 30)
    assert 100_000 <= directory_bytes(tmp_path) < 1_000_000
