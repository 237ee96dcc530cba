from __future__ import annotations

import pytest

from warrenmq.hub.delivery.retry import (
    DELAYS_S,
    EARLY_S,
    MAX_RETRY_AFTER_S,
    STEPS_S,
    delay_s,
    retry_after_s,
    step_s,
)

DAY_S = 86_400


def test_the_first_wait_is_one_to_five_seconds() -> None:
    assert delay_s(1, 0.0) == pytest.approx(1)
    assert delay_s(1, 0.999_999) == pytest.approx(5, abs=0.01)


def test_twelve_attempts_last_about_four_days() -> None:
    assert len(DELAYS_S) == 11
    assert 3.9 * DAY_S < sum(DELAYS_S) < 4.1 * DAY_S


@pytest.mark.parametrize("failures", range(2, 15))
def test_later_waits_are_spread_by_a_fifth(failures: int) -> None:
    base = DELAYS_S[min(failures, len(DELAYS_S)) - 1]
    assert delay_s(failures, 0.0) == pytest.approx(base * 0.8)
    assert delay_s(failures, 0.5) == pytest.approx(base)


def test_retry_after_is_bounded() -> None:
    assert delay_s(1, 0.5, retry_after_s=100) == 100 + EARLY_S
    assert delay_s(3, 0.5, retry_after_s=1) == 300
    assert delay_s(1, 0.5, retry_after_s=1e12) == MAX_RETRY_AFTER_S + EARLY_S


@pytest.mark.parametrize("asked_s", [5.0, 7.3, 59.9])
def test_retry_after_is_a_minimum(asked_s: float) -> None:
    """A message is delivered when less than `EARLY_S` of its wait is left."""
    left_s, waited_s = delay_s(1, 0.0, asked_s), 0
    while left_s > EARLY_S:
        waited_s += step_s(left_s)
        left_s -= step_s(left_s)
    assert waited_s >= asked_s - 1e-9


@pytest.mark.parametrize("wait_s", [0, 0.4, 1, 1.4, 3.7, 59.6, 300, 4_321, 86_400, 200_000])
def test_steps_add_up_to_the_wait(wait_s: float) -> None:
    left, steps = wait_s, 0
    while left > 0.5:
        step = step_s(left)
        assert step in STEPS_S and step <= max(left + 0.5, STEPS_S[0])
        left -= step
        steps += 1
    assert left >= -1 and steps <= 9


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, 0), ("", 0), ("120", 120), (" 7 ", 7), ("-5", 0), ("soon", 0),
        ("9" * 1000, MAX_RETRY_AFTER_S),
        ("Thu, 01 Jan 1970 00:16:40 GMT", 901), ("Thu, 01 Jan 1970 00:16:40 -0000", 901),
        ("Thursday, 01-Jan-70 00:16:40 GMT", 901), ("Thu Jan  1 00:16:40 1970", 901),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
    ],
)  # fmt: skip
def test_retry_after_is_a_number_or_a_date(value: str | None, seconds: float) -> None:
    assert retry_after_s(value, now_s=100) == seconds
