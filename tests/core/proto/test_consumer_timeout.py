"""x-consumer-timeout: when channels are closed, and the cost of checking."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.amqp import Client, make_broker, publish, take_turns
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.consumer_timeouts import CHECK_MIN_MS
from warrenmq.core.context import BrokerLimits
from warrenmq.core.proto import consumer_timeout
from warrenmq.core.proto.delivery_times import TIMES_MAX, DeliveryTimes
from warrenmq.core.queue.rules import Rules
from warrenmq.core.queue.unacked import Unacked

SERVER_MS = 60_000


def started(timeout_ms: int = SERVER_MS) -> tuple[Broker, Client]:
    broker = make_broker(limits=BrokerLimits(consumer_timeout_ms=timeout_ms))
    return broker, Client(broker)


def wait(broker: Broker, ms: int) -> None:
    """Time passes as in a server: a turn whenever something is due."""
    clock = broker.clock
    assert isinstance(clock, ManualClock)
    end_ms = clock.now_ms() + ms
    while (next_ms := broker.timers.next_ms) is not None and next_ms <= end_ms:
        clock.advance(max(0, next_ms - clock.now_ms()))
        take_turns(broker)
    clock.advance(end_ms - clock.now_ms())
    take_turns(broker)


def closed_after_ms(broker: Broker, client: Client, until_ms: int, step_ms: int = 10) -> int | None:
    """When the channel of a client was closed, None if it was not; leaves the replies there."""
    for passed_ms in range(0, until_ms, step_ms):
        if not client.connection.channels[1].open:
            return passed_ms
        wait(broker, step_ms)
    return None


def hold(client: Client, queue: str = "q", *, count: int = 1, **fields: Any) -> None:
    """Somebody has so many messages and says nothing."""
    client.declare(queue, arguments=fields.pop("queue_arguments", {}))
    client.consume(queue, f"c-{queue}", **fields)
    client.feed(b"".join(publish(1, b"%d" % at, routing_key=queue) for at in range(count)))


# -- when, and how


@pytest.mark.parametrize("timeout_ms", [1_000, 7_000, SERVER_MS])
@pytest.mark.parametrize("after_ms", [0, 333, 5_999])
def test_the_timeout_is_never_early_and_little_late(timeout_ms: int, after_ms: int) -> None:
    broker, client = started()
    hold(client, queue_arguments={"x-consumer-timeout": timeout_ms}, count=0)
    wait(broker, after_ms)
    client.publish(b"a", routing_key="q")
    passed_ms = closed_after_ms(broker, client, 2 * timeout_ms)
    assert passed_ms is not None
    assert timeout_ms <= passed_ms <= timeout_ms + 2 * timeout_ms // 10 + 10


def test_acks_in_time_close_nothing() -> None:
    broker, client = started()
    hold(client, count=0)
    for tag in range(1, 30):
        client.publish(b"x", routing_key="q")
        wait(broker, SERVER_MS // 2)
        client.send("Basic.Ack", delivery_tag=tag)
    assert client.connection.channels[1].open


# -- whose timeout


@pytest.mark.parametrize(
    ("server_ms", "queue_arguments", "arguments"),
    [
        (0, {}, {}),
        (500, {"x-consumer-timeout": 0}, {}),
        (500, {}, {"x-consumer-timeout": 0}),
        (500, {"x-consumer-timeout": 500}, {"x-consumer-timeout": 0}),
    ],
)
def test_timeout_of_0_disables_it(
    server_ms: int, queue_arguments: dict[str, int], arguments: dict[str, int]
) -> None:
    broker, client = started(server_ms)
    hold(client, arguments=arguments, queue_arguments=queue_arguments)
    wait(broker, 100_000)
    assert client.connection.channels[1].open
    if not server_ms:
        assert broker.timers.next_ms is None


def test_a_shorter_timeout_does_not_shorten_a_longer_one() -> None:
    broker, client = started(0)
    hold(client, "long", queue_arguments={"x-consumer-timeout": 10_000})
    hold(client, "short", queue_arguments={"x-consumer-timeout": 1_000}, count=0)
    assert closed_after_ms(broker, client, 5_000) is None
    client.publish(b"x", routing_key="short")
    passed_ms = closed_after_ms(broker, client, 5_000)
    assert passed_ms is not None
    assert 1_000 <= passed_ms < 1_300


def test_a_timeout_set_by_policy() -> None:
    broker, client = started(0)
    hold(client)
    wait(broker, 5_000)
    broker.vhosts["/"].queues["q"].apply(Rules(consumer_timeout_ms=1_000))
    passed_ms = closed_after_ms(broker, client, 5_000)
    # Nobody had looked before, so the time before counts for nothing.
    assert passed_ms is not None
    assert 1_000 <= passed_ms < 1_300


# -- what it costs


def test_channels_without_unacked_messages_are_not_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker, client = started(1_000)
    client.declare("q")
    client.consume("q", no_ack=True)
    client.publish(b"x", routing_key="q")
    monkeypatch.setattr(Unacked, "outstanding", lambda self: pytest.fail("looked into"))
    wait(broker, 5_000)
    assert client.connection.channels[1].deliveries.times is None


def test_the_shortest_timeout_decides_the_period() -> None:
    broker, client = started(0)
    client.declare("q", arguments={"x-consumer-timeout": 1})
    now_ms = broker.clock.now_ms()
    assert broker.timers.next_ms == now_ms + CHECK_MIN_MS


def test_many_deliveries_are_checked_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_timeout, "CHECKS_PER_MS", 1)
    broker, client = started(0)
    hold(client, "long", queue_arguments={"x-consumer-timeout": 50_000}, count=0)
    for _ in range(1_000):  # A range each.
        client.publish(b"x", routing_key="long")
    hold(client, "short", queue_arguments={"x-consumer-timeout": 500}, count=0)
    wait(broker, 1_100)
    client.publish(b"x", routing_key="short")
    passed_ms = closed_after_ms(broker, client, 10_000)
    assert passed_ms is not None
    assert 700 <= passed_ms <= 500 + 1_000 + 100, "not after 500 ms and a tenth"


# -- when a message went out, as far as anybody knows


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=40))
def test_delivery_times_against_a_table(steps: list[tuple[int, int]]) -> None:
    marks, seen, out, next_tag = DeliveryTimes(), dict[int, int](), list[int](), 1
    for now_ms, (delivered, acked) in enumerate(steps):
        out += range(next_tag, next_tag + delivered)
        next_tag += delivered
        del out[:acked]
        marks.add(next_tag, now_ms, out[0] if out else 0)
        seen |= {tag: now_ms for tag in out if tag not in seen}
        assert {tag: marks.delivered_ms(tag) for tag in out} == {tag: seen[tag] for tag in out}
    assert marks.delivered_ms(next_tag) is None


def test_delivery_times_are_bounded_and_never_early() -> None:
    marks = DeliveryTimes()
    for now_ms in range(10 * TIMES_MAX):
        marks.add(now_ms + 2, now_ms, 1)
    known = [marks.delivered_ms(tag) for tag in range(1, 10 * TIMES_MAX + 1)]
    assert all(found is not None and found >= at for at, found in enumerate(known))
    assert len(set(known)) <= TIMES_MAX
    assert known == sorted(known, key=lambda found: found or 0)
    assert known[-1] == 10 * TIMES_MAX - 1
    recent = known[-TIMES_MAX // 2]
    assert recent is not None
    assert recent <= 10 * TIMES_MAX - TIMES_MAX // 2 + 2
