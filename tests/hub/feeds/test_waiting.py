"""What this side can't publish or store waits, is said in the feed's health, and comes once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial

import httpx
import pika
import pytest

from tests.hub.feeds.conftest import Client
from tests.support.feed_site import FeedSite, Page, rss
from tests.support.http import Callback
from tests.support.postgresql import PostgreSQLServer, missing
from tests.support.process import wait_until
from tests.support.server import WarrenServer

REFUSING = {"x-max-length": 1, "x-overflow": "reject-publish"}
SMALL = 20_000


def declare_refusing(client: Client, key: str) -> None:
    """Binds the client's queue, which has no room for two messages."""
    with pika.BlockingConnection(pika.URLParameters(client.server.amqp_url)) as connection:
        channel = connection.channel()
        channel.queue_declare(client.queue, arguments=REFUSING)
        channel.queue_bind(client.queue, "hub.feeds", key)


def rebind(client: Client, key: str) -> None:
    """Puts a queue in its place that takes everything."""
    with pika.BlockingConnection(pika.URLParameters(client.server.amqp_url)) as connection:
        connection.channel().queue_delete(client.queue)
    client.bind(key)


def test_a_queue_that_refuses_is_named_until_it_takes_the_entries(client: Client) -> None:
    feed = client.register(Page(rss("a")))
    name = feed["name"]
    declare_refusing(client, name)
    client.site.pages[f"/{name}"] = Page(rss("c", "b", "a"))
    client.http.post(f"feeds/{name}/pause")
    client.http.post(f"feeds/{name}/resume")  # it is due now
    wait_until(lambda: client.get(name)["state"] == "failing", 20.0, "the refusal")
    found = client.get(name)
    assert client.queue in found["health"] and "again in" in found["health"], found["health"]
    rebind(client, name)
    assert client.poll(feed, Page(rss("d", "c", "b", "a")))["state"] == "ok"
    assert client.titles() == ["b", "c", "d"]


def test_documents_are_pushed_though_a_queue_refuses_the_message(
    client: Client, callback: Callback
) -> None:
    feed = client.register(Page(rss("a")))
    name = feed["name"]
    document = f"{client.server.http_url}/feeds/{name}.json"
    form = {"hub.mode": "subscribe", "hub.topic": document, "hub.callback": callback.url}
    httpx.post(f"{client.server.http_url}/hub", data=form).raise_for_status()
    wait_until(lambda: callback.url in client.http.get("subscriptions").text, 20.0, "it")
    declare_refusing(client, name)
    client.site.pages[f"/{name}"] = Page(rss("c", "b", "a"))
    assert client.http.post(f"feeds/{name}/poll").status_code == 503
    (delivery,) = callback.wait(1, 20.0)
    for body in (delivery.body, httpx.get(document).content):
        assert [item["title"] for item in json.loads(body)["items"]] == ["c", "b", "a"]


def test_a_poll_by_hand_that_is_refused_is_repeated(client: Client) -> None:
    feed = client.register(Page(rss("a")))
    name = feed["name"]
    declare_refusing(client, name)
    client.site.pages[f"/{name}"] = Page(rss("c", "b", "a"))
    refused = client.http.post(f"feeds/{name}/poll")
    assert refused.status_code == 503 and client.queue in refused.json()["detail"]
    found = client.get(name)
    assert found["state"] == "failing" and client.queue in found["health"]
    rebind(client, name)
    wait_until(lambda: client.get(name)["state"] == "ok", 60.0, "another poll")
    assert client.titles() == ["b", "c"]


def test_a_feed_is_registered_though_its_first_entries_wait(client: Client) -> None:
    client.register(Page(rss("x")))  # declares the exchange
    declare_refusing(client, "first")
    feed = client.register(Page(rss("b", "a")), name="first", first=2)
    assert feed["state"] == "failing" and client.queue in feed["health"]
    rebind(client, "first")
    assert client.poll(feed, Page(rss("b", "a")))["state"] == "ok"
    assert client.titles() == ["a", "b"]


@pytest.fixture
def small(site: FeedSite) -> Iterator[Client]:
    with WarrenServer(args=["--max-message-bytes", str(SMALL)]) as server:
        client = Client(server, site, "entries")
        yield client
        client.close()


def test_an_entry_above_the_message_limit_is_published_without_its_content(small: Client) -> None:
    feed = small.register(Page(rss("a")))
    small.bind()
    large = rss("c", "b", "a").replace(b"About b", b"x" * (SMALL + 1))
    found = small.poll(feed, Page(large))
    assert (found["state"], found["published"]) == ("ok", 2)
    assert "1 entry was published without content" in found["notices"][0]
    assert str(SMALL) in found["health"]
    (first, item), (second, whole) = small.messages()
    assert (item["title"], item["id"], first.headers["truncated"]) == ("b", "id-b", True)
    assert "content_html" not in item and "truncated" not in second.headers
    assert whole["content_html"] == "About c"
    document = httpx.get(f"{small.server.http_url}/feeds/{feed['name']}.json").json()
    assert len(document["items"][1]["content_html"]) == SMALL + 1


def test_the_feeds_of_a_deleted_owner_stay_away_after_a_poll_that_ran_then(client: Client) -> None:
    api = f"{client.server.http_url}/api"
    with httpx.Client(auth=("guest", "guest")) as http:
        http.put(f"{api}/users/eve", json={"password": "eve's secret", "tags": "management"})
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        http.put(f"{api}/permissions/%2F/eve", json=everything)
        client.site.pages["/eve"] = Page(rss("a"))
        body = {"url": f"{client.site.url}/eve", "name": "eve"}
        done = httpx.post(f"{api}/hub/feeds", json=body, auth=("eve", "eve's secret"))
        assert done.status_code == 201, done.text
        answered = threading.Event()
        client.site.pages["/eve"] = Page(rss("b", "a"), wait=answered)
        asked = len(client.site.fetched)
        poll = threading.Thread(target=client.http.post, args=("feeds/eve/poll",))
        poll.start()
        wait_until(lambda: len(client.site.fetched) > asked, 20.0, "the poll")
        http.delete(f"{api}/users/eve").raise_for_status()
        answered.set()
        poll.join()
    wait_until(lambda: client.http.get("feeds/eve").status_code == 404, 20.0, "its end")
    client.server.restart()
    assert client.http.get("feeds/eve").status_code == 404


def test_a_slow_server_does_not_delay_other_polls(client: Client) -> None:
    slow = client.register(Page(rss("a")))
    answered = threading.Event()
    client.site.pages[f"/{slow['name']}"] = Page(rss("b", "a"), wait=answered)
    poll = threading.Thread(target=client.http.post, args=(f"feeds/{slow['name']}/poll",))
    asked = len(client.site.fetched)
    poll.start()
    wait_until(lambda: len(client.site.fetched) > asked, 20.0, "the poll")
    client.bind()
    other = client.register(Page(rss("a")))
    client.poll(other, Page(rss("c", "a")))
    assert client.titles() == ["c"] and poll.is_alive()
    answered.set()
    poll.join()
    assert client.titles() == ["b"]


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_database_that_goes_away_during_polls_loses_nothing(site: FeedSite) -> None:
    with (
        PostgreSQLServer() as database,
        WarrenServer(env={"WARREN_DATABASE": database.create()}) as server,
    ):
        client = Client(server, site, "entries")
        feeds = [client.register(Page(rss("a"))) for _ in range(5)]
        client.bind()
        for feed in feeds:
            client.site.pages[f"/{feed['name']}"] = Page(rss(f"b{feed['name']}", "a"))
        database.kill()
        answers = [client.http.post(f"feeds/{feed['name']}/poll") for feed in feeds]
        assert {answer.status_code for answer in answers} == {503}
        database.start()
        for feed in feeds:
            client.poll(feed, client.site.pages[f"/{feed['name']}"])
        assert client.titles() == [f"b{feed['name']}" for feed in feeds]
        client.close()


def test_lists_of_the_same_titles_are_imported_at_once(client: Client) -> None:
    count = 600

    def outlines(path: str) -> str:
        lines = "".join(
            f"<outline type='rss' text='News' xmlUrl='{client.site.url}/{path}{number}'/>"
            for number in range(count)
        )
        return f"<opml version='2.0'><head/><body>{lines}</body></opml>"

    jobs = [client.http.post("feeds/import", content=outlines(path)).json()["id"] for path in "pq"]

    def is_done(job: str) -> bool:
        return bool(client.http.get(f"feeds/import/{job}").json()["state"] != "running")

    for job in jobs:
        wait_until(partial(is_done, job), 60.0, "the import")
        found = client.http.get(f"feeds/import/{job}").json()
        assert (found["error"], found["added"]) == ("", count)
