from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.timers import Timers


def test_nothing_to_do() -> None:
    timers = Timers()
    assert timers.next_ms is None
    timers.run_due(10**9)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=40),
    st.lists(st.integers(0, 12), max_size=6),
)
def test_each_runs_once_when_it_is_due_in_order(
    appointments: list[tuple[int, bool]], waits: list[int]
) -> None:
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


def test_what_is_appointed_meanwhile_runs_as_well_if_it_is_due() -> None:
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


def test_a_timer_that_ran_is_void() -> None:
    timers, ran = Timers(), list[str]()
    timer = timers.at(1, lambda: ran.append("once"))
    timers.run_due(1)
    timer.cancel()
    assert (ran, timer.action) == (["once"], None)


def test_void_appointments_do_not_pile_up() -> None:
    timers, ran = Timers(), list[int]()
    for number in range(20):
        timers.at(1_000 + number, lambda number=number: ran.append(number))  # type: ignore[misc]
    for number in range(50_000):
        timers.at(10**9 + number, lambda: None).cancel()
    assert len(timers._heap) <= 512
    assert timers.next_ms == 1_000
    timers.run_due(2_000)
    assert ran == list(range(20))


def test_many_live_appointments_are_all_kept() -> None:
    timers, ran = Timers(), list[int]()
    for number in reversed(range(3_000)):
        timers.at(number, lambda number=number: ran.append(number))  # type: ignore[misc]
    timers.run_due(3_000)
    assert ran == list(range(3_000))
