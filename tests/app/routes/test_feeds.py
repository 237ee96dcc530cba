"""Outputs on a real server: what they collect, their documents, their readers and subscribers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import feedparser
import httpx
import pytest

from tests.hub.formats.rules import CHECKS
from tests.support.feed_site import FeedSite, Page
from tests.support.http import Callback
from tests.support.postgresql import PostgreSQLServer
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from warrenmq.hub.outputs.sources import MARKS
from warrenmq.hub.pipeline.jobs.job import RESULTS
from warrenmq.hub.pipeline.jobs.near_duplicates import NAME as NEAR_DUPLICATES

GUEST = ("guest", "guest")
FORMATS = {
    "atom": "application/atom+xml; charset=utf-8",
    "rss": "application/rss+xml; charset=utf-8",
    "json": "application/feed+json; charset=utf-8",
}
NEWS = {"sources": [{"exchange": "news"}]}


def check_document(response: httpx.Response) -> None:
    """Asserts that a document keeps the rules of its format."""
    path, _, extension = response.url.path.rpartition(".")
    is_document = "/feeds/" in path and extension in CHECKS
    if is_document and (response.request.method, response.status_code) == ("GET", 200):
        CHECKS[extension](response.read())


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    """A client that checks all documents that it gets."""
    hooks = {"response": [check_document]}
    with httpx.Client(
        base_url=warren.http_url, auth=GUEST, timeout=60, event_hooks=hooks
    ) as client:
        done = client.put("/endpoint/x/news", params={"amqp.exchange_type": "topic"})
        assert done.status_code in (201, 204)
        yield client
        for one in client.get("/api/hub/outputs").json()["items"]:
            place = {"vhost": one["vhost"]}
            client.delete(f"/api/hub/outputs/{one['name']}", params=place).raise_for_status()


def define(http: httpx.Client, name: str, **definition: Any) -> httpx.Response:
    done = http.put(f"/api/hub/outputs/{name}", json=definition)
    assert done.status_code in (201, 204), done.text
    return done


def publish(http: httpx.Client, key: str, title: str, **members: Any) -> None:
    item = {"id": f"urn:{title}", "title": title, "content_text": title, **members}
    done = http.post("/endpoint/x/news", params={"hub.topic": key}, json=item)
    assert done.status_code == 202


def titles(http: httpx.Client, name: str) -> list[str]:
    """The titles of the document in JSON, the oldest first."""
    items = http.get(f"/feeds/{name}.json").raise_for_status().json()["items"]
    return [item["title"] for item in reversed(items)]


def wait_for(found: Callable[[], object], expected: object) -> None:
    try:
        wait_until(lambda: found() == expected, 30, str(expected))
    except TimeoutError as error:
        error.add_note(f"found: {found()}")
        raise


def test_messages_become_documents_in_three_formats(
    warren: WarrenServer, http: httpx.Client
) -> None:
    define(http, "eu", sources=[{"exchange": "news", "routing_key": "eu.#"}], title="Europe")
    publish(http, "eu.de", "one")
    publish(http, "us", "other")
    publish(http, "eu.fr", "two", tags=["France"])
    wait_for(lambda: titles(http, "eu"), ["one", "two"])
    for extension, media_type in FORMATS.items():
        url = f"{warren.http_url}/feeds/eu.{extension}"
        found = httpx.get(url)  # without credentials
        check_document(found)
        assert (found.status_code, found.headers["content-type"]) == (200, media_type)
        assert found.headers["cache-control"] == "public, max-age=60"
        assert found.links["hub"]["url"] == f"{warren.http_url}/hub"
        assert found.links["self"]["url"] == url
        if extension == "json":
            document = found.json()
            assert document["feed_url"] == url
            assert document["hubs"] == [{"type": "WebSub", "url": f"{warren.http_url}/hub"}]
        else:
            parsed = feedparser.parse(found.content)
            assert not parsed.bozo
            assert parsed.feed.title == "Europe"
            assert [(one.id, one.title) for one in parsed.entries] == [
                ("urn:two", "two"), ("urn:one", "one"),
            ]  # fmt: skip
            links = {one.rel: one.href for one in parsed.feed.links}
            assert (links["self"], links["hub"]) == (url, f"{warren.http_url}/hub")


def test_unchanged_documents_are_not_sent_again(http: httpx.Client) -> None:
    define(http, "all", **NEWS)
    publish(http, "a", "one")
    wait_for(lambda: titles(http, "all"), ["one"])
    first = http.get("/feeds/all.atom")
    etag = first.headers["etag"]
    for known in (etag, f'W/{etag}, "x"', "*"):
        again = http.get("/feeds/all.atom", headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    head = http.head("/feeds/all.atom")
    assert (head.content, head.headers["content-length"]) == (b"", str(len(first.content)))
    wait_until(lambda: "last-modified" in http.get("/feeds/all.atom").headers, 10, "a second")
    since = http.get("/feeds/all.atom").headers["last-modified"]
    early, no_date = "Thu, 01 Jan 2026 00:00:00 GMT", "yesterday"
    for given, status in ((since, 304), (early, 200), (no_date, 200)):
        found = http.get("/feeds/all.atom", headers={"If-Modified-Since": given})
        assert found.status_code == status
    publish(http, "a", "two")
    wait_for(lambda: titles(http, "all"), ["one", "two"])
    changed = http.get("/feeds/all.atom", headers={"If-None-Match": etag})
    assert (changed.status_code, changed.headers["etag"] != etag) == (200, True)


def test_older_items_are_on_further_pages(http: httpx.Client) -> None:
    define(http, "all", **NEWS)
    for number in range(60):
        publish(http, "a", f"item {number}")
    wait_for(lambda: titles(http, "all")[-1:], ["item 59"])
    first = http.get("/feeds/all.json")
    older = first.links["next"]["url"]
    assert (first.json()["next_url"], len(first.json()["items"])) == (older, 50)
    second = http.get(older).json()
    assert [one["title"] for one in second["items"]] == [f"item {9 - one}" for one in range(10)]
    assert "next_url" not in second
    for wrong in ("x", "-1", str(2**63)):
        assert http.get("/feeds/all.json", params={"before": wrong}).status_code == 400
    assert http.get("/feeds/all.json", params={"befor": "1"}).status_code == 400


def test_large_items_are_on_pages_of_their_own(http: httpx.Client) -> None:
    define(http, "all", **NEWS)
    for title in ("one", "two", "three"):
        publish(http, "a", title, content_html="<" * 5_000_000)
    wait_for(lambda: titles(http, "all"), ["three"])
    older = http.get("/feeds/all.json").links["next"]["url"]
    assert [item["title"] for item in http.get(older).json()["items"]] == ["two"]
    assert http.get("/feeds/all.atom").status_code == 200


def test_an_item_that_can_not_be_written_keeps_no_other_from_readers(http: httpx.Client) -> None:
    """Each of its characters becomes five."""
    define(http, "all", **NEWS)
    kept = "<p>Kept.</p>"
    publish(http, "a", "one", content_html=kept)
    publish(http, "a", "two", content_html="&" * 7_000_000)
    wait_for(lambda: titles(http, "all"), ["one", "two"])
    for extension in ("atom", "rss"):
        found = http.get(f"/feeds/all.{extension}").raise_for_status()
        entries = feedparser.parse(found.content).entries
        assert [(one.title, one.summary) for one in entries] == [("two", ""), ("one", kept)]


def test_filters_and_transforms(http: httpx.Client) -> None:
    define(
        http, "sport",
        sources=[{"exchange": "news"}],
        filter={"categories": {"any": ["sports"]}, "words": {"none": ["chess"]}},
        transform=[
            {"cut": "headline and first paragraph"},
            {"title": "{feed}: {title}"},
            {"rename": {"categories": {"Sports": "Sport"}}},
        ],
    )  # fmt: skip
    publish(http, "a", "Goal", tags=["Sports"], content_html="<p>In.</p><p>Out.</p>")
    publish(http, "a", "Chess match", tags=["Sports"])
    publish(http, "a", "Rain", tags=["Weather"])
    publish(http, "a", "End", tags=["Sports"])
    wait_for(lambda: titles(http, "sport"), ["news: Goal", "news: End"])
    item = http.get("/feeds/sport.json").json()["items"][1]
    assert (item["content_html"], item["tags"]) == ("<p>In.</p>", ["Sport"])


def test_old_items_leave_the_document(http: httpx.Client) -> None:
    define(http, "young", **NEWS, filter={"max_age_s": 3_600})
    publish(http, "a", "undated")
    publish(http, "a", "old", date_published="2020-01-01T00:00:00Z")
    publish(http, "a", "future", date_published="2999-01-01T00:00:00Z")
    wait_for(lambda: titles(http, "young"), ["undated", "future"])
    before = http.get("/feeds/young.json")
    assert "sandbox" in before.headers["content-security-policy"]
    define(http, "young", **NEWS, filter={"max_age_s": 8})
    wait_for(lambda: titles(http, "young"), ["future"])
    known = {"If-None-Match": before.headers["etag"]}
    assert http.get("/feeds/young.json", headers=known).status_code == 200


def test_changed_sources_lose_nothing(http: httpx.Client) -> None:
    for name in ("one", "two"):
        http.put(f"/endpoint/x/{name}").raise_for_status()

    def post(exchange: str, text: str) -> None:
        http.post(f"/endpoint/x/{exchange}", content=text).raise_for_status()

    def texts() -> list[str]:
        items = http.get("/feeds/all.json").json()["items"]
        return [item["content_text"] for item in reversed(items)]

    assert define(http, "all", sources=[{"exchange": "one"}]).status_code == 201
    post("one", "a")
    post("two", "not yet")
    assert define(http, "all", sources=[{"exchange": "two"}]).status_code == 204
    post("one", "not any more")
    post("two", "b")
    wait_for(texts, ["a", "b"])
    http.delete("/endpoint/x/two").raise_for_status()
    problem = http.get("/api/hub/outputs/all").json()["sources"][0]["problem"]
    for search, count in (("AL", 1), ("nothing", 0)):
        listed = http.get("/api/hub/outputs", params={"search": search}).json()
        assert len(listed["items"]) == count
    assert problem == "no exchange 'two' in vhost '/'"
    http.put("/endpoint/x/two").raise_for_status()
    post("two", "c")
    wait_for(texts, ["a", "b", "c"])


def test_a_stream_is_read_from_where_it_was_left(warren: WarrenServer, http: httpx.Client) -> None:
    arguments = {"arg.x-queue-type": "stream"}
    http.put("/endpoint/q/log", params=arguments).raise_for_status()

    def post(text: str) -> None:
        http.post("/endpoint/q/log", content=text).raise_for_status()

    def texts() -> list[str]:
        items = http.get("/feeds/log.json").json()["items"]
        return [item["content_text"] for item in reversed(items)]

    post("a")
    define(http, "log", sources=[{"stream": "log"}])
    wait_for(texts, ["a"])
    post("b")
    wait_for(texts, ["a", "b"])
    warren.kill()
    warren.start()
    post("c")
    wait_for(texts, ["a", "b", "c"])


def test_an_output_begins_with_the_newest_items_of_its_feeds(http: httpx.Client) -> None:
    entry = "<item><title>{0}</title><pubDate>{0} Nov 2026 08:00:00 GMT</pubDate></item>"
    with FeedSite() as site:
        for feed, days in (("a", (5, 2, 1)), ("b", (4, 3))):
            items = "".join(map(entry.format, days))
            site.pages[f"/{feed}"] = Page(f"<rss><channel>{items}</channel></rss>".encode())
            registered = {"url": f"{site.url}/{feed}", "name": feed}
            http.post("/api/hub/feeds", json=registered).raise_for_status()
        wanted = {"filter": {"words": {"none": ["1"]}}, "transform": [{"title": "{feed}{title}"}]}
        define(http, "all", sources=[{"feed": "a"}], **wanted)
        assert titles(http, "all") == ["a2", "a5"]
        define(http, "all", sources=[{"feed": "a"}, {"feed": "b"}], **wanted)
        assert titles(http, "all") == ["a2", "a5", "b3", "b4"]
        define(http, "both", sources=[{"feed": "b"}, {"feed": "a"}], **wanted)
        assert titles(http, "both") == ["a2", "b3", "b4", "a5"]
        for feed in ("a", "b"):
            http.delete(f"/api/hub/feeds/{feed}").raise_for_status()


def test_an_exchange_that_keeps_messages_is_read_from_these_once(http: httpx.Client) -> None:
    kept = {"type": "fanout", "durable": True, "arguments": {"x-persist-messages": 2}}
    http.put("/api/exchanges/%2F/kept", json=kept).raise_for_status()

    def post(text: str) -> None:
        http.post("/endpoint/x/kept", content=text).raise_for_status()

    def texts() -> list[str]:
        items = http.get("/feeds/log.json").json()["items"]
        return [item["content_text"] for item in reversed(items)]

    for text in "abc":
        post(text)
    define(http, "log", sources=[{"exchange": "kept"}])
    wait_for(texts, ["b", "c"])
    define(http, "log", **NEWS)
    post("d")
    define(http, "log", sources=[{"exchange": "kept"}])
    wait_for(texts, ["b", "c", "d"])


def test_each_message_is_one_item_over_a_kill(warren: WarrenServer, http: httpx.Client) -> None:
    define(http, "all", **NEWS)
    for number in range(40):
        publish(http, "a", f"item {number}")
        if number in (10, 25):
            warren.kill()
            warren.start()
    expected = [f"item {number}" for number in range(40)]
    wait_for(lambda: titles(http, "all"), expected)


def test_near_duplicates_are_dropped_when_a_run_has_marked_them(http: httpx.Client) -> None:
    for exchange in ("hub.pipeline", "sport"):
        http.put(f"/endpoint/x/{exchange}", params={"amqp.exchange_type": "topic"})
    sources = [{"exchange": "news"}, {"exchange": "sport"}]
    define(http, "all", sources=sources, filter={"drop_near_duplicates": True})

    def add(number: str, title: str, exchange: str = "news") -> None:
        item = {"id": number, "title": title}
        http.post(f"/endpoint/x/{exchange}", json=item).raise_for_status()

    def mark(first: str, second: str) -> None:
        pair = {
            "first": first, "first_exchange": "news", "first_routing_key": "",
            "second": second, "second_exchange": "news", "second_routing_key": "",
            "similarity": 0.9,
        }  # fmt: skip
        topic = {"hub.topic": "near-duplicates"}
        http.post("/endpoint/x/hub.pipeline", params=topic, json=pair).raise_for_status()

    add("1", "one")
    add("2", "one again")
    add("2", "goal", "sport")
    wait_for(lambda: titles(http, "all"), ["one", "one again", "goal"])
    mark("1", "2")
    wait_for(lambda: titles(http, "all"), ["one", "goal"])
    mark("1", "3")
    mark("0", "4")  # its first is no item here
    mark("1", "urn:5")  # the item of this id is one of another exchange
    add("3", "one once more")
    add("4", "two")
    add("urn:5", "another goal", "sport")
    wait_for(lambda: titles(http, "all"), ["one", "goal", "two", "another goal"])
    mark("1", "urn:5")
    add("5", "three")
    wait_for(lambda: titles(http, "all"), ["one", "goal", "two", "another goal", "three"])


def test_the_names_of_the_pipeline() -> None:
    assert MARKS == (RESULTS, NEAR_DUPLICATES)


def test_outputs_are_validated_and_belong_to_their_user(http: httpx.Client) -> None:
    refused = http.put("/api/hub/outputs/no", json={"sources": [{"exchange": "none"}]})
    assert (refused.status_code, refused.json()["field"]) == (404, "sources[0]")
    refused = http.put("/api/hub/outputs/no", json={"sources": []})
    assert (refused.status_code, refused.json()["limit"]) == (400, "list of length >= 1")
    assert http.put("/api/hub/outputs/a%20b", json=NEWS).status_code == 400
    define(http, "all", **NEWS)
    http.put("/api/users/ann", json={"password": "a long password", "tags": "management"})
    rights = {"configure": "", "write": "", "read": ".*"}
    http.put("/api/permissions/%2F/ann", json=rights).raise_for_status()
    ann = ("ann", "a long password")
    taken = http.put("/api/hub/outputs/all", json=NEWS, auth=ann)
    assert (taken.status_code, taken.json()["title"]) == (403, "Not the owner")
    assert http.get("/api/hub/outputs/all", auth=ann).status_code == 404
    assert http.put("/api/hub/outputs/anns", json=NEWS, auth=ann).status_code == 201
    publish(http, "a", "one")
    wait_for(lambda: titles(http, "anns"), ["one"])
    http.put("/api/permissions/%2F/ann", json={**rights, "read": "other"}).raise_for_status()
    wait_for(
        lambda: http.get("/api/hub/outputs/anns").json()["sources"][0]["problem"],
        "its owner may not read exchange 'news' in vhost '/'",
    )
    publish(http, "a", "two")
    wait_for(lambda: titles(http, "all")[-1:], ["two"])
    http.put("/api/permissions/%2F/ann", json=rights).raise_for_status()
    wait_for(lambda: http.get("/api/hub/outputs/anns").json()["sources"][0]["problem"], None)
    publish(http, "a", "three")
    wait_for(lambda: titles(http, "anns")[-1:], ["three"])
    assert titles(http, "anns") == ["one", "three"]
    http.put("/endpoint/q/ann-log", params={"arg.x-queue-type": "stream"}).raise_for_status()
    wanted = {"sources": [{"stream": "ann-log"}]}
    assert http.put("/api/hub/outputs/anns", json=wanted, auth=ann).status_code == 204
    http.put("/api/permissions/%2F/ann", json={**rights, "read": "other"}).raise_for_status()
    problem = "its owner may not read queue 'ann-log' in vhost '/'"
    wait_for(lambda: http.get("/api/hub/outputs/anns").json()["sources"][0]["problem"], problem)
    http.delete("/api/users/ann").raise_for_status()
    wait_for(lambda: http.get("/feeds/anns.atom").status_code, 410)


def test_removed_and_unknown_outputs(http: httpx.Client) -> None:
    missing = http.get("/feeds/nobody.atom")
    assert (missing.status_code, missing.json()["title"]) == (404, "Not found")
    assert http.get("/feeds/nobody.xml").status_code == 404
    assert http.post("/feeds/nobody.atom").status_code == 405
    define(http, "short", **NEWS)
    assert http.get("/feeds/short.atom").status_code == 200
    assert http.delete("/api/hub/outputs/short").status_code == 204
    gone = http.get("/feeds/short.atom")
    assert (gone.status_code, gone.json()["title"]) == (410, "Gone")
    assert http.delete("/api/hub/outputs/short").status_code == 404
    define(http, "short", **NEWS)
    assert titles(http, "short") == []


def test_outputs_of_another_virtual_host(http: httpx.Client) -> None:
    http.put("/api/vhosts/a%2Fb").raise_for_status()
    http.put(
        "/api/permissions/a%2Fb/guest", json=dict.fromkeys(("configure", "write", "read"), ".*")
    )
    http.put("/a%2Fb/endpoint/x/news").raise_for_status()
    made = http.put("/api/hub/outputs/far?vhost=a/b", json=NEWS)
    assert made.status_code == 201
    http.post("/a%2Fb/endpoint/x/news", content="x").raise_for_status()
    found = http.get("/api/hub/outputs/far?vhost=a/b").json()
    assert re.fullmatch(r"http://.*/a%2Fb/feeds/far\.atom", found["documents"]["atom"])
    wait_for(lambda: len(httpx.get(found["documents"]["json"]).json()["items"]), 1)
    assert http.get("/feeds/far.atom").status_code == 404
    page = http.get("/api/hub/outputs", params={"vhost": "a/b", "page_size": 1}).json()
    assert (page["total_count"], page["items"][0]["vhost"]) == (1, "a/b")
    http.delete("/api/vhosts/a%2Fb").raise_for_status()
    wait_for(lambda: httpx.get(found["documents"]["json"]).status_code, 410)


@pytest.mark.parametrize("extension", FORMATS)
def test_a_document_with_a_token_names_pages_that_it_opens(
    extension: str, warren: WarrenServer, http: httpx.Client
) -> None:
    define(http, "paid", **NEWS, visibility="token")
    for number in range(60):
        publish(http, "a", f"item {number}")
    wait_for(lambda: titles(http, "paid")[-1:], ["item 59"])
    made = http.post("/api/hub/outputs/paid/tokens", json={"name": "Acme"}).json()
    url = made["documents"][extension]
    first = httpx.get(url)
    parsed = own_links(first)
    assert (parsed["self"], parsed["next"]) == (url, first.links["next"]["url"])
    second = httpx.get(parsed["next"])
    assert (second.status_code, own_links(second)) == (200, {"self": parsed["next"]})
    plain = f"{warren.http_url}/feeds/paid.{extension}"
    bearer = {"Authorization": f"Bearer {made['token']}"}
    found = own_links(httpx.get(plain, headers=bearer))
    assert found["self"] == plain
    third = httpx.get(found["next"], headers=bearer)
    assert (third.status_code, own_links(third)) == (200, {"self": found["next"]})
    assert third.headers["etag"] == second.headers["etag"]


def own_links(document: httpx.Response) -> dict[str, str]:
    """The URLs that a document has of itself and of older items."""
    if "json" in document.headers["content-type"]:
        members = document.json()
        found = {"self": members["feed_url"], "next": members.get("next_url")}
        return {relation: url for relation, url in found.items() if url}
    links = feedparser.parse(document.content).feed.links
    return {one.rel: one.href for one in links if one.rel in ("self", "next")}


def test_a_token_of_an_output_that_is_removed_meanwhile(
    warren: WarrenServer, http: httpx.Client
) -> None:
    define(http, "brief", **NEWS, visibility="token")

    def body() -> Iterator[bytes]:
        yield b'{"name":'
        with httpx.Client(base_url=warren.http_url, auth=http.auth) as other:
            other.delete("/api/hub/outputs/brief").raise_for_status()
        yield b'"Acme"}'

    refused = http.post("/api/hub/outputs/brief/tokens", content=body())
    assert (refused.status_code, "removed" in refused.text) == (404, True)


def test_tokens_of_partners(warren: WarrenServer, http: httpx.Client) -> None:
    define(http, "paid", **NEWS, visibility="token")
    made = http.post("/api/hub/outputs/paid/tokens", json={"name": "Acme"})
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    token, url = made.json()["token"], made.json()["documents"]["atom"]
    assert url == f"{warren.http_url}/feeds/paid.atom?token={token}"
    found = httpx.get(url)
    assert (found.status_code, found.links["self"]["url"]) == (200, url)
    assert found.headers["cache-control"].startswith("private")
    plain = f"{warren.http_url}/feeds/paid.atom"
    bearer = {"Authorization": f"Bearer {token}"}
    assert httpx.get(plain, headers=bearer).status_code == 200
    assert http.get(plain).status_code == 200  # its owner
    assert http.get(plain, auth=("guest", "wrong")).status_code == 401
    for refused in (httpx.get(plain), httpx.get(plain, params={"token": "x"})):
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")
    (listed,) = http.get("/api/hub/outputs/paid/tokens").json()
    assert (listed["name"], "token" in listed) == ("Acme", False)
    define(http, "other", **NEWS, visibility="token")
    assert httpx.get(f"{warren.http_url}/feeds/other.atom?token={token}").status_code == 401
    warren.restart()
    etag = {"If-None-Match": found.headers["etag"]}
    assert httpx.get(url, headers=etag).status_code == 304
    revoked = http.delete(f"/api/hub/outputs/paid/tokens/{listed['id']}")
    assert (revoked.status_code, httpx.get(url).status_code) == (204, 401)
    assert http.delete(f"/api/hub/outputs/paid/tokens/{listed['id']}").status_code == 404
    stored = b"".join(path.read_bytes() for path in warren.data.rglob("*") if path.is_file())
    assert token.encode() not in stored and token not in warren.output()


def subscribe(http: httpx.Client, url: str, callback: Callback, **fields: str) -> int:
    form = {"hub.mode": "subscribe", "hub.topic": url, "hub.callback": callback.url, **fields}
    return httpx.post(f"{http.base_url}/hub", data=form).status_code


def wait_subscribed(http: httpx.Client, count: int) -> None:
    wait_for(lambda: len(http.get("/api/hub/subscriptions").json()["subscriptions"]), count)


def test_a_changed_document_is_pushed(
    warren: WarrenServer, http: httpx.Client, callback: Callback
) -> None:
    define(http, "all", **NEWS)
    url = f"{warren.http_url}/feeds/all.atom"
    assert subscribe(http, url, callback, **{"hub.secret": "s" * 20}) == 202
    wait_subscribed(http, 1)
    publish(http, "a", "one")
    (delivery,) = callback.wait(1)
    assert delivery.body == httpx.get(url).content
    assert delivery.headers["Content-Type"] == FORMATS["atom"]
    assert f'<{url}>; rel="self"' in delivery.headers["Link"]
    assert "X-Hub-Signature" in delivery.headers
    assert callback.verifications[0].query["hub.topic"] == url
    warren.kill()
    warren.start()
    publish(http, "a", "two")
    # A delivery may be repeated over a kill.
    wait_for(lambda: feedparser.parse(callback.deliveries[-1].body).entries[0].title, "two")
    http.delete("/api/hub/outputs/all").raise_for_status()
    wait_until(lambda: callback.denials != [], 10, "the end of the subscription")
    wait_subscribed(http, 0)


def test_new_entries_alone_are_pushed(
    warren: WarrenServer, http: httpx.Client, callback: Callback
) -> None:
    define(http, "all", **NEWS)
    url = f"{warren.http_url}/feeds/all.json"
    assert subscribe(http, url, callback, **{"hub.content": "new"}) == 202
    wait_subscribed(http, 1)
    for number, title in enumerate(("one", "two"), 1):
        publish(http, "a", title)
        news = callback.wait(number)[-1].body
        CHECKS["json"](news)
        items = json.loads(news)["items"]
        assert [item["title"] for item in items] == [title]


def test_a_subscription_ends_with_its_token(
    warren: WarrenServer, http: httpx.Client, callback: Callback
) -> None:
    define(http, "paid", **NEWS, visibility="token")
    plain = f"{warren.http_url}/feeds/paid.rss"
    assert subscribe(http, plain, callback) == 401
    assert subscribe(http, f"{plain}?token=x", callback) == 401
    made = http.post("/api/hub/outputs/paid/tokens", json={"name": "Acme"}).json()
    assert subscribe(http, made["documents"]["rss"], callback) == 202
    wait_subscribed(http, 1)
    publish(http, "a", "one")
    callback.wait(1)
    warren.restart()
    publish(http, "a", "two")
    callback.wait(2)
    stored = b"".join(path.read_bytes() for path in warren.data.rglob("*") if path.is_file())
    assert made["token"].encode() not in stored and made["token"] not in warren.output()
    http.delete(f"/api/hub/outputs/paid/tokens/{made['id']}").raise_for_status()
    wait_until(lambda: callback.denials != [], 10, "the end of the subscription")
    wait_subscribed(http, 0)


def test_subscriptions_to_missing_and_restricted_documents_are_refused(
    warren: WarrenServer, http: httpx.Client, callback: Callback
) -> None:
    define(http, "all", **NEWS)
    url = f"{warren.http_url}/feeds"
    assert subscribe(http, f"{url}/none.atom", callback) == 404
    assert subscribe(http, f"{url}/all.atom?before=3", callback) == 404
    assert subscribe(http, f"{url}/all.xml", callback) == 404
    define(http, "paid", **NEWS, visibility="token")
    http.put("/api/users/eve", json={"password": "a long password", "tags": "management"})
    rights = dict.fromkeys(("configure", "write", "read"), ".*")
    http.put("/api/permissions/%2F/eve", json=rights).raise_for_status()
    entry = {
        "vhost": "/", "resource_type": "exchange", "resource_name": "hub.topics",
        "callback": callback.url, "topic": "/feeds/paid.atom", "topic_url": f"{url}/paid.atom",
    }  # fmt: skip
    eve = ("eve", "a long password")
    assert http.post("/api/hub/subscriptions", json=entry, auth=eve).status_code == 401
    http.post("/api/hub/subscriptions", json=entry).raise_for_status()  # the owner
    wait_subscribed(http, 1)


def test_a_feed_can_not_replace_the_items_of_another(http: httpx.Client) -> None:
    def publish(feed: str, *items: tuple[str, str]) -> None:
        entries = [
            f"<item><guid>{guid}</guid><title>{title}</title></item>" for guid, title in items
        ]
        site.pages[f"/{feed}"] = Page(f"<rss><channel>{''.join(entries)}</channel></rss>".encode())
        http.post(f"/api/hub/feeds/{feed}/poll").raise_for_status()

    with FeedSite() as site:
        for feed in ("a", "b"):
            site.pages[f"/{feed}"] = Page(b"<rss><channel><title>Site</title></channel></rss>")
            registered = {"url": f"{site.url}/{feed}", "name": feed}
            http.post("/api/hub/feeds", json=registered).raise_for_status()
        define(http, "all", sources=[{"feed": "a"}, {"feed": "b"}])
        publish("a", ("urn:1", "one"))
        wait_for(lambda: titles(http, "all"), ["one"])
        publish("b", ("urn:2", "two"), ("urn:1", "one"))  # shown once
        wait_for(lambda: titles(http, "all"), ["one", "two"])
        publish("b", ("urn:1", "spam"))
        wait_for(lambda: titles(http, "all"), ["one", "two", "spam"])
        publish("a", ("urn:1", "one, corrected"))
        wait_for(lambda: titles(http, "all"), ["two", "spam", "one, corrected"])
        for extension in ("atom", "rss"):
            found = feedparser.parse(http.get(f"/feeds/all.{extension}").content).entries
            ids = {entry.title: entry.id for entry in found}
            assert (ids["one, corrected"], ids["two"]) == ("urn:1", "urn:2")
            assert len(set(ids.values())) == len(found) == 3
        publish("b", ("urn:1", "one, corrected"))
        wait_for(lambda: titles(http, "all"), ["two", "one, corrected"])
        publish("b", ("urn:3", "guessed"))
        wait_for(lambda: titles(http, "all"), ["two", "one, corrected", "guessed"])
        publish("a", ("urn:3", "three"))
        wait_for(lambda: titles(http, "all"), ["two", "one, corrected", "guessed", "three"])
        for feed in ("a", "b"):
            http.delete(f"/api/hub/feeds/{feed}").raise_for_status()


def test_the_documents_of_a_feed(
    warren: WarrenServer, http: httpx.Client, callback: Callback
) -> None:
    entry = "<item><guid>urn:{0}</guid><title>{0}</title></item>"

    def page(*names: str) -> Page:
        items = "".join(entry.format(name) for name in names)
        return Page(f"<rss><channel><title>Site</title>{items}</channel></rss>".encode())

    with FeedSite() as site:
        site.pages["/feed"] = page("one")
        registered = {"url": f"{site.url}/feed", "name": "site"}
        http.post("/api/hub/feeds", json=registered).raise_for_status()
        assert titles(http, "site") == ["one"]
        [undated] = feedparser.parse(http.get("/feeds/site.atom").content).entries
        found = http.get("/api/hub/feeds/site").json()
        assert undated.updated[:19] >= found["registered_at"][:19]
        assert "1970" not in http.get("/feeds/site.rss").text
        taken = http.put("/api/hub/outputs/site", json=NEWS)
        assert (taken.status_code, taken.json()["title"]) == (409, "Name taken")
        define(http, "copy", sources=[{"feed": "site"}])
        assert titles(http, "copy") == ["one"]
        assert subscribe(http, f"{warren.http_url}/feeds/site.rss", callback) == 202
        wait_subscribed(http, 1)
        site.pages["/feed"] = page("two", "one")
        http.post("/api/hub/feeds/site/poll").raise_for_status()
        (delivery,) = callback.wait(1)
        CHECKS["rss"](delivery.body)
        parsed = feedparser.parse(delivery.body)
        assert (parsed.feed.title, [one.title for one in parsed.entries]) == (
            "Site",
            ["two", "one"],
        )
        wait_for(lambda: titles(http, "copy"), ["one", "two"])
        http.delete("/api/hub/feeds/site").raise_for_status()
        wait_subscribed(http, 0)
        wait_for(lambda: http.get("/feeds/site.rss").status_code, 410)
        problem = http.get("/api/hub/outputs/copy").json()["sources"][0]["problem"]
        assert problem == "no feed 'site' in vhost '/'"


def test_messages_wait_while_the_database_is_lost(
    postgresql: PostgreSQLServer, postgresql_url: str
) -> None:
    with (
        WarrenServer(env={"WARREN_DATABASE": postgresql_url}) as server,
        httpx.Client(base_url=server.http_url, auth=GUEST, timeout=60) as http,
    ):
        http.put("/endpoint/x/news").raise_for_status()
        define(http, "all", **NEWS)
        publish(http, "", "one")
        wait_for(lambda: titles(http, "all"), ["one"])
        postgresql.sql("ALTER TABLE feed_items RENAME TO lost", postgresql_url)
        publish(http, "", "two")
        publish(http, "", "three")

        def notice() -> str:
            return str(http.get("/api/hub/outputs/all").json()["notice"])

        wait_until(lambda: "messages wait" in notice(), 20, "the notice")
        postgresql.sql("ALTER TABLE lost RENAME TO feed_items", postgresql_url)
        wait_for(lambda: titles(http, "all"), ["one", "two", "three"])
        assert notice() == ""
