"""x-consumer-timeout: which channel is closed, when, and what it costs the others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.amqp import Client, Reply, bodies, make_broker, names, publish, take_turns
from warrenmq.core.broker import Broker, Limits
from warrenmq.core.clock import ManualClock
from warrenmq.core.proto import consumer_timeout
from warrenmq.core.proto.consumer_timeout import LOOK_MIN_MS, MOMENTS_MAX, Marks
from warrenmq.core.queue.consumer import Consumer
from warrenmq.core.queue.queue import Queue
from warrenmq.core.queue.rules import Rules
from warrenmq.core.queue.unacked import Unacked

SERVER_MS = 60_000
LOOK_MS = 6_000


def started(timeout_ms: int = SERVER_MS) -> tuple[Broker, Client]:
    broker = make_broker(limits=Limits(consumer_timeout_ms=timeout_ms))
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


def test_the_channel_is_closed_and_its_messages_go_back() -> None:
    broker, client = started()
    other = Client(broker)
    hold(client, count=3)
    wait(broker, SERVER_MS + 2 * LOOK_MS)
    (close,) = client.come()
    assert (close.name, close.channel, close["reply_code"]) == ("Channel.Close", 1, 406)
    assert (close["class_id"], close["method_id"]) == (0, 0)
    assert close["reply_text"].startswith(
        "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. "
        f"Timeout value used: {SERVER_MS} ms."
    )
    assert len(close["reply_text"]) < 255
    delivered = other.consume("q")
    assert bodies(delivered) == [b"0", b"1", b"2"]
    assert all(reply["redelivered"] for reply in delivered)


def test_nobody_else_notices() -> None:
    broker, client = started()
    hold(client)
    client.send("Channel.Open", 2)
    client.declare("other")
    client.consume("other", channel=2)
    bystander = Client(broker)
    wait(broker, SERVER_MS + 2 * LOOK_MS)
    assert [reply.channel for reply in client.come()] == [1]
    assert bystander.come() == []
    client.feed(b"")
    client.publish(b"on", channel=2, routing_key="other")
    assert bodies(client.replies) == [b"on"]


def test_the_channel_can_be_used_again() -> None:
    broker, client = started()
    hold(client)
    wait(broker, SERVER_MS + 2 * LOOK_MS)
    client.send("Channel.CloseOk")
    assert names(client.send("Channel.Open")) == ["Channel.OpenOk"]
    assert bodies(client.consume("q")) == [b"0"]


@pytest.mark.parametrize("timeout_ms", [1_000, 7_000, SERVER_MS])
@pytest.mark.parametrize("after_ms", [0, 333, 5_999])
def test_never_early_and_not_much_late(timeout_ms: int, after_ms: int) -> None:
    broker, client = started()
    hold(client, queue_arguments={"x-consumer-timeout": timeout_ms}, count=0)
    wait(broker, after_ms)
    client.publish(b"a", routing_key="q")
    passed_ms = closed_after_ms(broker, client, 2 * timeout_ms)
    assert passed_ms is not None
    assert timeout_ms <= passed_ms <= timeout_ms + 2 * timeout_ms // 10 + 10


def test_what_is_acked_in_time_closes_nothing() -> None:
    broker, client = started()
    hold(client, count=0)
    for tag in range(1, 30):
        client.publish(b"x", routing_key="q")
        wait(broker, SERVER_MS // 2)
        client.send("Basic.Ack", delivery_tag=tag)
    assert client.connection.channels[1].open


def test_one_left_over_among_many_acked() -> None:
    broker, client = started(1_000)
    hold(client, count=0)
    for tag in range(1, 40):
        client.publish(b"x", routing_key="q")
        wait(broker, 20)
        if tag != 5:
            client.send("Basic.Ack", delivery_tag=tag)
    passed_ms = closed_after_ms(broker, client, 2_000)
    assert passed_ms is not None
    assert 1_000 - 35 * 20 <= passed_ms <= 1_200 - 35 * 20 + 20


# -- whose timeout


def test_the_consumer_s_own_comes_first_then_the_queue_s() -> None:
    broker, client = started()
    ends = list[int]()
    for arguments, queue_arguments in (
        ({"x-consumer-timeout": 2_000}, {"x-consumer-timeout": 5_000}),
        ({}, {"x-consumer-timeout": 5_000}),
        ({}, {}),
    ):
        client = Client(broker)
        hold(client, f"q{len(ends)}", arguments=arguments, queue_arguments=queue_arguments)
        passed_ms = closed_after_ms(broker, client, 2 * SERVER_MS, 100)
        assert passed_ms is not None
        ends.append(passed_ms)
        assert f"used: {(2_000, 5_000, SERVER_MS)[len(ends) - 1]} ms" in last(client)["reply_text"]
    assert [round(end / 1_000) for end in ends[:2]] == [2, 5]


def last(client: Client) -> Reply:
    return client.come()[-1]


@pytest.mark.parametrize(
    ("server_ms", "queue_arguments", "arguments"),
    [
        (0, {}, {}),
        (500, {"x-consumer-timeout": 0}, {}),
        (500, {}, {"x-consumer-timeout": 0}),
        (500, {"x-consumer-timeout": 500}, {"x-consumer-timeout": 0}),
    ],
)
def test_0_is_none(
    server_ms: int, queue_arguments: dict[str, int], arguments: dict[str, int]
) -> None:
    broker, client = started(server_ms)
    hold(client, arguments=arguments, queue_arguments=queue_arguments)
    wait(broker, 100_000)
    assert client.connection.channels[1].open
    if not server_ms:
        assert broker.timers.next_ms is None


def test_a_longer_one_is_waited_for_beside_a_shorter_one() -> None:
    broker, client = started(0)
    hold(client, "long", queue_arguments={"x-consumer-timeout": 10_000})
    hold(client, "short", queue_arguments={"x-consumer-timeout": 1_000}, count=0)
    assert closed_after_ms(broker, client, 5_000) is None
    client.publish(b"x", routing_key="short")
    passed_ms = closed_after_ms(broker, client, 5_000)
    assert passed_ms is not None
    assert 1_000 <= passed_ms < 1_300


def test_what_was_got_by_get_has_the_queue_s() -> None:
    broker, client = started()
    client.declare("q", arguments={"x-consumer-timeout": 1_000})
    client.publish(b"x", routing_key="q")
    assert client.call("Basic.Get", queue="q").body == b"x"
    passed_ms = closed_after_ms(broker, client, 5_000)
    assert passed_ms is not None
    assert 1_000 <= passed_ms < 1_300


def test_a_policy_may_bring_one() -> None:
    broker, client = started(0)
    hold(client)
    wait(broker, 5_000)
    broker.vhosts["/"].queues["q"].apply(Rules(consumer_timeout_ms=1_000))
    passed_ms = closed_after_ms(broker, client, 5_000)
    # Nobody had looked before, so the time before counts for nothing.
    assert passed_ms is not None
    assert 1_000 <= passed_ms < 1_300


@pytest.mark.parametrize("value", [-1, True, "1000", 2**62, None])
def test_nonsense_is_refused(value: object) -> None:
    _, client = started()
    client.declare("q")
    close = client.call("Basic.Consume", queue="q", arguments={"x-consumer-timeout": value})
    assert (close.name, close["reply_code"]) == ("Channel.Close", 406)
    assert "x-consumer-timeout" in close["reply_text"]


# -- what it costs


def test_channels_without_unacked_messages_are_not_looked_into(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker, client = started(1_000)
    client.declare("q")
    client.consume("q", no_ack=True)
    client.publish(b"x", routing_key="q")
    monkeypatch.setattr(Unacked, "outstanding", lambda self: pytest.fail("looked into"))
    wait(broker, 5_000)
    assert client.connection.channels[1].marks is None


def test_one_appointment_at_a_time() -> None:
    """Each shorter timeout takes the place of those before; there are no looks without end."""
    broker, client = started()
    for timeout_ms in (50_000, 20_000, 30_000, 10_000, 10_000):
        name = f"q{timeout_ms}"
        client.declare(name, arguments={"x-consumer-timeout": timeout_ms})
    wait(broker, 10_000)
    looks = [entry for entry in broker.timers._heap if entry[2].action is not None]
    assert len(looks) == 1


def test_the_shortest_one_bounds_how_often_it_looks() -> None:
    broker, client = started(0)
    client.declare("q", arguments={"x-consumer-timeout": 1})
    now_ms = broker.clock.now_ms()
    assert broker.timers.next_ms == now_ms + LOOK_MIN_MS


def test_very_many_are_looked_at_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with long timeouts beside a short one; it is found late then, but found."""
    monkeypatch.setattr(consumer_timeout, "LOOKS_A_MS", 1)
    broker, client = started(0)
    hold(client, "long", queue_arguments={"x-consumer-timeout": 50_000}, count=0)
    for _ in range(1_000):  # A range each.
        client.publish(b"x", routing_key="long")
    asked: list[object] = []
    timeout_of = broker.consumer_timeouts._timeout_ms

    def asking(consumer: Consumer | None, queue: Queue) -> int:
        asked.append(queue)
        return timeout_of(consumer, queue)

    monkeypatch.setattr(broker.consumer_timeouts, "_timeout_ms", asking)
    hold(client, "short", queue_arguments={"x-consumer-timeout": 500}, count=0)
    wait(broker, 450)
    assert not asked
    wait(broker, 3_550)
    assert 3_000 <= len(asked) <= 4_000
    client.publish(b"x", routing_key="short")
    passed_ms = closed_after_ms(broker, client, 10_000)
    assert passed_ms is not None
    assert 500 <= passed_ms <= 500 + 1_000 + 100


# -- when a message went out, as far as anybody knows


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=40))
def test_nothing_is_thought_older_than_it_is(steps: list[tuple[int, int]]) -> None:
    """Deliveries and acks of the oldest ones; against a table of when each was seen first."""
    marks, seen, out, next_tag = Marks(), dict[int, int](), list[int](), 1
    for now_ms, (delivered, acked) in enumerate(steps):
        out += range(next_tag, next_tag + delivered)
        next_tag += delivered
        del out[:acked]
        marks.add(next_tag, now_ms, out[0] if out else 0)
        seen |= {tag: now_ms for tag in out if tag not in seen}
        assert {tag: marks.delivered_ms(tag) for tag in out} == {tag: seen[tag] for tag in out}
    assert marks.delivered_ms(next_tag) is None


def test_moments_are_forgotten_with_what_was_delivered_then() -> None:
    marks = Marks()
    for now_ms in range(100):
        marks.add(next_tag=10, now_ms=now_ms, oldest_tag=5)
    assert (marks.delivered_ms(9), len(marks._tags)) == (0, 1)
    for now_ms in range(100, 200):
        marks.add(next_tag=now_ms, now_ms=now_ms, oldest_tag=now_ms - 3)
    assert marks._tags == [197, 198, 199]


def test_moments_have_a_bound_and_are_later_at_most() -> None:
    marks = Marks()
    for now_ms in range(10 * MOMENTS_MAX):
        marks.add(now_ms + 2, now_ms, 1)
        assert len(marks._tags) <= MOMENTS_MAX
    known = [marks.delivered_ms(tag) for tag in range(1, 10 * MOMENTS_MAX + 1)]
    assert all(found is not None and found >= at for at, found in enumerate(known))
    assert known == sorted(known, key=lambda found: found or 0)
    assert known[-1] == 10 * MOMENTS_MAX - 1
    recent = known[-MOMENTS_MAX // 2]
    assert recent is not None
    assert recent <= 10 * MOMENTS_MAX - MOMENTS_MAX // 2 + 2
