"""Changes that are announced: WebSub at another hub, RSS cloud, and push that stops working."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
import threading
import xmlrpc.client
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest

from tests.hub.feeds.conftest import Client
from tests.support.feed_site import FeedSite, Page, rss
from tests.support.other_hub import OtherHub
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.times import seconds


@pytest.fixture
def server() -> Iterator[WarrenServer]:
    with WarrenServer(env={"WARREN_FETCH_GAP_S": "0.1"}) as server:
        yield server


@pytest.fixture
def client(server: WarrenServer, site: FeedSite) -> Iterator[Client]:
    client = Client(server, site, "entries")
    yield client
    client.close()


@pytest.fixture
def other() -> Iterator[OtherHub]:
    with OtherHub() as hub:
        yield hub


def waited(client: Client, name: str, **expected: Any) -> dict[str, Any]:
    """The feed when it is as expected."""
    found: dict[str, Any] = {}

    def is_so() -> bool:
        found.update(client.get(name))
        return all((found["push"] | found)[key] == value for key, value in expected.items())

    try:
        wait_until(is_so, 20.0, str(expected))
    except TimeoutError as error:
        raise AssertionError(found) from error
    return found


def with_hub(other: OtherHub, *titles: str) -> Page:
    return Page(rss(*titles), headers={"Link": f'<{other.url}/hub>; rel="hub"'})


def test_a_feed_is_subscribed_at_its_hub_and_polled_when_it_pushes(
    client: Client, other: OtherHub
) -> None:
    feed = client.register(with_hub(other, "a"))
    client.bind()
    assert feed["push"]["state"] == "pending"
    [asked] = other.wait(1)
    assert asked.form["hub.topic"] == feed["url"]
    wait_until(lambda: client.get(feed["name"])["push"]["state"] == "active", 20.0, "no poll")
    found = client.poll(feed, with_hub(other, "a"))
    assert (found["push"]["state"], found["push"]["hub_url"]) == ("active", f"{other.url}/hub")
    assert found["interval_s"] == 77_760 and "Changes are pushed." in found["health"]
    client.site.pages[f"/{feed['name']}"] = with_hub(other, "b", "a")
    content = b"whatever it is"
    assert httpx.post(asked.callback, content=content).status_code == 403
    digest = hmac.new(asked.form["hub.secret"].encode(), content, hashlib.sha256).hexdigest()
    signed = {"X-Hub-Signature": f"sha256={digest}"}
    assert httpx.post(asked.callback, content=content, headers=signed).status_code == 202
    waited(client, feed["name"], published=1)
    assert client.titles() == ["b"]
    client.http.delete(f"feeds/{feed['name']}")
    other.wait(1, "unsubscribe")


def test_short_leases_are_renewed_every_five_minutes_at_most_and_the_feed_is_polled(
    client: Client, other: OtherHub
) -> None:
    other.lease_seconds = 1
    feed = client.register(with_hub(other, "a"))
    wait_until(lambda: client.get(feed["name"])["push"]["state"] == "failed", 20.0, "the lease")
    [upstream] = client.http.get("upstreams").json()
    assert seconds(upstream["renew_at"]) - seconds(feed["checked_at"]) >= 300


def test_a_hub_that_denies_is_shown_at_once_and_the_feed_polled_as_before(
    client: Client, other: OtherHub
) -> None:
    feed = client.register(with_hub(other, "a"))
    [asked] = other.wait(1)
    client.poll(feed, with_hub(other, "a"))
    waited(client, feed["name"], interval_s=77_760)
    denied = {"hub.mode": "denied", "hub.topic": feed["url"], "hub.reason": "no more"}
    assert httpx.get(asked.callback, params=denied).status_code == 204
    assert client.get(feed["name"])["push"]["state"] == "failed"
    found = waited(client, feed["name"], interval_s=feed["interval_s"])
    assert "no more" in found["push"]["reason"]
    page = client.http.get("feeds").json()
    assert (page["statistics"]["push"]["failed"], page["items"][0]["push"]["state"]) == (
        1, "failed",
    )  # fmt: skip


def test_a_push_that_misses_entries_counts_as_failed_and_polling_resumes(
    client: Client, other: OtherHub
) -> None:
    feed = client.register(with_hub(other, "a"))
    [asked] = other.wait(1)
    client.poll(feed, with_hub(other, "a"))
    client.server.stop()
    client.site.pages[f"/{feed['name']}"] = with_hub(other, "c", "b", "a")
    with sqlite3.connect(client.server.data / "hub.sqlite3") as database:
        database.execute("UPDATE feeds SET next_at = 1")  # the daily poll is due
    client.server.start()
    found = waited(client, feed["name"], state="ok", published=2)
    assert found["push"]["state"] == "broken" and found["interval_s"] < 77_760
    assert "2 entries that were not announced" in found["health"]
    digest = hmac.new(asked.form["hub.secret"].encode(), b"x", hashlib.sha256).hexdigest()
    httpx.post(asked.callback, content=b"x", headers={"X-Hub-Signature": f"sha256={digest}"})
    found = client.poll(feed, with_hub(other, "c", "b", "a"))
    waited(client, feed["name"], interval_s=77_760)


def test_a_hub_can_be_given_for_a_feed_that_names_none(client: Client, other: OtherHub) -> None:
    feed = client.register(Page(rss("a")), hub=f"{other.url}/mine")
    [asked] = other.wait(1)
    assert (asked.path, asked.form["hub.topic"]) == ("/mine", feed["url"])


def test_a_hub_that_refuses_leaves_polling_as_it_is(client: Client) -> None:
    gone = {"Link": f'<{client.site.url}/no-hub>; rel="hub"'}
    feed = client.register(Page(rss("a"), headers=gone))

    def has_failed() -> bool:
        return bool(client.poll(feed, Page(rss("a"), headers=gone))["push"]["state"] == "failed")

    wait_until(has_failed, 20.0, "the refusal")
    found = client.get(feed["name"])
    assert "404" in found["push"]["reason"] and found["interval_s"] < 77_760


def test_a_cloud_is_registered_with_and_its_notice_polls_the_feed(client: Client) -> None:
    port = client.site.url.rpartition(":")[2]
    cloud = (
        f"<cloud domain='127.0.0.1' port='{port}' path='/please' registerProcedure='' "
        "protocol='http-post'/>"
    )
    client.site.pages["/please"] = Page(b"<notifyResult success='true'/>", "text/xml")
    feed = client.register(Page(rss("a", head=cloud)))
    client.bind()
    assert (feed["push"]["state"], feed["push"]["cloud"]) == ("active", f"127.0.0.1:{port}")
    [asked] = [one for one in client.site.fetched if one.path == "/please"]
    form = {name: values[0] for name, values in parse_qs(asked.body.decode()).items()}
    assert (form["protocol"], form["url1"]) == ("http-post", feed["url"])
    notify = f"http://{form['domain']}:{form['port']}{form['path']}"
    answer = httpx.get(notify, params={"url": feed["url"], "challenge": "c4"})
    assert (answer.status_code, answer.text) == (200, "c4")
    client.site.pages[f"/{feed['name']}"] = Page(rss("b", "a", head=cloud))
    assert httpx.post(notify, data={"url": feed["url"]}).status_code == 204
    waited(client, feed["name"], published=1)
    assert client.titles() == ["b"]
    assert len([one for one in client.site.fetched if one.path == "/please"]) == 1
    assert httpx.post(notify[:-1] + "x", data={"url": feed["url"]}).status_code == 404


def test_a_cloud_of_xml_rpc_is_registered_with_and_its_notice_polls_the_feed(
    client: Client,
) -> None:
    port = client.site.url.rpartition(":")[2]
    cloud = (
        f"<cloud domain='127.0.0.1' port='{port}' path='/RPC2' registerProcedure='cloud.tell' "
        "protocol='xml-rpc'/>"
    )
    refused = xmlrpc.client.dumps((False,), methodresponse=True).encode()
    client.site.pages["/RPC2"] = Page(refused, "text/xml")
    feed = client.register(Page(rss("a", head=cloud)))
    assert feed["push"]["state"] == "failed"
    taken = xmlrpc.client.dumps((True,), methodresponse=True).encode()
    client.site.pages["/RPC2"] = Page(taken, "text/xml")
    found = client.poll(feed, Page(rss("a", head=f"{cloud}<ttl>5</ttl>")))
    assert found["push"]["state"] == "active"
    client.bind()
    asked = [one for one in client.site.fetched if one.path == "/RPC2"][-1]
    call: Any = xmlrpc.client.loads(asked.body.decode())
    (procedure, back, path, protocol, urls), method = call
    assert (method, protocol, urls) == ("cloud.tell", "xml-rpc", [feed["url"]])
    client.site.pages[f"/{feed['name']}"] = Page(rss("b", "a", head=cloud))
    answer = httpx.post(
        f"http://127.0.0.1:{back}{path}",
        content=xmlrpc.client.dumps((feed["url"],), procedure),
        headers={"Content-Type": "text/xml"},
    )
    assert xmlrpc.client.loads(answer.text)[0] == (True,)
    waited(client, feed["name"], published=1)
    assert client.titles() == ["b"]


def ping(client: Client, feed: dict[str, Any]) -> None:
    form = {"hub.mode": "publish", "hub.url": feed["url"]}
    assert httpx.post(f"{client.server.http_url}/hub", data=form).is_success


def test_a_ping_without_a_subscription_leaves_the_poll_interval(client: Client) -> None:
    """It would have the feed polled once a day only."""
    feed = client.register(Page(rss("a")), min_interval_s=60)
    before = client.poll(feed, Page(rss("a")))
    asked = len(client.site.fetched)
    ping(client, feed)
    wait_until(lambda: len(client.site.fetched) > asked, 20.0, "the poll")
    wait_until(lambda: client.get(feed["name"])["checked_at"] != before["checked_at"], 20.0, "it")
    after = client.get(feed["name"])
    assert (after["push"]["state"], after["interval_s"]) == ("none", before["interval_s"])


def test_a_ping_during_a_poll_survives_a_crash(client: Client) -> None:
    feed = client.register(Page(rss("a")))
    client.bind()
    answered = threading.Event()
    client.site.pages[f"/{feed['name']}"] = Page(rss("a", head="<ttl>5</ttl>"), wait=answered)
    poll = threading.Thread(target=client.poll_quietly, args=(feed,))
    asked = len(client.site.fetched)
    poll.start()
    wait_until(lambda: len(client.site.fetched) > asked, 20.0, "the poll")
    ping(client, feed)
    client.server.kill()
    answered.set()
    poll.join()
    client.site.pages[f"/{feed['name']}"] = Page(rss("b", "a"))
    client.server.start()
    wait_until(lambda: client.get(feed["name"])["published"] == 1, 20.0, "the entry")
