"""Dead letters through pika: where they go and what their headers tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from .support import (
    Delivery,
    Inbox,
    fresh,
    get,
    get_bodies,
    publish_numbers,
    ready_count,
)

SOON_MS = 1


def declare(channel: BlockingChannel, exchange: str, key: str | None = None, **more: object) -> str:
    """An exclusive queue whose dead letters go to `exchange`, under `key` or their own keys."""
    name = fresh("queue")
    arguments = {"x-dead-letter-exchange": exchange, **more}
    if key is not None:
        arguments["x-dead-letter-routing-key"] = key
    channel.queue_declare(name, exclusive=True, arguments=arguments)
    return name


def reject(channel: BlockingChannel, queue: str) -> Delivery:
    delivery = get(channel, queue, auto_ack=False)
    channel.basic_reject(delivery.method.delivery_tag, requeue=False)
    return delivery


def deaths(delivery: Delivery) -> list[tuple[Any, ...]]:
    return [
        (death["queue"], death["reason"], death["count"], death["exchange"], death["routing-keys"])
        for death in delivery.properties.headers["x-death"]
    ]


def test_a_rejected_message_tells_its_story(channel: BlockingChannel, queue: str) -> None:
    source = declare(channel, "", queue)
    channel.queue_bind(source, "amq.topic", "tony.#")
    before = datetime.now(UTC).replace(microsecond=0)
    sent = pika.BasicProperties(content_type="text/plain", headers={"mine": 1}, message_id="m")
    channel.basic_publish("amq.topic", "tony.status", b"is at work", sent)
    reject(channel, source)

    dead = get(channel, queue)
    assert (dead.body, dead.method.exchange, dead.method.routing_key) == (b"is at work", "", queue)
    assert dead.method.redelivered is False
    assert (dead.properties.content_type, dead.properties.message_id) == ("text/plain", "m")
    headers = dict(dead.properties.headers)
    (death,) = headers.pop("x-death")
    time = death.pop("time").replace(tzinfo=UTC)
    assert before <= time <= before + timedelta(minutes=1)
    assert death == {
        "count": 1,
        "reason": "rejected",
        "queue": source,
        "exchange": "amq.topic",
        "routing-keys": ["tony.status"],
    }
    first = {name: headers.pop(f"x-first-death-{name}") for name in ("reason", "queue", "exchange")}
    assert first == {"reason": "rejected", "queue": source, "exchange": "amq.topic"}
    # Newer brokers tell the last death beside the first.
    last = {name: value for name, value in headers.items() if name.startswith("x-last-death-")}
    assert set(last.values()) <= {"rejected", source, "amq.topic"}
    assert {name: value for name, value in headers.items() if name not in last} == {"mine": 1}


def test_expiration_is_taken_off_and_remembered(channel: BlockingChannel, queue: str) -> None:
    source = declare(channel, "", queue)
    channel.basic_publish("", source, b"", pika.BasicProperties(expiration=str(SOON_MS)))
    dead = get(channel, queue)
    assert dead.properties.expiration is None
    assert deaths(dead) == [(source, "expired", 1, "", [source])]
    assert dead.properties.headers["x-death"][0]["original-expiration"] == str(SOON_MS)


@pytest.mark.parametrize("settle", ["basic_nack", "basic_reject"])
def test_own_keys_are_kept_without_a_routing_key(channel: BlockingChannel, settle: str) -> None:
    letters = fresh("letters")
    channel.exchange_declare(letters, "topic", auto_delete=True)
    found = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(found, letters, "tony.*")
    source = declare(channel, letters)
    channel.queue_bind(source, "amq.direct", "tony.status")
    channel.basic_publish("amq.direct", "tony.status", b"is at work")
    tag = get(channel, source, auto_ack=False).method.delivery_tag
    getattr(channel, settle)(tag, requeue=False)
    dead = get(channel, found)
    assert (dead.method.exchange, dead.method.routing_key) == (letters, "tony.status")
    assert deaths(dead) == [(source, "rejected", 1, "amq.direct", ["tony.status"])]


def test_copies_keep_their_other_keys(channel: BlockingChannel) -> None:
    letters = fresh("letters")
    channel.exchange_declare(letters, "direct", auto_delete=True)
    found = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(found, letters, "copy")
    source = declare(channel, letters)
    headers = {"CC": ["copy"], "BCC": ["blind"]}
    channel.basic_publish("", source, b"memo", pika.BasicProperties(headers=headers))
    reject(channel, source)
    dead = get(channel, found)
    assert dead.body == b"memo"
    assert deaths(dead) == [(source, "rejected", 1, "", [source, "copy"])]


def test_blind_copies_keep_their_key_but_do_not_tell_it(channel: BlockingChannel) -> None:
    letters = fresh("letters")
    channel.exchange_declare(letters, "direct", auto_delete=True)
    source, found = declare(channel, letters), channel.queue_declare("", exclusive=True)
    channel.queue_bind(found.method.queue, letters, source)
    headers = {"BCC": [source]}
    channel.basic_publish("", "nobody", b"memo", pika.BasicProperties(headers=headers))
    reject(channel, source)
    dead = get(channel, found.method.queue)
    assert (dead.body, dead.method.routing_key) == (b"memo", "nobody")
    assert deaths(dead) == [(source, "rejected", 1, "", ["nobody"])]
    assert "BCC" not in dead.properties.headers


@pytest.mark.parametrize("overflow", ["drop-head", "reject-publish"])
def test_a_short_queue_passes_any_number_to_a_ready_consumer(
    channel: BlockingChannel, overflow: str
) -> None:
    """Only what waits counts, however many dead letters come at once."""
    short = fresh("short")
    arguments = {"x-max-length": 3, "x-overflow": overflow}
    channel.queue_declare(short, exclusive=True, arguments=arguments)
    inbox = Inbox(channel, short)
    source = declare(channel, "", short)
    bodies = publish_numbers(channel, source, 1, 10)
    for _ in bodies:
        get(channel, source, auto_ack=False)
    channel.basic_nack(0, multiple=True, requeue=False)
    assert inbox.wait_bodies(10) == bodies


def test_counts_grow_over_rounds_newest_first(channel: BlockingChannel) -> None:
    """The retry loop of many applications: work, reject, wait in a queue with a TTL, work."""
    work, waiting = fresh("work"), fresh("waiting")
    back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": work}
    away = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": waiting}
    channel.queue_declare(work, exclusive=True, arguments=away)
    channel.queue_declare(waiting, exclusive=True, arguments={**back, "x-message-ttl": SOON_MS})
    channel.basic_publish("", work, b"try me")
    for _ in range(3):
        reject(channel, work)
    last = get(channel, work)
    assert deaths(last) == [
        (waiting, "expired", 3, "", [waiting]),
        (work, "rejected", 3, "", [work]),
    ]
    headers = last.properties.headers
    assert (headers["x-first-death-reason"], headers["x-first-death-queue"]) == ("rejected", work)
    assert (last.body, last.method.redelivered) == (b"try me", False)


def test_a_circle_without_a_reject_ends(channel: BlockingChannel) -> None:
    first, second = fresh("first"), fresh("second")
    for name, target in ((first, second), (second, first)):
        arguments = {
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": target,
            "x-message-ttl": SOON_MS,
        }
        channel.queue_declare(name, exclusive=True, arguments=arguments)
    observed = fresh("observed")
    channel.queue_declare(
        observed,
        exclusive=True,
        arguments={"x-message-ttl": 50, "x-dead-letter-exchange": "amq.fanout"},
    )
    end = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(end, "amq.fanout")
    channel.basic_publish("", first, b"around")
    channel.basic_publish("", observed, b"fifty times longer")
    assert get(channel, end).body == b"fifty times longer"
    assert [ready_count(channel, name) for name in (first, second)] == [0, 0]


def test_an_absent_dead_letter_exchange_drops(channel: BlockingChannel) -> None:
    source = declare(channel, fresh("absent"))
    channel.basic_publish("", source, b"lost")
    channel.basic_publish("", source, b"kept")
    reject(channel, source)
    assert get_bodies(channel, source, 1) == [b"kept"]
    assert channel.is_open


def test_requeued_and_purged_messages_are_no_dead_letters(
    channel: BlockingChannel, queue: str
) -> None:
    source = declare(channel, "", queue)
    channel.basic_publish("", source, b"again")
    channel.basic_nack(get(channel, source, auto_ack=False).method.delivery_tag, requeue=True)
    assert channel.queue_purge(source).method.message_count == 1
    channel.basic_publish("", source, b"deleted")
    assert channel.queue_delete(source).method.message_count == 1
    assert ready_count(channel, queue) == 0
