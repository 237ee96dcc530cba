"""The pages of queues, exchanges, connections and channels, used as a user does."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pika
import pytest

from tests.support.server import WarrenServer

from .signed_in import SignedInPage

pytestmark = pytest.mark.thorough

HEADING = "document.querySelector('main.page h1')?.textContent === "


@pytest.fixture
def api(warren: WarrenServer) -> Iterator[httpx.Client]:
    """The management API, with the queue `jobs` and the exchange `events` and none but them."""
    with httpx.Client(base_url=f"{warren.http_url}/api", auth=("guest", "guest")) as client:
        for path in ("/queues/%2F/jobs", "/queues/%2F/later", "/exchanges/%2F/events"):
            client.delete(path)
        client.put("/queues/%2F/jobs", json={"durable": True}).raise_for_status()
        client.put("/exchanges/%2F/events", json={"type": "topic"}).raise_for_status()
        yield client


@pytest.fixture
def amqp(warren: WarrenServer) -> Iterator[pika.BlockingConnection]:
    parameters = pika.ConnectionParameters("127.0.0.1", warren.amqp_port)
    parameters.client_properties = {"connection_name": "worker-7"}
    connection = pika.BlockingConnection(parameters)
    yield connection
    if connection.is_open:
        connection.close()


def publish(api: httpx.Client, payload: str) -> None:
    message = {"properties": {}, "routing_key": "jobs", "payload": payload}
    found = api.post(
        "/exchanges/%2F/amq.default/publish", json={**message, "payload_encoding": "string"}
    )
    assert found.json() == {"routed": True}


def ready(api: httpx.Client, queue: str = "jobs") -> int:
    return int(api.get(f"/queues/%2F/{queue}").json()["messages_ready"])


def test_a_message_is_published_and_looked_at_where_it_waits(
    ui: SignedInPage, api: httpx.Client
) -> None:
    ui.go("/queues/%2F/jobs?tab=publish")
    ui.fill("payload", '{"id": 7}', "main")
    ui.fill("headers", '{"attempt": 1}', "main")
    ui.press("Publish message")
    ui.shows("Routed", "main [role=status]")
    ui.page.click("main > details summary")
    ui.shows('"headers":{"attempt":1}', "main > details .stack")
    ui.go("/queues/%2F/jobs?tab=messages")
    ui.shows("Position 0", "article h2")
    ui.shows("attempt", "article section")
    ui.press("Hex", "article")
    ui.shows("7b 22 69 64 22 3a 20 37 7d", "article pre")
    publish(api, "second")
    ui.fill("from", "last", "main")
    ui.fill("count", "1", "main")
    ui.press("Show")
    ui.shows("Position 1", "article h2")
    assert ui.page.run("location.hash") == "#/queues/%2F/jobs?tab=messages&from=last&count=1"
    assert ready(api) == 2


def test_the_overview_counts_without_taking_the_focus(ui: SignedInPage, api: httpx.Client) -> None:
    ui.go("/")
    ready = "[...document.querySelectorAll('a.tile')].find((one) => /Ready/.test(one.innerText))"
    ui.page.wait(f"{ready}?.querySelector('.figure').textContent === '0'")  # not one of before
    ui.page.act(ready, "one.focus()")
    publish(api, "counted")
    figure = "document.activeElement.closest('a.tile')?.querySelector('.figure').textContent"
    ui.page.wait(f"{figure} === '1'")


def test_messages_are_got_moved_and_purged_with_their_count(
    ui: SignedInPage, api: httpx.Client
) -> None:
    for number in range(4):
        publish(api, f"job {number}")
    api.put("/queues/%2F/later", json={}).raise_for_status()
    ui.go("/queues/%2F/jobs?tab=messages")
    ui.page.click("main details summary")
    ui.fill("ackmode", "ack_requeue_false", "main")
    ui.press("Get messages")
    ui.press("Take 1 message from jobs", "dialog")
    ui.shows("Took 1 message from jobs.", ".messages")
    ui.press("Move")
    ui.fill("target", "later")
    ui.fill("count", "2")
    ui.press("Move messages", "dialog")
    ui.shows("Moved 2 messages from jobs to later; 1 left.", ".messages")
    assert (ready(api), ready(api, "later")) == (1, 2)
    ui.press("Purge")
    ui.press("Purge 1 message from jobs", "dialog")
    ui.shows("Purged 1 message from jobs.", ".messages")
    assert ready(api) == 0


def test_a_queue_is_paused_resumed_and_deleted_by_its_name(
    ui: SignedInPage, api: httpx.Client
) -> None:
    ui.go("/queues/%2F/jobs")
    ui.press("Pause")
    ui.shows("Paused", ".heading .state")
    assert api.get("/queues/%2F/jobs").json()["state"] == "paused"
    ui.press("Resume")
    ui.page.wait("!document.querySelector('.heading .state.warn')")
    ui.press("Delete")
    ui.page.wait("document.querySelector('dialog button.main').disabled")
    ui.fill("typed", "jobs")
    ui.press("Delete the queue jobs", "dialog")
    ui.page.wait(HEADING + "'Queues'")
    assert api.get("/queues/%2F/jobs").status_code == 404


def test_stuck_queues_are_filtered_ticked_and_purged_together(
    ui: SignedInPage, api: httpx.Client
) -> None:
    publish(api, "first")
    ui.go("/queues")
    chip = "[...document.querySelectorAll('.chips button')].find((one) => /^.*No/.test("
    ui.page.act(f"{chip}one.innerText))", "one.click()")
    ui.shows("1 queue has no consumer.", ".answer")
    ui.page.wait("document.querySelectorAll('main tbody tr').length === 1")
    assert ui.page.run("location.hash") == "#/queues?trouble=no_consumer"
    ui.page.click("main tbody input[type=checkbox]")
    publish(api, "second")
    ui.press("Purge 1 queue", "main")
    ui.press("Purge 2 messages from jobs", "dialog")
    ui.shows("Purged 2 messages from jobs.", ".messages")
    assert ready(api) == 0
    ui.shows("No queues match this filter.", "main")
    ui.go("/queues?name=event")
    ui.press("Exchanges", "main")
    ui.shows("events", "main tbody")
    assert ui.page.run("location.hash") == "#/exchanges?name=event"


def test_a_binding_is_added_drawn_used_and_removed(ui: SignedInPage, api: httpx.Client) -> None:
    ui.go("/exchanges/%2F/events?tab=publish")
    ui.fill("routing_key", "order.paid", "main")
    ui.press("Publish message")
    ui.shows("Not routed", "main [role=status]")
    ui.go("/exchanges/%2F/events?tab=bindings")
    ui.fill("other", "jobs", "main")
    ui.fill("routing_key", "order.#", "main")
    ui.press("Bind")
    ui.shows("order.#", "main td code")
    ui.go("/exchanges/%2F/events")
    ui.shows("order.#", ".flow .to .words")
    drawn = "document.querySelector('.flow .to a').getAttribute('href')"
    assert ui.page.run(drawn) == "#/queues/%2F/jobs"
    ui.go("/exchanges/%2F/events?tab=publish")
    ui.press("Publish message")
    ui.shows("Routed", "main [role=status] .good")
    assert ready(api) == 1
    ui.go("/queues/%2F/jobs?tab=bindings")
    ui.press("Unbind")
    ui.press("Remove the binding with key order.#", "dialog")
    ui.page.wait("document.querySelectorAll('main tbody tr').length === 1")
    assert api.get("/exchanges/%2F/events/bindings/source").json() == []


def test_a_consumer_is_found_and_its_connection_closed_with_a_reason(
    ui: SignedInPage, api: httpx.Client, amqp: pika.BlockingConnection
) -> None:
    channel = amqp.channel()
    channel.basic_qos(prefetch_count=3)
    channel.basic_consume("jobs", lambda *_: None, consumer_tag="tag-1")
    publish(api, "held")
    ui.go("/queues/%2F/jobs?tab=consumers")
    ui.shows("tag-1", "main tbody th")
    ui.shows("Who holds unacknowledged messages", "main section.card")
    ui.shows("tag-1", "main section.card tbody th")
    ui.page.click("main tbody td a")
    ui.shows("Prefetch of each consumer", "main")
    ui.shows("jobs", "main tbody td")
    ui.go("/connections")
    ui.press("worker-7", "main")
    ui.page.wait(HEADING + "'worker-7'")
    ui.press("Close")
    ui.fill("reason", "maintenance at noon")
    ui.press("Close worker-7", "dialog")
    ui.page.wait(HEADING + "'Connections'")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="maintenance at noon"):
        amqp.process_data_events(time_limit=20)
