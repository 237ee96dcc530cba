"""Computes when a feed is polled next, without side effects.

The interval follows how often entries come, within what the feed and its server ask for
(RSS 2.0 `ttl`, `skipHours`, `skipDays`; RSS 1.0 Syndication; RFC 9111 5.2, 5.3).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ..formats.read_feed import PollHints

HOUR_S = 3_600.0
DAY_S = 24 * HOUR_S
WEEK_S = 7 * DAY_S
MAX_INTERVAL_S = DAY_S
"""However rarely a feed changes, and whatever its server asks for but by Retry-After."""
FAILED_S = 300.0
"""The wait after the first failure; it doubles."""
POSTPONED_S, MAX_POSTPONED_S = 15.0, 300.0
"""The first and the longest wait after a poll that this side could not store or publish."""
JITTER = 0.1
"""The share of an interval by which it is lengthened at random, so that feeds drift apart."""
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?([0-9]{1,9})")
_MAX_SKIPS = 24 * 8
"""Hours to try: `skipDays` leaves at least one day of the week."""


def interval_s(
    weekly: float,
    min_interval_s: float,
    hints: PollHints | None,
    max_age_s: float,
    most_s: float = MAX_INTERVAL_S,
) -> float:
    """Returns the seconds between two polls, without jitter: at most `most_s`, unless the feed or
    its server asks for more."""
    adaptive = min(WEEK_S / weekly, most_s) if weekly else most_s
    asked = max_age_s
    if hints is not None:
        asked = max(asked, hints.ttl_s or 0, hints.update_interval_s or 0)
    return max(min(max(adaptive, asked), MAX_INTERVAL_S), min_interval_s)


def failed_interval_s(interval: float, failures: int) -> float:
    """Returns the wait after so many failures in a row (from 1)."""
    return max(interval, min(FAILED_S * float(1 << min(failures - 1, 20)), MAX_INTERVAL_S))


def postponed_s(count: int) -> float:
    """Returns the wait after a poll that this side could not do, so many times in a row."""
    return min(POSTPONED_S * float(1 << min(count - 1, 10)), MAX_POSTPONED_S)


def next_at(now_s: float, wait_s: float, hints: PollHints | None, chance: float) -> float:
    """Returns the wall time of the next poll; `chance` in [0, 1) places it in the jitter."""
    at = now_s + wait_s * (1 + JITTER * chance)
    return at if hints is None else _not_skipped(at, hints, chance)


def fresh_s(cache_control: str, expires: str, now_s: float) -> float:
    """Returns for how many seconds an answer is fresh, 0 if it does not say."""
    found = _MAX_AGE.search(cache_control.lower())
    if found is not None:
        return float(found[1])
    try:
        date = parsedate_to_datetime(expires)
        return max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now_s)
    except (ValueError, OverflowError):
        return 0.0


def spread_s(overdue: int, chance: float) -> float:
    """Returns how long an overdue feed waits after a start, one of so many.

    A hundred begin a second on average, and all of them within half an hour.
    """
    return min(overdue / 100, HOUR_S / 2) * chance


def _not_skipped(at: float, hints: PollHints, chance: float) -> float:
    """Returns the time, or a moment in the first hour behind it that is not skipped."""
    for skipped in range(_MAX_SKIPS):
        hour_s = at if not skipped else (at // HOUR_S + skipped) * HOUR_S
        moment = datetime.fromtimestamp(hour_s, UTC)
        if moment.hour not in hints.skip_hours and moment.weekday() not in hints.skip_days:
            return hour_s if not skipped else hour_s + HOUR_S * JITTER * chance
    return at
