"""The retry schedule: tables and pure functions.

Twelve attempts in about four days (Standard Webhooks makes ten in 75 hours). A wait consists of
fixed steps, each a delay queue that all subscriptions share.
"""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

DELAYS_S = (3, 30, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 72_000, 86_400)
"""Wait after the first, second, ... failed attempt; the last one is repeated."""

STEPS_S = (
    1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400
)  # fmt: skip
"""The time to live of each delay queue."""

MAX_RETRY_AFTER_S = 86_400  # a target can't delay its messages for longer
EARLY_S = 0.5
"""A message that returns so early is delivered: another step would make it late."""

_FIRST_SPREAD = 2 / 3  # 1 to 5 s
_SPREAD = 0.2  # as Svix: retries of simultaneous failures are spread


def delay_s(failures: int, chance: float, retry_after_s: float = 0.0) -> float:
    """Returns the wait after so many failures (from 1). `chance` in [0, 1) places it in its spread.

    The wait is never shorter than `retry_after_s`, even if the message returns early.
    """
    base = DELAYS_S[min(failures, len(DELAYS_S)) - 1]
    spread = _FIRST_SPREAD if failures == 1 else _SPREAD
    requested_s = min(retry_after_s, MAX_RETRY_AFTER_S) + EARLY_S if retry_after_s else 0.0
    return max(base * (1 + spread * (2 * chance - 1)), requested_s)


def step_s(wait_s: float) -> int:
    """Returns the longest step that is not longer than the wait, or else the shortest step."""
    fitting = [step for step in STEPS_S if step <= wait_s + EARLY_S]
    return fitting[-1] if fitting else STEPS_S[0]


def retry_after_s(value: str | None, now_s: float) -> float:
    """Returns the seconds of a `Retry-After` header, a number or a date (RFC 9110 10.2.3), else 0.

    A date is in UTC and may have been rounded down to whole seconds.
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(min(int(text[:9]), MAX_RETRY_AFTER_S))
    try:
        date = parsedate_to_datetime(text)
        zone = date.tzinfo or UTC
        return max(0.0, date.replace(tzinfo=zone).timestamp() + 1 - now_s)
    except (ValueError, OverflowError):
        return 0.0
