"""Killed between fetch, state and publish: each entry is one message, and none is missing."""

from __future__ import annotations

import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.hub.feeds.conftest import Client
from tests.support.feed_site import FeedSite, Page, rss
from tests.support.process import wait_until
from tests.support.server import WarrenServer

DELAYS_MS = (0, 5, 10, 20, 40, 80)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WarrenServer]:
    with WarrenServer(data=tmp_path / "data") as server:
        yield server


@pytest.fixture
def client(server: WarrenServer, site: FeedSite) -> Iterator[Client]:
    client = Client(server, site, "entries")
    yield client
    client.close()


def was_asked(client: Client, count: int) -> bool:
    return len(client.site.fetched) > count


def test_an_entry_is_published_once_wherever_the_server_is_killed(client: Client) -> None:
    feed = client.register(Page(rss("a")))
    client.bind()
    titles = ["a"]
    for delay_ms in DELAYS_MS:
        titles.insert(0, f"after{delay_ms}")
        client.site.pages[f"/{feed['name']}"] = Page(rss(*titles))
        asked = len(client.site.fetched)
        poll = threading.Thread(target=client.poll_quietly, args=(feed,))
        poll.start()
        wait_until(partial(was_asked, client, asked), 20.0, "a fetch")
        time.sleep(delay_ms / 1000)  # where it is then differs: that is the point
        client.server.kill()
        poll.join()
        client.server.start()
        wait_until(lambda: client.get(feed["name"])["state"] == "ok", 20.0, "the feed")
    client.poll(feed, Page(rss(*titles)))
    assert client.titles() == [f"after{delay_ms}" for delay_ms in DELAYS_MS]


def test_entries_stored_but_not_published_are_published_after_the_start(client: Client) -> None:
    """The log is put back to where it was before the poll; the database has the poll."""
    server, log = client.server, client.server.data / "log"
    feed = client.register(Page(rss("a")))
    client.bind()
    server.stop()
    shutil.copytree(log, server.data.parent / "log-before")
    server.start()
    client.poll(feed, Page(rss("c", "b", "a")))
    server.kill()
    shutil.rmtree(log)
    shutil.copytree(server.data.parent / "log-before", log)
    server.start()
    found: list[str] = []

    def all_came() -> bool:
        found.extend(client.titles())
        return len(found) >= 2

    wait_until(all_came, 20.0, "the messages")
    client.poll(feed, Page(rss("c", "b", "a")))
    assert found + client.titles() == ["b", "c"]


def test_feeds_and_the_times_of_their_polls_survive_a_restart(client: Client) -> None:
    feed = client.register(Page(rss("b", "a")), min_interval_s=4_000)
    paused = client.register(Page(rss("a")))
    client.http.post(f"feeds/{paused['name']}/pause")
    before = client.get(feed["name"])["next_poll_at"]
    client.server.restart()
    assert client.get(feed["name"])["next_poll_at"] == before
    assert client.get(paused["name"])["state"] == "paused"
    assert client.poll(feed, Page(rss("b", "a")))["published"] == 0
    assert client.site.statuses(f"/{feed['name']}") == [200, 304]


def test_during_an_alarm_nothing_is_skipped(client: Client) -> None:
    feed = client.register(Page(rss("a")))
    client.bind()
    client.server.stop()
    client.site.pages[f"/{feed['name']}"] = Page(rss("b", "a"))
    asked = len(client.site.fetched)
    short = WarrenServer(data=client.server.data, args=["--disk-free-limit", "1000TiB"])
    with short:
        url = f"{short.http_url}/api/hub/feeds/{feed['name']}/poll"
        answer = httpx.post(url, auth=("guest", "guest"))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
        assert "disk" in answer.json()["detail"] and len(client.site.fetched) == asked
    client.server.start()
    client.poll(feed, Page(rss("b", "a")))
    assert client.titles() == ["b"]


def test_without_the_database_nothing_is_skipped(client: Client) -> None:
    feed = client.register(Page(rss("a")))
    client.bind()
    client.site.pages[f"/{feed['name']}"] = Page(rss("b", "a"))
    database = sqlite3.connect(client.server.data / "hub.sqlite3", isolation_level=None)
    database.execute("BEGIN EXCLUSIVE")
    answer = client.http.post(f"feeds/{feed['name']}/poll")
    assert (answer.status_code, answer.json()["title"]) == (503, "Storage failed")
    assert client.titles() == []
    database.execute("ROLLBACK")
    database.close()
    client.poll(feed, Page(rss("b", "a")))
    assert client.titles() == ["b"]
