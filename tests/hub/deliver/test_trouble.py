from __future__ import annotations

from warrenmq.hub.deliver.breaker import State
from warrenmq.hub.deliver.trouble import Trouble


def test_errors_are_counted_from_the_last_success_on() -> None:
    trouble = Trouble()
    trouble.add("status 500", 10.0)
    trouble.add("status 503", 11.0)
    assert (trouble.error_count, trouble.first_error_at) == (2, 10.0)
    assert (trouble.last_error, trouble.last_error_at) == ("status 503", 11.0)
    trouble.end()
    assert (trouble.error_count, trouble.first_error_at) == (0, 0.0)
    assert trouble.last_error == "status 503"
    trouble.add("no answer", 12.0)
    assert (trouble.error_count, trouble.first_error_at) == (1, 12.0)


def test_its_end_closes_the_breaker() -> None:
    trouble = Trouble()
    for now_s in range(10):
        trouble.breaker.failed(now_s)
    trouble.end()
    assert trouble.breaker.state is State.CLOSED


def test_a_long_error_is_cut() -> None:
    trouble = Trouble()
    trouble.add("x" * 10_000, 1.0)
    assert len(trouble.last_error) == 200
