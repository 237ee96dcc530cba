"""Feeds and outputs in the web UI: each act as a user does it, and what the server has then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.feed_site import FeedSite, Page, rss
from tests.support.server import WarrenServer

from .signed_in import SignedInPage

pytestmark = pytest.mark.thorough

TWO = (
    b'<html><head><link rel="alternate" type="application/rss+xml" title="All news" href="/a">'
    b'<link rel="alternate" type="application/rss+xml" title="Sport &lt;b&gt;" href="/b"></head>'
)
ROW = "[...document.querySelectorAll('tbody th a')].map((one) => one.textContent)"


@pytest.fixture
def site() -> Iterator[FeedSite]:
    with FeedSite() as site:
        site.pages["/a"] = Page(rss("one", "two", title="News"))
        site.pages["/b"] = Page(rss("goal", title="Sport"))
        site.pages["/page"] = Page(TWO, content_type="text/html")
        yield site


@pytest.fixture
def api(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{warren.http_url}/api/hub", auth=("guest", "guest")) as client:
        yield client
        for feed in client.get("/feeds").json()["items"]:
            client.delete(f"/feeds/{feed['name']}").raise_for_status()


def _feed(api: httpx.Client, name: str) -> Any:
    return api.get(f"/feeds/{name}").raise_for_status().json()


def test_a_page_that_names_two_feeds_lets_the_user_choose(
    ui: SignedInPage, api: httpx.Client, site: FeedSite
) -> None:
    ui.go("/feeds")
    ui.press("Add the first feed")
    ui.fill("url", f"{site.url}/page")
    ui.fill("name", "sport")
    ui.fill("first", "1")
    ui.press("Add feed", "dialog")
    ui.shows("names 2 feeds", "dialog")
    ui.shows("Sport <b>", "dialog")
    ui.page.click("dialog label:nth-of-type(2) input")
    ui.press("Add this feed")
    ui.shows("Healthy: last read", "main")
    ui.shows("goal", "main")
    found = _feed(api, "sport")
    assert (found["url"], found["published"]) == (f"{site.url}/b", 1)


def test_a_feed_is_polled_paused_changed_and_deleted(
    ui: SignedInPage, api: httpx.Client, site: FeedSite
) -> None:
    api.post("/feeds", json={"url": f"{site.url}/a", "name": "news"}).raise_for_status()
    ui.go("/feeds/%2F/news")
    site.pages["/a"] = Page(rss("three", "one", "two", title="News"))
    ui.press("Poll now")
    ui.shows("three", "main")
    assert _feed(api, "news")["published"] == 1
    ui.press("Pause")
    ui.shows("Paused: not polled until it is resumed.", "main")
    ui.press("Resume")
    ui.shows("Healthy", "main")
    ui.fill("min_interval_s", "7200", "main")
    ui.press("Save settings")
    ui.shows("Saved the settings of news.")
    assert _feed(api, "news")["min_interval_s"] == 7200
    ui.press("Delete")
    ui.fill("typed", "news")
    ui.press("Delete the feed news", "dialog")
    ui.page.wait("location.hash === '#/feeds'")
    assert api.get("/feeds/news").status_code == 404


def test_the_list_sorts_filters_and_shows_what_fails(
    ui: SignedInPage, api: httpx.Client, site: FeedSite
) -> None:
    for name in ("b", "a"):
        api.post("/feeds", json={"url": f"{site.url}/{name}", "name": name}).raise_for_status()
    del site.pages["/b"]
    api.post("/feeds/b/poll")
    ui.go("/feeds?sort=entries&sort_reverse=true")
    ui.page.wait(f'JSON.stringify({ROW}) === \'["a","b"]\'')
    ui.shows("its server answered 404", "tbody")
    ui.go("/feeds?state=failing")
    ui.page.wait(f"JSON.stringify({ROW}) === '[\"b\"]'")
    site.pages["/b"] = Page(rss("back", title="Sport"))
    ui.press("Poll now", "tbody")
    ui.shows("No feeds match this filter.")
    assert _feed(api, "b")["state"] == "ok"


def test_opml_comes_in_and_goes_out(ui: SignedInPage, api: httpx.Client, site: FeedSite) -> None:
    outlines = "".join(f'<outline type="rss" xmlUrl="{site.url}/{one}"/>' for one in "ab")
    text = f'<opml version="2.0"><head/><body>{outlines}</body></opml>'
    ui.go("/feeds")
    ui.press("Import OPML")
    ui.page.wait("document.querySelector('dialog input[type=file]')")
    ui.page.run(
        f"((given) => {{ given.items.add(new File([{json.dumps(text)}], 'feeds.opml'));"
        "document.querySelector('dialog input[type=file]').files = given.files; })"
        "(new DataTransfer())"
    )
    ui.press("Import feeds")
    ui.shows("2 feeds added, 0 known already, 0 refused.", "dialog")
    ui.press("Close", "dialog")
    assert api.get("/feeds").json()["total_count"] == 2
    exported = ui.page.run(
        "fetch([...document.querySelectorAll('a[download]')][0].href).then((one) => one.text())"
    )
    assert f"{site.url}/a" in exported


def test_an_output_for_partners(ui: SignedInPage, api: httpx.Client, site: FeedSite) -> None:
    api.post("/feeds", json={"url": f"{site.url}/a", "name": "news"}).raise_for_status()
    ui.go("/outputs")
    ui.press("New output")
    ui.fill("name", "paid")
    ui.fill("sources", "feeds news")
    ui.press("Create output")
    ui.shows('"feeds news" is no source', "dialog")
    ui.fill("sources", "feed news")
    ui.fill("words_any", "bridge, ferry")
    ui.fill("transform", '[{"cut": "headline"}]')
    ui.fill("visibility", "token")
    ui.press("Create output")
    ui.page.wait("location.hash === '#/outputs/%2F/paid'")
    found = api.get("/outputs/paid").raise_for_status().json()
    assert found["filter"] == {"words": {"any": ["bridge", "ferry"]}}
    assert (found["transform"], found["visibility"]) == ([{"cut": "headline"}], "token")
    ui.press("Make a token")
    ui.fill("name", "Acme")
    ui.press("Make token", "dialog")
    ui.shows("/feeds/paid.atom?token=", "dialog")
    address = ui.page.run("document.querySelector('dialog .command pre').textContent")
    assert httpx.get(address).status_code == 200
    ui.press("Close", "dialog")
    ui.press("Revoke")
    ui.press("Revoke the token of Acme", "dialog")
    ui.shows("No partners yet", "main")
    assert httpx.get(address).status_code == 401
    ui.press("Delete")
    ui.fill("typed", "paid")
    ui.press("Delete the output paid", "dialog")
    ui.shows("No outputs yet", "main")
