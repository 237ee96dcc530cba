"""Statuses of errors of the broker."""

from __future__ import annotations

import pytest

from warrenmq.app.problems import problem_of
from warrenmq.core.errors import ChannelError


@pytest.mark.parametrize(
    ("reply_code", "status"),
    [(311, 413), (320, 503), (403, 403), (404, 404), (405, 409), (406, 400), (540, 501)],
)
def test_status_of_a_reply_code(reply_code: int, status: int) -> None:
    problem = problem_of(ChannelError(reply_code, "reason"))
    assert (problem.status, problem.detail) == (status, "reason")
