"""The hub's promises on the engine that is a RabbitMQ (docs/scaling.md): tests of
`test_hub_promises.py` as they are, and what this engine alone has."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from tests.browser.browsers import Browser, missing
from tests.browser.ui.signed_in import SignedInPage
from tests.hub.feeds.conftest import Client
from tests.hub.feeds.test_entries import (
    test_the_first_poll_publishes_the_first_newest_entries,
)
from tests.support.feed_site import FeedSite, Page, rss
from tests.support.http import Answer, Callback
from tests.support.hub_on_rabbitmq import PASSWORD, USER, HubOnRabbitMQ, ask, permit, put
from tests.support.process import wait_until
from tests.support.rabbitmq import RabbitMQServer
from warrenmq.app.cli import run

from . import frames, raw
from .test_hub_promises import (
    test_a_failed_replay_is_a_dead_letter_again,
    test_an_end_during_a_delivery,
    test_an_event_keeps_its_attributes,
    test_any_properties_are_delivered,
    test_concurrent_subscribes_are_one,
    test_dead_letters_are_deleted,
    test_dead_letters_are_replayed,
    test_dead_letters_have_reasons,
    test_max_tps,
    test_peers_06_strict_order_shows_what_blocks,
    test_peers_08_a_source_that_is_declared_again,
    test_peers_5_6_one_request_for_all_standards,
    test_queues_that_can_not_be_subscribed,
    test_retry_after_has_bounds,
    test_slow_targets_delay_no_other,
    test_strict_order_survives_changes_of_the_subscription,
)
from .webhooks import AUTH, WAIT_S, Site, SteppedCallback, form, story, telling

__all__ = [
    "test_a_failed_replay_is_a_dead_letter_again",
    "test_an_end_during_a_delivery",
    "test_an_event_keeps_its_attributes",
    "test_any_properties_are_delivered",
    "test_concurrent_subscribes_are_one",
    "test_dead_letters_are_deleted",
    "test_dead_letters_are_replayed",
    "test_dead_letters_have_reasons",
    "test_max_tps",
    "test_peers_06_strict_order_shows_what_blocks",
    "test_peers_08_a_source_that_is_declared_again",
    "test_peers_5_6_one_request_for_all_standards",
    "test_queues_that_can_not_be_subscribed",
    "test_retry_after_has_bounds",
    "test_slow_targets_delay_no_other",
    "test_strict_order_survives_changes_of_the_subscription",
    "test_the_first_poll_publishes_the_first_newest_entries",
]

pytestmark = pytest.mark.differs("RabbitMQ pushes to nobody")


@pytest.fixture(scope="module")
def site(node: RabbitMQServer) -> Iterator[Site]:
    with HubOnRabbitMQ(node) as server, Site(server) as site:
        yield site
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture(scope="module")
def hasty(node: RabbitMQServer) -> Iterator[Site]:
    """With one attempt for each message."""
    with HubOnRabbitMQ(node, ["--max-attempts", "1"]) as server, Site(server) as site:
        yield site
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture
def client(site: Site) -> Iterator[Client]:
    """A user of feeds."""
    with FeedSite() as pages:
        client = Client(site.server, pages, site.name())
        yield client
        client.close()


@pytest.fixture(scope="module", autouse=True)
def told(site: Site, request: pytest.FixtureRequest) -> Iterator[dict[str, Future[None]]]:
    with telling(site, request) as told:
        yield told


@pytest.mark.promise
@story
def test_a_node_that_delivers_nothing_is_left(site: Site, callback: Callback) -> None:
    """Another consumer takes the messages by which the hub probes the node."""
    assert isinstance(site.server, HubOnRabbitMQ)
    (node,) = site.server.nodes
    url = f"amqp://{USER}:{PASSWORD}@localhost:{node.port},{node.host}:{node.port}/"
    probe = f"hub.probe.localhost:{node.port}"
    queue = f"{node.management_url}/api/queues/%2F/{probe}"
    with HubOnRabbitMQ(node, ["--engine", url]) as hub, Site(hub) as other:
        source = other.exchange()
        other.subscribe(source, callback)
        wait_until(lambda: httpx.get(queue, auth=AUTH).is_success, WAIT_S, "the probe's queue")
        with other.amqp() as channel:
            channel.basic_consume(probe, print, auto_ack=True, arguments={"x-priority": 10})
            wait_until(lambda: "delivers none" in hub.output(), WAIT_S, "the hub's notice")
            other.publish(source)
            callback.wait(1)
        notices = [line for line in hub.output().splitlines() if "delivers none" in line]
        assert len(notices) == 1
        assert f"localhost:{node.port}: " in notices[0]
        assert f"goes on at {node.host}:{node.port}" in notices[0]


@pytest.mark.promise
@pytest.mark.parametrize("kind", ["exchange", "classic", "quorum"])
@story
def test_strict_order_of_what_amqp_programs_publish(
    site: Site, callback: Callback, kind: str
) -> None:
    """While they publish the first message fails, and is known although it has no message-id."""
    source = site.exchange() if kind == "exchange" else f"q/{site.name()}"
    exchange, key = (source[2:], "a") if kind == "exchange" else ("", source[2:])
    bodies = [b"%d" % number for number in range(100)]
    callback.script(Answer(500, {"Retry-After": "1"}))
    with site.amqp() as channel:
        if kind != "exchange":
            channel.queue_declare(key, durable=True, arguments={"x-queue-type": kind})
        site.subscribe(source, callback, order="strict")
        channel.confirm_delivery()
        for body in bodies:
            channel.basic_publish(exchange, key, body)
    first, *rest = callback.wait(101, 2 * WAIT_S)
    assert [one.body for one in rest] == bodies
    assert first.headers["webhook-id"] == rest[0].headers["webhook-id"]
    assert len({one.headers["webhook-id"] for one in rest}) == 100


@pytest.mark.promise
@pytest.mark.parametrize("order", ["strict", "loose"])
def test_order_within_a_moment(site: Site, callback: Callback, order: str) -> None:
    """Of confirmed messages: RabbitMQ may lose others when their connection is closed."""
    exchange = site.exchange()
    site.subscribe(exchange, callback, order=order)
    bodies = [b"%d" % number for number in range(200)]
    with site.amqp() as channel:
        channel.confirm_delivery()
        for body in bodies:
            channel.basic_publish(exchange[2:], "a", body)
    assert [one.body for one in callback.wait(200)] == bodies


@pytest.mark.promise
def test_many_subscriptions_get_each_message(site: Site, callback: Callback) -> None:
    """Also the last ones, behind which nothing comes. The publisher stays connected until then, or
    RabbitMQ may lose what it has not confirmed."""
    exchange = site.exchange()
    bodies = [b"%0200d" % number for number in range(160)]
    for number in range(50):
        site.subscribe(exchange, f"{callback.url}/{number}")
    with site.amqp() as channel:
        for body in bodies:
            channel.basic_publish(exchange[2:], "a", body)
        deliveries = callback.wait(50 * len(bodies), WAIT_S)
    for number in range(50):
        assert [one.body for one in deliveries if one.path.endswith(f"/{number}")] == bodies


def test_octets_that_are_no_text_are_delivered(
    site: Site, node: RabbitMQServer, callback: Callback
) -> None:
    """RabbitMQ passes them on, and the hub's connection survives them."""
    exchange = site.exchange()
    site.subscribe(exchange, callback)
    with raw.connect(node.port) as client:
        channel = client.channel()
        channel.call("Confirm.Select")
        key = b"a\xff".decode("latin-1")
        channel.publish(
            b"1", frames.Raw(b"\x80\x00\x01\xff"), exchange=exchange[2:], routing_key=key
        )
        channel.expect("Basic.Ack")  # or it may be lost with the connection
    site.publish(exchange, b"2", topic="b")
    assert [one.body for one in callback.wait(2)] == [b"1", b"2"]


def test_users_are_those_of_rabbitmq(site: Site, node: RabbitMQServer, callback: Callback) -> None:
    """With their passwords and permissions; who loses one loses the subscription."""
    exchange, name = site.exchange(), site.name()
    put(node, f"users/{name}", password="secret", tags="")
    put(node, f"permissions/%2F/{name}", configure="", write="^hub", read=f"^{exchange[2:]}$")
    asked = form("subscribe", callback.url, "#")
    with httpx.Client(base_url=site.server.http_url, timeout=WAIT_S) as http:
        auth = name, "secret"

        def status() -> int:
            return http.post(f"/subscribe/{exchange}", data=asked, auth=auth).status_code

        wait_until(lambda: status() == 204, WAIT_S, "the user's permissions")
        wrong = http.post(f"/endpoint/{exchange}", auth=(name, "wrong"))
        assert wrong.status_code == 401
        assert http.post(f"/endpoint/{exchange}", auth=auth).status_code == 403
    site.publish(exchange, b"1")
    callback.wait(1)
    put(node, f"permissions/%2F/{name}", configure="", write="", read="")
    wait_until(lambda: bool(callback.denials), WAIT_S, "word of the end")


def test_each_virtual_host_is_served(site: Site, node: RabbitMQServer, callback: Callback) -> None:
    """Whatever its name is, some seconds after it was created."""
    vhost = quote(f"{site.name()}/ %2F", safe="")
    put(node, f"vhosts/{vhost}")
    for user in ("guest", USER):
        put(node, f"permissions/{vhost}/{user}", configure=".*", write=".*", read=".*")
    queue = f"/{vhost}/endpoint/q/in"
    wait_until(lambda: site.http.put(queue).status_code == 201, WAIT_S, "the virtual host")
    asked = form("subscribe", callback.url, "#")
    assert site.http.post(f"/{vhost}/subscribe/q/in", data=asked).status_code == 204
    lines = {"Content-Type": "application/x-ndjson"}
    batch = site.http.post(queue, params={"hub.mode": "batch"}, content=b"1\n2\n", headers=lines)
    assert batch.status_code == 202, batch.text
    assert [one.body for one in callback.wait(2)] == [b"1", b"2"]


@pytest.mark.parametrize("path", ["/api/queues", "/transactions/a", "/metrics/per-object"])
def test_what_is_elsewhere_says_so(site: Site, path: str) -> None:
    answer = site.http.get(path)
    assert answer.status_code == 501, answer.text
    assert "RabbitMQ" in answer.text


def test_the_web_ui_has_the_pages_of_the_hub(site: Site, node: RabbitMQServer) -> None:
    """And leads to RabbitMQ's management for the others."""
    if reason := missing("chromium"):
        pytest.skip(reason)
    with Browser("chromium") as browser:
        ui = SignedInPage(browser.new_page(), site.server)
        ui.open()
        ui.shows("Live", "#live")
        assert "Queues" not in ui.page.run("document.querySelector('.side').innerText")
        ui.go("/queues/%2F/orders")
        there = ui.page.run("document.querySelector('main a').href")
        assert there == f"{node.management_url}/#/queues/%2F/orders"
        ui.go("/welcome")
        ui.press("Send a sample message")
        ui.shows("Delivered to this page")
        assert not browser.close_pages()


def test_the_doctor_looks_at_the_hub(
    site: Site, node: RabbitMQServer, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["doctor", "--json", "--url", site.server.http_url])
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    found = {one["subject"]: (one["level"], one["text"]) for one in lines}
    assert found[f"server {site.server.http_url}"][0] == "ok"
    level, text = found["connections"]
    assert level == "ok" and node.management_url in text
    assert "dead letters" in found


def test_the_overview_counts_dead_letters(hasty: Site, callback: Callback) -> None:
    exchange = hasty.exchange()
    callback.script(Answer(500))
    hasty.subscribe(exchange, callback)
    hasty.publish(exchange)
    stored = "/api/hub/dead-letters"
    wait_until(lambda: hasty.http.get(stored).json()["total_count"] > 0, WAIT_S, "a dead letter")
    with hasty.http.stream("GET", "/api/warren/live") as live:
        data = (one.removeprefix("data: ") for one in live.iter_lines() if "at_ms" in one)
        hubs = (json.loads(one)["hub"] for one in islice(data, 60))
        assert any(one["dead_letters"] for one in hubs)


def test_metrics_are_those_of_the_hub_and_its_process(site: Site) -> None:
    text = site.http.get("/metrics").text
    for name in ("warren_subscriptions", "warren_event_loop_lag_seconds_count"):
        assert f"\n{name}" in text
    memory = re.search(r"^rabbitmq_process_resident_memory_bytes (\d+)", text, re.MULTILINE)
    assert memory is not None and int(memory[1]) > 0
    assert "rabbitmq_queues" not in text


def test_a_backup_has_what_the_hub_stores(
    site: Site, callback: Callback, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exchange = site.exchange()
    site.subscribe(exchange, callback)
    backup, data = tmp_path / "backup", tmp_path / "data"
    assert run(["backup", str(backup), "--url", site.server.http_url]) == 0, capsys.readouterr()
    assert run(["restore", str(backup), "--data", str(data)]) == 0
    with closing(sqlite3.connect(data / "hub.sqlite3")) as database:
        found = database.execute("SELECT source_name FROM subscriptions").fetchall()
    assert (exchange[2:],) in found
    assert (data / "hub.key").exists()


def test_a_live_reader_gets_what_amqp_programs_publish(site: Site) -> None:
    exchange = site.exchange()
    headers = {"Accept": "text/event-stream"}
    with site.http.stream("GET", f"/stream/{exchange}", headers=headers) as stream:
        assert stream.status_code == 200, stream.read()
        lines = stream.iter_lines()
        next(lines)
        with site.amqp() as channel:
            channel.basic_publish(exchange[2:], "a", b"live")
        assert any("live" in line for line in lines)


def test_polls_of_a_queue_give_each_message_once(site: Site) -> None:
    """RabbitMQ sends far more messages than the answer to a poll has."""
    queue, bodies = site.name(), [f"{number:04}" for number in range(1_000)]
    with site.amqp() as channel:
        channel.queue_declare(queue, durable=True)
        for body in bodies:
            channel.basic_publish("", queue, body.encode())
    got: list[str] = []
    while len(got) < len(bodies):
        answer = site.http.get(f"/stream/q/{queue}", headers={"Accept": "application/json"})
        messages = answer.raise_for_status().json()["messages"]
        assert messages, f"{len(bodies) - len(got)} messages are lost"
        got += [message["body"] for message in messages]
    assert sorted(got) == bodies


def test_what_the_cluster_lacks_is_said(site: Site, node: RabbitMQServer) -> None:
    """With the exit codes of docs/scaling.md."""
    put(node, "vhosts/short")
    put(node, "policies/short/short", pattern="", definition={"max-length": 5})
    permit(node, "administrator")
    unfit = HubOnRabbitMQ(node)
    try:
        with pytest.raises(RuntimeError, match="tag impersonator") as said, unfit:
            pass
        assert "policy 'short'" in str(said.value)
        assert unfit.process.returncode == 4
    finally:
        permit(node)
        ask(node, "DELETE", "vhosts/short")
    nowhere = HubOnRabbitMQ(node, ["--engine-management", "http://127.0.0.1:1"])
    with pytest.raises(RuntimeError, match="can't be reached"), nowhere:
        pass
    assert nowhere.process.returncode == 5


def test_a_list_that_the_management_api_does_not_give_is_not_empty(node: RabbitMQServer) -> None:
    """Users without permissions would lose their subscriptions."""
    with FeedSite() as nothing_found:
        unread = HubOnRabbitMQ(node, ["--engine-management", nothing_found.url])
        with pytest.raises(RuntimeError, match="has no list at /api/permissions"), unread:
            pass
    assert unread.process.returncode == 5


@pytest.mark.promise
def test_a_kill_with_deliveries_in_flight(site: Site) -> None:
    """Each is repeated with its id, and all that was confirmed is delivered, in strict order where
    that was asked for."""
    exchange = site.exchange()
    bodies = [b"%d" % number for number in range(20)]
    with SteppedCallback() as parallel, SteppedCallback() as strict:
        site.subscribe(exchange, parallel, in_flight="5")
        site.subscribe(exchange, strict, order="strict")
        for body in bodies:
            site.publish(exchange, body)
        strict.let(3)
        wait_until(lambda: len(strict.deliveries) == 4, WAIT_S, "a fourth delivery in order")
        wait_until(lambda: parallel.inside == 5, WAIT_S, "five deliveries in flight")
        site.server.kill()
        parallel.open = strict.open = True
        site.server.start()

        def is_complete() -> bool:
            return all(ids(one).keys() == set(bodies) for one in (parallel, strict))

        wait_until(is_complete, WAIT_S, "all that was confirmed")
        assert all(len(found) == 1 for one in (parallel, strict) for found in ids(one).values())
        assert len(parallel.deliveries) >= 25
        again = [one.body for one in strict.deliveries[4:]]
        assert again == bodies[bodies.index(again[0]) :]
        assert again[0] in bodies[:4]


def ids(callback: Callback) -> dict[bytes, set[str]]:
    """The webhook-ids of each body that was delivered."""
    found: dict[bytes, set[str]] = {}
    for one in callback.deliveries:
        found.setdefault(one.body, set()).add(one.headers["webhook-id"])
    return found


@pytest.mark.promise
def test_nothing_confirmed_is_lost(site: Site, node: RabbitMQServer, callback: Callback) -> None:
    """When the hub is killed, and then its connections are closed, while messages are published; in
    `tests/cluster` RabbitMQ is killed."""
    exchange = site.exchange()
    callback.script(Answer(500))
    site.subscribe(exchange, callback)
    confirmed: list[bytes] = []
    is_over = threading.Event()

    def publish() -> None:
        number = 0
        while not is_over.wait(0.02):
            number += 1
            body = b"%d" % number
            try:
                answer = site.http.post(f"/endpoint/{exchange}", content=body)
            except httpx.TransportError:
                continue
            if answer.status_code == 202:
                confirmed.append(body)

    def more() -> None:
        wanted = len(confirmed) + 20
        wait_until(lambda: len(confirmed) >= wanted, 2 * WAIT_S, "confirmed messages")

    with ThreadPoolExecutor(1) as pool:
        publishing = pool.submit(publish)
        try:
            more()
            site.server.kill()
            site.server.start()
            more()
            node.ctl("close_all_connections", "for a test")
            more()
        finally:
            is_over.set()
        publishing.result()

    wait_until(lambda: ids(callback).keys() >= set(confirmed), 2 * WAIT_S, "all that was confirmed")
    assert all(len(found) == 1 for found in ids(callback).values())


@pytest.mark.promise
def test_entries_whose_publish_was_cut_off_come_with_their_ids(
    site: Site, client: Client, callback: Callback
) -> None:
    """As after a crash between the confirms and the note in the database."""
    feed = client.register(Page(rss("a")))
    site.subscribe("x/hub.feeds", callback, feed["name"])
    client.poll(feed, Page(rss("c", "b", "a")))
    callback.wait(2)
    site.server.kill()
    with closing(sqlite3.connect(site.server.data / "hub.sqlite3")) as database, database:
        (text,) = database.execute(
            "SELECT status FROM feeds WHERE name = ?", (feed["name"],)
        ).fetchone()
        status = json.dumps(json.loads(text) | {"is_unpublished": True})
        database.execute("UPDATE feeds SET status = ? WHERE name = ?", (status, feed["name"]))
    site.server.start()

    def are_repeated() -> bool:
        counted = Counter(one.body for one in callback.deliveries)
        return len(counted) == 2 and min(counted.values()) >= 2

    wait_until(are_repeated, WAIT_S, "both entries again")
    assert all(len(found) == 1 for found in ids(callback).values())
    assert client.poll(feed, Page(rss("c", "b", "a")))["published"] == 2


def test_entries_that_a_queue_refuses_are_published_when_it_takes_them(
    site: Site, client: Client
) -> None:
    feed = client.register(Page(rss("a")))
    full = {"x-max-length": 0, "x-overflow": "reject-publish"}
    with site.amqp() as channel:
        channel.queue_declare(client.queue, arguments=full)
        channel.queue_bind(client.queue, "hub.feeds", feed["name"])
        client.site.pages[f"/{feed['name']}"] = Page(rss("c", "b", "a"))
        answer = client.http.post(f"feeds/{feed['name']}/poll")
        assert answer.status_code == 503 and "hub.feeds" in answer.json()["detail"]
        channel.queue_delete(client.queue)
    client.bind(feed["name"])
    client.poll(feed, Page(rss("d", "c", "b", "a")))
    assert client.titles() == ["b", "c", "d"]
