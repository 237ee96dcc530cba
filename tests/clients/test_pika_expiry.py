"""Limits in time and length through pika: TTL, expiration, x-expires, x-max-length."""

from __future__ import annotations

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from .support import (
    Delivery,
    Inbox,
    channel_closed_for,
    fresh,
    get,
    get_bodies,
    publish_numbers,
    pump,
    queue_exists,
    ready_count,
    wait_ready,
)

SOON_MS = 60
LONG_MS = 600_000


def expiring(milliseconds: int) -> pika.BasicProperties:
    return pika.BasicProperties(expiration=str(milliseconds))


def limited(channel: BlockingChannel, **arguments: object) -> str:
    """An exclusive queue with the arguments, given with _ for - and without their x-."""
    table = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    name = fresh("limited")
    channel.queue_declare(name, exclusive=True, arguments=table)
    return name


def dead_letter_to(queue: str) -> dict[str, object]:
    return {"dead_letter_exchange": "", "dead_letter_routing_key": queue}


def first_death(delivery: Delivery) -> tuple[object, object, object]:
    death = delivery.properties.headers["x-death"][0]
    return death["reason"], death["queue"], death["count"]


def test_a_queue_with_a_ttl_forgets(channel: BlockingChannel) -> None:
    queue = limited(channel, message_ttl=SOON_MS)
    channel.confirm_delivery()
    publish_numbers(channel, queue, 1, 5)
    wait_ready(channel, queue, 0)
    assert channel.basic_get(queue)[0] is None


@pytest.mark.parametrize(
    ("queue_ms", "message_ms"), [(SOON_MS, LONG_MS), (LONG_MS, SOON_MS), (SOON_MS, SOON_MS)]
)
def test_the_shorter_time_to_live_counts(
    channel: BlockingChannel, queue: str, queue_ms: int, message_ms: int
) -> None:
    source = limited(channel, message_ttl=queue_ms, **dead_letter_to(queue))
    channel.basic_publish("", source, b"late", expiring(message_ms))
    dead = get(channel, queue)
    assert (dead.body, *first_death(dead)) == (b"late", "expired", source, 1)


def test_only_what_expires_goes(channel: BlockingChannel, queue: str) -> None:
    source = limited(channel, **dead_letter_to(queue))
    channel.basic_publish("", source, b"first", expiring(SOON_MS))
    channel.basic_publish("", source, b"second", expiring(2 * SOON_MS))
    channel.basic_publish("", source, b"third", expiring(LONG_MS))
    channel.basic_publish("", source, b"fourth")
    assert [get(channel, queue).body for _ in range(2)] == [b"first", b"second"]
    assert get_bodies(channel, source, 2) == [b"third", b"fourth"]


@pytest.mark.warren_only("RabbitMQ looks at the head of the queue only")
def test_expired_messages_go_from_behind_others_too(channel: BlockingChannel, queue: str) -> None:
    source = limited(channel, **dead_letter_to(queue))
    channel.basic_publish("", source, b"stays")
    channel.basic_publish("", source, b"goes", expiring(SOON_MS))
    channel.basic_publish("", source, b"stays longer", expiring(LONG_MS))
    assert get(channel, queue).body == b"goes"
    assert get_bodies(channel, source, 2) == [b"stays", b"stays longer"]


def test_a_requeued_message_keeps_its_deadline(channel: BlockingChannel, queue: str) -> None:
    """Twenty returns take longer than one time to live: a new one each would never end."""
    source = limited(channel, message_ttl=SOON_MS, **dead_letter_to(queue))
    channel.basic_publish("", source, b"returned")

    def return_or_gone() -> bool:
        method, _, _ = channel.basic_get(source)
        if method is not None:
            channel.basic_nack(method.delivery_tag, requeue=True)
        return method is None

    pump(channel.connection, return_or_gone, "the end of a returned message")
    assert first_death(get(channel, queue)) == ("expired", source, 1)


def test_no_time_to_live_at_all_needs_a_waiting_consumer(
    channel: BlockingChannel, queue: str
) -> None:
    source = limited(channel, message_ttl=0, **dead_letter_to(queue))
    channel.basic_publish("", source, b"nobody waits")
    assert get(channel, queue).body == b"nobody waits"
    inbox = Inbox(channel, source)
    channel.basic_publish("", source, b"somebody waits")
    channel.basic_publish("", source, b"by message", expiring(0))
    assert inbox.wait_bodies(2) == [b"somebody waits", b"by message"]
    assert ready_count(channel, queue) == 0


@pytest.mark.parametrize("expiration", ["soon", "-1", "1.5", ""])
def test_a_bad_expiration_is_refused(channel: BlockingChannel, queue: str, expiration: str) -> None:
    with channel_closed_for(406, "PRECONDITION_FAILED - invalid expiration "):
        channel.basic_publish("", queue, b"", pika.BasicProperties(expiration=expiration))
        channel.queue_declare(queue, passive=True)


def test_an_idle_queue_expires(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    queue = limited(channel, expires=SOON_MS)
    pump(channel.connection, lambda: not queue_exists(channel, queue), f"the end of {queue}")


def test_a_consumer_keeps_an_expiring_queue(channel: BlockingChannel) -> None:
    """The idle twin, declared later, measures the time."""
    channel.confirm_delivery()
    used = limited(channel, expires=SOON_MS)
    inbox = Inbox(channel, used)
    idle = limited(channel, expires=3 * SOON_MS)
    pump(channel.connection, lambda: not queue_exists(channel, idle), f"the end of {idle}")
    assert queue_exists(channel, used)
    channel.basic_cancel(inbox.tag)
    pump(channel.connection, lambda: not queue_exists(channel, used), f"the end of {used}")


def test_over_its_length_a_queue_drops_the_oldest(channel: BlockingChannel, queue: str) -> None:
    source = limited(channel, max_length=3, **dead_letter_to(queue))
    bodies = publish_numbers(channel, source, 1, 5)
    assert get_bodies(channel, source, 3) == bodies[2:]
    dead = [get(channel, queue) for _ in range(2)]
    assert [one.body for one in dead] == bodies[:2]
    assert first_death(dead[0]) == ("maxlen", source, 1)


def test_a_length_in_bytes_counts_ready_bodies(channel: BlockingChannel) -> None:
    source = limited(channel, max_length_bytes=10)
    for body in (b"aaaa", b"bbbb", b"cc", b"dd"):
        channel.basic_publish("", source, body)
    assert get_bodies(channel, source, 3) == [b"bbbb", b"cc", b"dd"]


def test_messages_out_for_delivery_do_not_count(channel: BlockingChannel) -> None:
    source = limited(channel, max_length=2)
    publish_numbers(channel, source, 1, 2)
    for _ in range(2):
        get(channel, source, auto_ack=False)
    publish_numbers(channel, source, 3, 4)
    assert get_bodies(channel, source, 2) == [b"3", b"4"]


def test_both_limits_together(channel: BlockingChannel) -> None:
    source = limited(channel, max_length=3, max_length_bytes=6)
    for body in (b"1", b"2", b"3", b"4", b"5555"):
        channel.basic_publish("", source, body)
    assert get_bodies(channel, source, 3) == [b"3", b"4", b"5555"]


def test_rejected_by_a_full_queue_may_be_a_dead_letter(
    channel: BlockingChannel, queue: str
) -> None:
    source = limited(channel, max_length=1, overflow="reject-publish-dlx", **dead_letter_to(queue))
    channel.confirm_delivery()
    channel.basic_publish("", source, b"1")
    with pytest.raises(pika.exceptions.NackError):
        channel.basic_publish("", source, b"2")
    assert get_bodies(channel, source, 1) == [b"1"]
    dead = get(channel, queue)
    assert (dead.body, *first_death(dead)) == (b"2", "maxlen", source, 1)
