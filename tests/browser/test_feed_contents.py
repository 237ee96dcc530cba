"""What a hostile publisher writes, in a page that shows the entries of each document as is."""

from __future__ import annotations

import json
from collections.abc import Iterator

import feedparser
import httpx
import pytest

from tests.support.feed_site import FeedSite, Page
from tests.support.hostile_html import HOSTILE, TRAP
from tests.support.http import Answer, Callback
from tests.support.server import WarrenServer

from .browsers import Page as BrowserPage

ACT = """
(() => {
  for (const one of document.querySelectorAll('#entries *'))
    for (const type of ['mouseover', 'focus', 'load', 'toggle', 'play', 'error', 'begin'])
      one.dispatchEvent(new Event(type));
  addEventListener('click', (event) => {
    const link = event.target.closest('a');
    if (link && /^https?:$/.test(link.protocol)) event.preventDefault();
  });
  for (const one of document.querySelectorAll('#entries a, #entries button, #entries input'))
    one.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }));
})()
"""
AT_END = (
    "new Promise((done) => { const one = new Image(); one.onload = one.onerror = done;"
    "one.src = '/callback/end'; document.body.append(one); })"
)


@pytest.fixture
def trap() -> Iterator[Callback]:
    """The attacker's server, which also has the page of the reader."""
    with Callback() as server:
        yield server


def _contents(base: str, name: str) -> Iterator[str]:
    """The HTML of all entries, as readers find it in each format."""
    for format in ("atom", "rss"):
        document = httpx.get(f"{base}/feeds/{name}.{format}").content
        for entry in feedparser.parse(document, sanitize_html=False).entries:
            yield from (one.value for one in entry.get("content", [entry.summary_detail]))
            yield entry.title_detail.value if "html" in entry.title_detail.type else ""
    items = httpx.get(f"{base}/feeds/{name}.json").json()["items"]
    yield from (item.get("content_html", "") for item in items)


@pytest.mark.parametrize("part", [slice(0, 30), slice(30, None)], ids=["first", "others"])
def test_no_script_runs_and_no_request_leaves(
    warren: WarrenServer, page: BrowserPage, trap: Callback, part: slice
) -> None:
    entries = [one.replace(TRAP, f"{trap.url}/trap/") for one in HOSTILE[part]]
    items = [
        {"id": f"urn:{number}", "title": text, "content_html": text, "summary": text}
        for number, text in enumerate(entries)
    ]
    feed = {"version": "https://jsonfeed.org/version/1.1", "title": "x", "items": items}
    with FeedSite() as site, httpx.Client(auth=("guest", "guest")) as http:
        site.pages["/x"] = Page(json.dumps(feed).encode(), "application/feed+json")
        body = {"url": f"{site.url}/x", "name": "hostile"}
        api = f"{warren.http_url}/api/hub/feeds"
        http.post(api, json=body).raise_for_status()
        contents = list(_contents(warren.http_url, "hostile"))
        http.delete(f"{api}/hostile").raise_for_status()
    assert len(contents) >= 3 * len(entries)
    shown = "".join(f"<div>{one}</div>\n" for one in contents)
    html = f"<!doctype html><meta charset=utf-8><div id=entries>{shown}</div>"
    trap.default = Answer(headers={"Content-Type": "text/html"}, body=html.encode())
    page.open(trap.url)
    page.run(ACT)
    page.run(AT_END)
    assert page.run("[globalThis.ran ?? null, location.href]") == [None, trap.url]
    assert page.run("document.styleSheets.length") == 0
    assert [one.raw_path for one in trap.requests if "trap" in one.raw_path] == []
