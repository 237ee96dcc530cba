"""Accept (RFC 9110 12.5.1)."""

from __future__ import annotations

import pytest

from warrenmq.app.responses.negotiation import choose, names

OFFERED = ("text/xml", "application/json", "text/html")


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", "text/xml"),
        ("*/*", "text/xml"),
        ("application/*", "application/json"),
        ("application/json", "application/json"),
        ("Application/JSON ; q=0.1", "application/json"),
        ("text/html, application/json", "application/json"),
        ("text/html, application/json;q=0.9", "text/html"),
        ("text/*;q=0.5, text/html", "text/html"),
        ("*/*, text/xml;q=0", "application/json"),
        ("text/html;q=0.1, */*;q=0.2", "text/xml"),
        ("text/html;level=1;q=0.5", "text/html"),
        ("image/png", None),
        ("*/*;q=0", None),
        ("text/html;q=much", None),
        (",,;", None),
    ],
)
def test_the_type_with_the_highest_quality_is_chosen(accept: str, chosen: str | None) -> None:
    assert choose(accept, OFFERED) == chosen


@pytest.mark.parametrize(
    ("accept", "is_named"),
    [
        ("application/json", True),
        ("application/json, text/plain, */*", True),
        ("text/html, Application/JSON;q=0.1", True),
        ("*/*", False),
        ("application/*", False),
        ("application/json;q=0", False),
        ("", False),
    ],
)
def test_a_type_that_is_named(accept: str, is_named: bool) -> None:
    assert names(accept, "application/json") is is_named
