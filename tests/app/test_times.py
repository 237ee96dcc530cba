"""Seconds become RFC 3339."""

from __future__ import annotations

import pytest

from warrenmq.app.responses.times import rfc3339


@pytest.mark.parametrize(
    ("at_s", "text"),
    [
        (1_700_000_000.5, "2023-11-14T22:13:20.500Z"),
        (1, "1970-01-01T00:00:01.000Z"),
        (None, None),
        (0, None),
        (1e18, None),
    ],
)
def test_times_are_formatted_as_rfc_3339(at_s: float | None, text: str | None) -> None:
    assert rfc3339(at_s) == text
