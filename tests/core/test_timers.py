from __future__ import annotations

import gc

from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.timers import Timer, Timers


@given(
    st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=40),
    st.lists(st.integers(0, 12), max_size=6),
)
def test_timers_run_once_in_order(appointments: list[tuple[int, bool]], waits: list[int]) -> None:
    timers, ran = Timers(), list[int]()
    for number, (at_ms, cancelled) in enumerate(appointments):
        timer = timers.at(at_ms, lambda number=number: ran.append(number))  # type: ignore[misc]
        if cancelled:
            timer.cancel()
    kept = [number for number, (_, cancelled) in enumerate(appointments) if not cancelled]
    kept.sort(key=lambda number: appointments[number][0])
    now_ms = 0
    for wait in [0, *waits, 100]:
        now_ms += wait
        timers.run_due(now_ms)
        due = [number for number in kept if appointments[number][0] <= now_ms]
        assert ran == due
        left = [appointments[number][0] for number in kept if number not in due]
        assert timers.next_ms == min(left, default=None)


def test_a_timer_set_by_an_action_runs_if_due() -> None:
    timers, ran = Timers(), list[str]()

    def first() -> None:
        ran.append("first")
        timers.at(5, lambda: ran.append("due"))
        timers.at(6, lambda: ran.append("later"))

    timers.at(5, first)
    timers.run_due(5)
    assert (ran, timers.next_ms) == (["first", "due"], 6)


def test_an_action_can_cancel_another_that_is_due() -> None:
    timers, ran = Timers(), list[str]()
    timers.at(1, lambda: other.cancel())
    other = timers.at(1, lambda: ran.append("other"))
    timers.run_due(1)
    assert ran == []


def timer_count() -> int:
    return sum(isinstance(one, Timer) for one in gc.get_objects())


def test_cancelled_timers_are_removed() -> None:
    timers, ran, before = Timers(), list[int](), timer_count()
    for number in range(20):
        timers.at(1_000 + number, lambda number=number: ran.append(number))  # type: ignore[misc]
    for number in range(50_000):
        timers.at(10**9 + number, lambda: None).cancel()
    assert timer_count() <= before + 512
    assert timers.next_ms == 1_000
    timers.run_due(2_000)
    assert ran == list(range(20))
