"""How many lines there are of what happens without end."""

from __future__ import annotations

import logging

import pytest

from warrenmq.core.clock import ManualClock
from warrenmq.hub.limited_log import MAX_LINES, QUIET_MS, LimitedLog

log = logging.getLogger(__name__)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def limited(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> LimitedLog:
    caplog.set_level(logging.INFO)
    return LimitedLog(log, clock)


def test_one_line_a_minute_about_one_object(
    limited: LimitedLog, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(5):
        limited.write(logging.WARNING, "a", "a failed: %d", number)
    limited.write(logging.WARNING, "b", "b failed")
    clock.advance(QUIET_MS)
    limited.write(logging.WARNING, "a", "a failed: %d", 5)
    limited.write(logging.WARNING, "a", "a failed: %d", 6)
    assert caplog.messages == [
        "a failed: 0", "b failed", "a failed: 5 (4 more like it in the last minutes)",
    ]  # fmt: skip


def test_all_objects_together_are_limited(
    limited: LimitedLog, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(MAX_LINES + 50):
        limited.write(logging.WARNING, str(number), "%d failed", number)
    assert len(caplog.messages) == MAX_LINES
    clock.advance(QUIET_MS)
    limited.write(logging.WARNING, "again", "again")
    assert caplog.messages[MAX_LINES:] == ["50 similar lines suppressed", "again"]


def test_a_level_that_is_off_counts_nothing(
    limited: LimitedLog, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(MAX_LINES + 1):
        limited.write(logging.DEBUG, "a", "never seen")
    limited.write(logging.WARNING, "a", "seen")
    assert caplog.messages == ["seen"]
