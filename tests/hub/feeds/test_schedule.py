from __future__ import annotations

from datetime import UTC, datetime

import pytest

from warrenmq.hub.feeds.schedule import (
    DAY_S,
    HOUR_S,
    WEEK_S,
    failed_interval_s,
    fresh_s,
    interval_s,
    next_at,
    spread_s,
)
from warrenmq.hub.formats.read_feed import PollHints

NOW = datetime(2026, 11, 23, 14, 30, tzinfo=UTC).timestamp()  # a Monday


@pytest.mark.parametrize(
    ("weekly", "least", "hints", "fresh", "expected"),
    [
        (0, 300, None, 0, DAY_S),
        (7, 300, None, 0, DAY_S),
        (168, 300, None, 0, HOUR_S),
        (100_000, 300, None, 0, 300),
        (100_000, 60, None, 0, 60),
        (168, 300, PollHints(ttl_s=7_200), 0, 7_200),
        (168, 300, PollHints(ttl_s=10**7), 0, DAY_S),
        (168, 300, PollHints(update_interval_s=10_800), 0, 10_800),
        (168, 300, None, 5_000, 5_000),
        (168, 2 * WEEK_S, None, 0, 2 * WEEK_S),
    ],
)
def test_the_interval_follows_the_rate_within_its_limits(
    weekly: float, least: float, hints: PollHints | None, fresh: float, expected: float
) -> None:
    assert interval_s(weekly, least, hints, fresh) == pytest.approx(expected)


def test_failures_double_the_wait_up_to_a_day() -> None:
    waits = [failed_interval_s(0, failures) for failures in (1, 2, 3, 50)]
    assert waits == [300, 600, 1_200, DAY_S]
    assert failed_interval_s(HOUR_S, 1) == HOUR_S


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        (PollHints(), "Mon 14:30"),
        (PollHints(skip_hours=(14, 15)), "Mon 16:03"),
        (PollHints(skip_days=(0,)), "Tue 00:03"),
        (PollHints(skip_days=(0, 1), skip_hours=(0,)), "Wed 01:03"),
    ],
)
def test_skipped_hours_and_days_are_waited_for(hints: PollHints, expected: str) -> None:
    at = next_at(NOW, 0, hints, 0.5)
    assert datetime.fromtimestamp(at, UTC).strftime("%a %H:%M") == expected


def test_chance_lengthens_the_wait_by_a_tenth_at_most() -> None:
    assert next_at(NOW, 1_000, None, 0) == NOW + 1_000
    assert next_at(NOW, 1_000, None, 0.999) == pytest.approx(NOW + 1_100, abs=1)


def test_freshness_is_read_from_cache_control_or_expires() -> None:
    assert fresh_s("public, max-age=600", "", NOW) == 600
    assert fresh_s("no-cache", "Mon, 23 Nov 2026 15:30:00 GMT", NOW) == HOUR_S
    assert fresh_s("", "0", NOW) == fresh_s("", "", NOW) == 0


def test_overdue_feeds_are_spread_after_a_start() -> None:
    assert spread_s(10_000, 0.5) == 50
    assert spread_s(10**6, 1) == HOUR_S / 2
    assert spread_s(1, 0.5) < 1
