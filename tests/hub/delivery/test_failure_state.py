from __future__ import annotations

from warrenmq.hub.delivery.failure_state import FailureState


def test_errors_are_counted_from_the_last_success_on() -> None:
    failure_state = FailureState()
    failure_state.add("status 500", 10.0)
    failure_state.add("status 503", 11.0)
    assert (failure_state.error_count, failure_state.first_error_at) == (2, 10.0)
    assert (failure_state.last_error, failure_state.last_error_at) == ("status 503", 11.0)
    failure_state.end()
    assert (failure_state.error_count, failure_state.first_error_at) == (0, 0.0)
    assert failure_state.last_error == "status 503"
    failure_state.add("no answer", 12.0)
    assert (failure_state.error_count, failure_state.first_error_at) == (1, 12.0)


def test_a_long_error_is_cut() -> None:
    failure_state = FailureState()
    failure_state.add("x" * 10_000, 1.0)
    assert len(failure_state.last_error) == 200
