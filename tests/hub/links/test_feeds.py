from __future__ import annotations

from warrenmq.hub.links.feeds import MAX_FEEDS, NamedFeed, feeds_of_fields, find_feeds

URL = "https://example.com/news/"
ATOM, JSON = "application/atom+xml", "application/json"


def found(*links: str) -> list[NamedFeed]:
    return find_feeds(URL, "text/html", f"<head>{''.join(links)}</head><p>".encode())


def link(kind: str, href: str, more: str = "") -> str:
    return f'<link rel="alternate" type="{kind}" href="{href}" {more}>'


def test_feeds_that_a_head_names() -> None:
    assert found(
        link(f"{ATOM}; charset=utf-8", "/atom", 'title=" All  of it "'),
        link(ATOM, "/atom"),
        link(ATOM, "ftp://example.com/"),
        link("text/html", "/de", 'hreflang="de"'),
        '<base href="https://cdn.example/">',
        link("application/feed+json", "feed.json"),
    ) == [
        NamedFeed("https://example.com/atom", "All of it", ATOM),
        NamedFeed("https://cdn.example/feed.json", "", "application/feed+json"),
    ]


def test_other_json_counts_only_where_no_feed_is_named() -> None:
    data = link(JSON, "/data")
    assert [one.url for one in found(data)] == ["https://example.com/data"]
    assert [one.url for one in found(data, link(ATOM, "/a"))] == ["https://example.com/a"]


def test_feeds_that_link_fields_name() -> None:
    fields = [f'<feed>; rel="alternate home"; type="{ATOM}"; title="All, of it", </>; rel=home']
    assert feeds_of_fields(URL, fields) == [NamedFeed(f"{URL}feed", "All, of it", ATOM)]


def test_a_page_has_a_limited_number_of_feeds() -> None:
    assert len(found(*(link(ATOM, f"/{number}") for number in range(30)))) == MAX_FEEDS
