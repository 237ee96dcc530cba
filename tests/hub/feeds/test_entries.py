"""New and changed entries become messages, each once (real server, real AMQP client)."""

from __future__ import annotations

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.hub.feeds.conftest import Client
from tests.support.feed_site import Page, rss
from tests.support.http import Callback
from tests.support.process import wait_until


def test_the_first_poll_publishes_the_first_newest_entries(client: Client) -> None:
    client.register(Page(rss("a")))
    client.bind()
    client.register(Page(rss("c", "b", "a")), first=2)
    assert client.titles() == ["b", "c"]


def test_a_new_and_a_changed_entry_are_published(client: Client) -> None:
    feed = client.register(Page(rss("b", "a")))
    client.bind(feed["name"])
    changed = rss("c", "b", "a").replace(b"About a", b"More about a")
    assert client.poll(feed, Page(changed))["published"] == 2
    [(first, older), (second, newer)] = client.messages()
    assert (older["title"], newer["title"]) == ("a", "c")
    assert older["content_html"] == "More about a"
    assert first.headers == {
        "feed": feed["name"], "entry_id": "id-a", "kind": "updated", "format": "rss",
    }  # fmt: skip
    assert second.headers["kind"] == "new"
    assert (first.content_type, first.delivery_mode) == ("application/json", 2)
    assert first.message_id != second.message_id


def test_a_new_url_publishes_what_is_new_at_it(client: Client) -> None:
    feed = client.register(Page(rss("b", "a", prefix="")))
    client.bind(feed["name"])
    client.poll(feed, Page(rss("b", "a", prefix="")))
    path = f"{client.site.url}/new/{feed['name']}"
    client.site.pages[f"/new/{feed['name']}"] = Page(rss("c", "b", "a", prefix="new-"))
    client.http.patch(f"feeds/{feed['name']}", json={"url": path}).raise_for_status()
    client.http.post(f"feeds/{feed['name']}/poll").raise_for_status()
    assert client.titles() == ["c"]  # it is the same feed at another place
    client.site.pages["/other"] = Page(rss("z", "y", prefix="", title="Another feed"))
    other = {"url": f"{client.site.url}/other"}
    client.http.patch(f"feeds/{feed['name']}", json=other).raise_for_status()
    found = client.http.post(f"feeds/{feed['name']}/poll").json()
    assert (found["title"], found["state"], client.titles()) == ("Another feed", "ok", [])


def test_polls_are_counted_by_outcome(client: Client) -> None:
    def counted() -> dict[str, float]:
        families = text_string_to_metric_families(
            httpx.get(f"{client.server.http_url}/metrics").text
        )
        return {
            one.labels.get("outcome", "entries"): one.value
            for family in families
            for one in family.samples
            if one.name.startswith("warren_feed_")
        }

    feed = client.register(Page(rss("a")))
    before = counted()
    client.poll(feed, Page(rss("b", "c", "a")))
    client.poll(feed, Page(rss("b", "c", "a")))
    client.poll(feed, Page(b"no feed"))
    after = counted()
    assert {name: after[name] - before[name] for name in after} == {
        "changed": 1, "unchanged": 1, "failed": 1, "entries": 2,
    }  # fmt: skip


def test_unchanged_entries_are_not_published(client: Client) -> None:
    feed = client.register(Page(rss("b", "a")))
    client.bind(feed["name"])
    client.poll(feed, Page(rss("b", "a"), is_conditional=False))
    client.poll(feed, Page(rss("b", "a", head="<ttl>5</ttl>")))
    dated = rss("b", "a").replace(
        b"</item>", b"<pubDate>Mon, 23 Nov 2026 10:00:00 GMT</pubDate></item>"
    )
    client.poll(feed, Page(dated))
    client.poll(feed, Page(rss("b", "a", prefix="session-7-")))
    found = client.poll(feed, Page(rss("b", "a", prefix="session-8-")))
    assert "other ids" in found["notices"][0]
    assert client.titles() == []
    client.poll(feed, Page(rss("c", "b", "a", prefix="session-9-")))
    assert client.titles() == ["c"]


def test_validators_are_sent_back_unchanged(client: Client) -> None:
    page = Page(
        rss("a"), is_conditional=False,
        headers={"ETag": '  odd"tag', "Last-Modified": "yesterday, about noon"},
    )  # fmt: skip
    feed = client.register(page)
    client.poll(feed, page)
    sent = client.site.fetched[-1].headers
    assert (sent["if-none-match"], sent["if-modified-since"]) == (
        'odd"tag',
        "yesterday, about noon",
    )
    assert "Warren (+http://" in sent["user-agent"] and "subscribers)" in sent["user-agent"]


def test_an_entry_that_changes_back_is_no_repetition(client: Client) -> None:
    feed = client.register(Page(rss("a")))
    client.bind(feed["name"])
    for text in (b"More about a", b"About a", b"More about a"):
        client.poll(feed, Page(rss("a").replace(b"About a", text)))
    found = client.messages()
    assert [item["content_html"] for _, item in found] == [
        "More about a",
        "About a",
        "More about a",
    ]
    assert len({properties.message_id for properties, _ in found}) == 3


def test_an_entry_that_disappears_and_returns_is_known(client: Client) -> None:
    feed = client.register(Page(rss("b", "a")))
    client.bind(feed["name"])
    client.poll(feed, Page(rss("b")))
    client.poll(feed, Page(rss("b", "a")))
    assert client.titles() == []


@pytest.mark.parametrize("url", ["http://example.com/{}", "http://example.com/"])
def test_entries_with_one_id_are_published_once_each(client: Client, url: str) -> None:
    """A document shows those of the last days; the oldest one leaves it as a new one comes."""

    def page(*titles: str) -> Page:
        items = "".join(
            f"<item><guid>same</guid><title>{one}</title><link>{url.format(one)}</link></item>"
            for one in titles
        )
        return Page(f"<rss version='2.0'><channel><title>N</title>{items}</channel></rss>".encode())

    feed = client.register(page("a"))
    client.bind(feed["name"])
    for titles in ("ba", "cba", "dcb", "ed", "e"):
        client.poll(feed, page(*titles))
    assert client.titles() == ["b", "c", "d", "e"]


def test_messages_of_a_feed_have_its_name_as_key(client: Client) -> None:
    one, other = client.register(Page(rss("a"))), client.register(Page(rss("a")))
    client.bind(one["name"])
    client.poll(one, Page(rss("b")))
    client.poll(other, Page(rss("c")))
    assert client.titles() == ["b"]


def test_subscribers_of_the_url_get_the_document_by_the_same_fetch(
    client: Client, callback: Callback
) -> None:
    feed = client.register(Page(rss("a")))
    hub = f"{client.server.http_url}/hub"
    form = {"hub.mode": "subscribe", "hub.topic": feed["url"], "hub.callback": callback.url}
    assert httpx.post(hub, data=form).status_code == 202
    callback.wait(1, 20.0)  # its first content
    before = len(client.site.fetched)
    client.site.pages[f"/{feed['name']}"] = Page(rss("b", "a"))
    assert httpx.post(hub, data={"hub.mode": "publish", "hub.url": feed["url"]}).is_success
    _, delivery = callback.wait(2, 20.0)
    assert delivery.body == rss("b", "a")
    wait_until(lambda: client.get(feed["name"])["published"] == 1, 20.0, "the entry")
    assert len(client.site.fetched) == before + 1
    feed = client.poll(feed, Page(b"being repaired", "text/plain"))
    assert (feed["state"], callback.wait(3, 20.0)[2].body) == ("failing", b"being repaired")


def test_a_feed_whose_owner_may_not_publish_is_not_polled(client: Client) -> None:
    api, owner = f"{client.server.http_url}/api", ("ann", "ann's secret")
    with httpx.Client(auth=("guest", "guest")) as http:
        http.put(f"{api}/users/ann", json={"password": owner[1], "tags": "management"})
        rights = {"configure": "", "write": "hub.feeds", "read": ""}
        http.put(f"{api}/permissions/%2F/ann", json=rights)
        client.site.pages["/ann"] = Page(rss("a"))
        body = {"url": f"{client.site.url}/ann", "name": "ann"}
        feed = httpx.post(f"{api}/hub/feeds", json=body, auth=owner).json()
        http.put(f"{api}/permissions/%2F/ann", json=rights | {"write": ""})
        asked = len(client.site.fetched)
        found = client.poll(feed, Page(rss("b")))
        assert found["state"] == "failing" and "may not write" in found["error"]
        assert len(client.site.fetched) == asked
        http.put(f"{api}/permissions/%2F/ann", json=rights)
        assert client.poll(feed, Page(rss("b")))["published"] == 1
        http.delete(f"{api}/users/ann")
    wait_until(
        lambda: "title" in client.get("ann") and client.get("ann")["title"] == "Not found",
        20.0,
        "the end of the feed",
    )


def test_ids_of_two_feeds_differ_in_atom(client: Client) -> None:
    """`1` is the id of an entry in many feeds, and readers of Atom know entries by it alone."""
    found = set()
    for _ in range(2):
        name = client.register(Page(rss("a")))["name"]
        atom = httpx.get(f"{client.server.http_url}/feeds/{name}.atom").text
        assert f"<id>{name}:id-a</id>" in atom
        found.add(atom)
        items = httpx.get(f"{client.server.http_url}/feeds/{name}.json").json()["items"]
        assert [item["id"] for item in items] == ["id-a"]
    assert len(found) == 2


def test_a_feed_can_not_have_the_name_of_an_output(client: Client) -> None:
    feed = client.register(Page(rss("a")))
    source = {"sources": [{"feed": feed["name"]}]}
    assert client.http.put("outputs/both", json=source).status_code == 201
    client.site.pages["/both"] = Page(rss("a"))
    body = {"url": f"{client.site.url}/both", "name": "both"}
    refused = client.http.post("feeds", json=body)
    assert (refused.status_code, refused.json()["value"]) == (409, "both")
    client.http.delete("outputs/both").raise_for_status()
    assert client.http.post("feeds", json=body).status_code == 201


def test_documents_of_a_private_feed_are_its_owners(client: Client, callback: Callback) -> None:
    feed = client.register(Page(rss("a")))
    name = feed["name"]
    document = f"{client.server.http_url}/feeds/{name}.atom"
    form = {"hub.mode": "subscribe", "hub.topic": document, "hub.callback": callback.url}
    hub = f"{client.server.http_url}/hub"
    assert httpx.post(hub, data=form).status_code == 202
    wait_until(lambda: callback.url in client.http.get("subscriptions").text, 20.0, "it")
    client.poll(feed, Page(rss("b", "a")))
    callback.wait(1, 20.0)
    changed = client.http.patch(f"feeds/{name}", json={"visibility": "private"})
    assert changed.json()["visibility"] == "private"
    wait_until(lambda: callback.denials != [], 20.0, "the end of the subscription")
    refused = httpx.get(document)
    assert (refused.status_code, "private" in refused.json()["detail"]) == (401, True)
    assert refused.headers["www-authenticate"].startswith("Basic")
    assert httpx.post(hub, data=form).status_code == 401
    found = httpx.get(document, auth=("guest", "guest"))
    assert (found.status_code, found.headers["cache-control"]) == (200, "private, max-age=60")
    secret = client.register(Page(rss("a")), visibility="private")["name"]
    assert httpx.get(f"{client.server.http_url}/feeds/{secret}.json").status_code == 401
    wrong = client.http.patch(f"feeds/{secret}", json={"visibility": "token"})
    assert (wrong.status_code, "public, private" in wrong.json()["detail"]) == (400, True)
