"""What a run says of itself, and when."""

from __future__ import annotations

from tests.support.process import wait_until
from warrenmq.hub.pipeline.progress import Progress, Report


def test_a_run_that_does_nothing_reports_again_and_again_until_it_ends() -> None:
    reports: list[Report] = []
    progress = Progress(reports.append, silence_s=0.01)
    with progress.alive():
        wait_until(lambda: len(reports) >= 3, 10, "reports")
    progress.end()
    count = len(reports)
    assert [report.state for report in reports] == ["running"] * (count - 1) + ["done"]
