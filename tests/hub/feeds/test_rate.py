"""How often a feed changes, as it is shown, and as its polls are planned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from msgspec.structs import replace

from tests.hub.feeds.conftest import Client
from tests.support.feed_site import Page, rss
from warrenmq.hub.feeds.rate import USUAL_WEEKLY, Rate, Rates, by_dates
from warrenmq.hub.feeds.schedule import DAY_S, HOUR_S, WEEK_S

NOW = 1_800_000_000.0
MINUTE_S = 60.0


def a_week(*ages_s: float) -> float | None:
    rate = by_dates([NOW - age_s for age_s in ages_s], NOW)
    return None if rate is None else round(rate.weekly(NOW), 1)


@pytest.mark.parametrize(
    ("ages_s", "expected"),
    [
        ([number * 6 * MINUTE_S for number in range(1, 21)], 1_596),
        ([HOUR_S, 6 * DAY_S, 8 * DAY_S, 30 * DAY_S], 2),
        ([*(number * HOUR_S for number in range(1, 20)), 400 * DAY_S], 159.2),  # one is pinned
        ([3 * HOUR_S] * 20, 20),  # a site that was rebuilt
        ([HOUR_S], 1),
        ([10, 10, 10], None),  # the server writes the present time
        ([-DAY_S], None),
        ([], None),
        ([30 * DAY_S], 0),
    ],
)
def test_a_document_shows_how_often_entries_come(
    ages_s: list[float], expected: float | None
) -> None:
    assert a_week(*ages_s) == expected


def test_what_polls_have_found_counts_where_no_date_does() -> None:
    rates = Rates()
    assert (rates.weekly(NOW), rates.expected(NOW)) == (None, USUAL_WEEKLY)
    rates = rates.polled(0, NOW)
    assert (rates.weekly(NOW), rates.expected(NOW)) == (None, USUAL_WEEKLY)
    at = NOW + DAY_S
    rates = rates.polled(20, at)
    assert rates.weekly(at) == rates.expected(at) == 70
    at += 6 * WEEK_S
    assert (rates.weekly(at) or 0) < 4
    quiet = Rates().polled(0, NOW).polled(0, at)
    assert quiet.weekly(at) == quiet.expected(at) == 0


def test_the_larger_figure_counts_and_fades_without_news() -> None:
    rates = Rates(Rate(20, NOW - HOUR_S), Rate(30, NOW - WEEK_S))
    assert rates.weekly(NOW) == pytest.approx(20 * 168)
    assert rates.weekly(NOW + HOUR_S) == pytest.approx(10 * 168)
    assert replace(rates, dated=Rate(20, NOW - WEEK_S)).weekly(NOW) == 30
    assert Rates(Rate(1, NOW - WEEK_S), Rate(1, NOW - DAY_S)).weekly(NOW) == 1
    at = NOW
    for _ in range(60):
        at += DAY_S
        rates = rates.polled(0, at)
    assert rates.weekly(at) == pytest.approx(0, abs=0.05)


def test_the_rate_is_unknown_until_there_is_something_to_count(client: Client) -> None:
    feed = client.register(Page(rss("a")))
    assert feed["entries_a_week"] is None and "entries a week unknown" in feed["health"]
    found = client.http.get("feeds", params={"search": feed["name"]}).json()
    assert found["statistics"]["entries_a_week"] == 0
    dated = f"<pubDate>{format_datetime(datetime.now(UTC) - timedelta(hours=1))}</pubDate>"
    page = Page(rss("b").replace(b"</item>", f"{dated}</item>".encode()))
    found = client.poll(feed, page)
    assert found["entries_a_week"] == 1 and "1 entry a week" in found["health"]


def test_a_poll_that_finds_new_entries_alone_is_soon_repeated(client: Client) -> None:
    feed = client.register(Page(rss("b", "a")))
    before = feed["interval_s"]
    found = client.poll(feed, Page(rss("d", "c")))
    assert found["interval_s"] * 2 == before
    assert "may have been more" in found["notices"][0]
    found = client.poll(feed, Page(rss("e", "d")))
    assert found["interval_s"] == before and found["notices"] == []
