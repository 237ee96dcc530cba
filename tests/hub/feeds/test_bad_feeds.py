"""Servers and documents that misbehave: the poll fails with a reason, and nothing else suffers."""

from __future__ import annotations

import gzip
import hashlib
import zlib

import pytest

from tests.hub.feeds.conftest import Client
from tests.support.feed_site import Page, rss
from tests.support.times import seconds

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/rss+xml\r\n"
GZIP = {"Content-Encoding": "gzip"}
BOMB = (
    b"<!DOCTYPE r [<!ENTITY a '" + b"ha" * 100 + b"'>"
    + b"".join(b"<!ENTITY %c '%s'>" % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(8))
    + b"]><rss version='2.0'><channel><title>&i;</title></channel></rss>"
)  # fmt: skip
MEGABYTES_11 = b"<rss version='2.0'><channel>" + b"<!-- x -->" * 1_153_434 + b"</channel></rss>"

BAD = {
    "cut": (Page(raw=[HEAD + b"Content-Length: 5000\r\n\r\n" + rss("b")]), "can't be fetched"),
    "wrong length": (Page(raw=[HEAD + b"Content-Length: ten\r\n\r\n" + rss("b")]), "fetched"),
    "no http": (Page(raw=[b"220 mail.example ESMTP\r\n"]), "can't be fetched"),
    "nothing": (Page(raw=[]), "can't be fetched"),
    "empty": (Page(b""), "empty"),
    "html": (Page(b"<html><body>Gone fishing</body></html>", "text/html"), "no feed"),
    "not found": (Page(b"", "text/plain", 404), "404"),
    "broken": (Page(b"", "text/plain", 500), "500"),
    "bomb": (Page(BOMB), ""),
    "external entity": (
        Page(b"<!DOCTYPE r [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>" + rss("&a;")), "",
    ),
    "11 MB": (Page(MEGABYTES_11), "10485760 bytes"),
    "endless": (Page(raw=[HEAD + b"\r\n", rss()[:-20], *[b" " * 1_000_000] * 12]), "10485760 b"),
    "endless head": (Page(raw=[HEAD, *[b"X-A: " + b"b" * 1_000 + b"\r\n"] * 20]), "16384 bytes"),
    "moved to a script": (Page(status=301, headers={"Location": "javascript:a"}), "'javascript'"),
    "moved to a file": (Page(status=308, headers={"Location": "file:///etc/passwd"}), "'file'"),
    "gzip bomb": (Page(gzip.compress(b" " * 20_000_000), headers=GZIP), "10485760 bytes"),
    "cut gzip": (Page(gzip.compress(rss("b"))[:-20], headers=GZIP), "is truncated"),
    "no gzip": (Page(rss("b"), headers=GZIP), "can't be decoded"),
    "two codings": (
        Page(zlib.compress(gzip.compress(rss("b"))), headers={"Content-Encoding": "gzip, deflate"}),
        "Content-Encoding",
    ),
    "deep": (Page(b"<rss version='2.0'><channel>" + b"<a>" * 100_000), ""),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_answer_is_a_failure_with_a_reason(client: Client, kind: str) -> None:
    page, reason = BAD[kind]
    feed = client.register(Page(rss("a")))
    client.bind(feed["name"])
    found = client.poll(feed, page)
    assert (found["state"], found["failures"]) == ("failing", 1), found["health"]
    assert reason in found["error"] and found["error"] in found["health"]
    assert found["url"] == feed["url"]
    found = client.poll(feed, Page(rss("b", "a")))
    assert (found["state"], found["error"]) == ("ok", "")
    assert client.titles() == ["b"]


@pytest.mark.parametrize("cut_in", [b"id-a", b"About a", b"</item></channel>"])
def test_half_an_entry_waits_until_it_is_whole(client: Client, cut_in: bytes) -> None:
    feed = client.register(Page(rss("c")))
    client.bind(feed["name"])
    whole = rss("b", "a")
    etag = f'W/"{hashlib.sha256(whole).hexdigest()[:16]}"'  # the site's for the whole feed
    head = HEAD + f"ETag: {etag}\r\n\r\n".encode()
    found = client.poll(feed, Page(raw=[head + whole[: whole.index(cut_in) + 3]]))
    assert (found["state"], "ends early" in found["notices"][0]) == ("ok", True)
    assert client.titles() == ["b"]
    assert client.poll(feed, Page(whole))["notices"] == []
    assert client.titles() == ["a"]


def test_redirects_in_a_circle_end(client: Client) -> None:
    feed = client.register(Page(rss("a")))
    found = client.poll(feed, Page(status=302, headers={"Location": f"/{feed['name']}"}))
    assert "too many redirects (limit 5)" in found["error"]


@pytest.mark.parametrize(
    ("status", "moves"), [(301, True), (308, True), (302, False), (307, False)]
)
def test_a_permanent_redirect_moves_the_feed(client: Client, status: int, moves: bool) -> None:
    feed = client.register(Page(rss("a")))
    target = f"{client.site.url}/new-{status}"
    client.site.pages[f"/new-{status}"] = Page(rss("a"))
    found = client.poll(feed, Page(status=status, headers={"Location": target}))
    assert found["url"] == (target if moves else feed["url"])


def test_a_feed_that_moves_to_another_one_is_stopped(client: Client) -> None:
    feed, other = client.register(Page(rss("a"))), client.register(Page(rss("a")))
    found = client.poll(feed, Page(status=301, headers={"Location": other["url"]}))
    assert found["state"] == "gone" and f"'{other['name']}'" in found["health"]


def test_410_stops_the_feed_until_it_is_asked_for(client: Client) -> None:
    feed = client.register(Page(rss("a")))
    found = client.poll(feed, Page(status=410))
    assert (found["state"], found["next_poll_at"]) == ("gone", None)
    assert "410" in found["health"]
    assert client.poll(feed, Page(rss("a")))["state"] == "ok"


def test_a_busy_server_is_left_alone_as_long_as_it_asks(client: Client) -> None:
    feed = client.register(Page(rss("a")))
    found = client.poll(feed, Page(status=429, headers={"Retry-After": "80000"}))
    assert found["state"] == "failing" and "429" in found["error"]
    wait_s = seconds(found["next_poll_at"]) - seconds(found["checked_at"])
    assert 80_000 <= wait_s <= 88_000  # with jitter


def test_a_wrong_charset_is_a_notice(client: Client) -> None:
    feed = client.register(Page(rss("a")))
    client.bind(feed["name"])
    body = b"<?xml version='1.0' encoding='iso-8859-1'?>" + rss("caf\u00e9").decode().encode(
        "latin-1"
    )
    found = client.poll(feed, Page(body, "application/rss+xml; charset=utf-8"))
    assert found["state"] == "ok"
    assert client.titles() == ["caf\u00e9"]


def test_of_very_many_entries_the_first_thousand_count(client: Client) -> None:
    feed = client.register(Page(rss("a")))
    names = [f"n{number}" for number in range(30_000)]
    found = client.poll(feed, Page(rss(*names)))
    assert (found["entries"], found["published"]) == (1_000, 1_000)
    assert any("1000" in notice or "1,000" in notice for notice in found["notices"])
    client.poll(feed, Page(rss("a")))


def test_a_page_with_one_feed_registers_that(client: Client) -> None:
    client.site.pages["/f"] = Page(rss("a"))
    link = "<link rel=alternate type='application/rss+xml' href='{}' title='T'>"
    client.site.pages["/home"] = Page(
        f"<html><head>{link.format('/f')}</head></html>".encode(), "text/html"
    )
    answer = client.http.post("feeds", json={"url": client.site.url + "/home"})
    assert (answer.status_code, answer.json()["url"]) == (201, client.site.url + "/f")
    assert answer.json()["name"].startswith("the-news")
    again = client.http.post("feeds", json={"url": client.site.url + "/f"})
    assert (again.status_code, again.json()["feed"]) == (409, answer.json()["name"])
    several = link.format("/f") + link.format("/g")
    html = f"<html><head>{several}</head></html>".encode()
    fields = {"Link": '</h>; rel="alternate"; type="application/atom+xml"; title="H"'}
    client.site.pages["/homes"] = Page(html, "text/html", headers=fields)
    answer = client.http.post("feeds", json={"url": client.site.url + "/homes"})
    assert answer.status_code == 300
    candidates = [(one["url"], one["title"]) for one in answer.json()["candidates"]]
    url = client.site.url
    assert candidates == [(f"{url}/h", "H"), (f"{url}/f", "T"), (f"{url}/g", "T")]
