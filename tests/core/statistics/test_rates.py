"""Rates and samples of counters, on a manual clock."""

from __future__ import annotations

import pytest

from tests.support.amqp import Client, make_broker, publish, take_turns
from warrenmq.core.clock import ManualClock
from warrenmq.core.statistics import rates
from warrenmq.core.statistics.counters import MessageCounters


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def client(clock: ManualClock) -> Client:
    client = Client(make_broker(clock=clock))
    client.declare("q")
    return client


def go_on(client: Client, clock: ManualClock, seconds: int, messages: int = 0) -> None:
    """Lets time pass, with so many messages to `q` in each second."""
    for _ in range(seconds):
        if messages:
            client.feed(publish(1, b"a", routing_key="q") * messages)
        clock.advance(1_000)
        take_turns(client.broker)


def counters_of(client: Client, name: str = "q") -> MessageCounters:
    found = client.broker.vhosts["/"].queues[name].counters
    assert found is not None
    return found


def rate(client: Client, field: str = "publish") -> float:
    return client.broker.statistics.sampler.rate(counters_of(client), field)


def test_the_rate_is_that_of_the_last_interval(client: Client, clock: ManualClock) -> None:
    go_on(client, clock, 5, 10)
    assert rate(client) == 10.0
    assert rate(client, "ack") == 0.0
    go_on(client, clock, 4, 20)
    assert rate(client) == 10.0, "the interval is not over"
    go_on(client, clock, 1, 20)
    assert rate(client) == 20.0


def test_the_rate_is_zero_after_an_interval_without_counts(
    client: Client, clock: ManualClock
) -> None:
    go_on(client, clock, 5, 10)
    go_on(client, clock, 7)
    assert rate(client) == 0.0
    go_on(client, clock, 93)
    go_on(client, clock, 5, 30)
    assert rate(client) == 30.0, "not averaged over the rest"


def test_nothing_is_sampled_while_nothing_is_counted(client: Client, clock: ManualClock) -> None:
    go_on(client, clock, 5, 1)
    go_on(client, clock, 20)
    next_ms = client.broker.timers.next_ms
    assert next_ms is None or next_ms >= clock.now_ms() + rates.INTERVAL_MS
    assert counters_of(client).samples is None, "memory is for what is active"
    go_on(client, clock, 5, 2)
    assert rate(client) == 2.0


def test_samples_are_kept_for_ten_minutes(client: Client, clock: ManualClock) -> None:
    go_on(client, clock, 5, 1)
    go_on(client, clock, 10)
    go_on(client, clock, 5, 1)
    ring = client.broker.statistics.sampler.ring(counters_of(client))
    assert ring is not None
    now_ms = clock.now_ms()
    times = range(now_ms, now_ms - 30_000, -5_000)
    publish_at = MessageCounters.FIELDS.index("publish")
    found = [(at - now_ms, values[publish_at]) for at, values in ring.at(iter(times))]
    assert found == [(0, 10), (-5_000, 5), (-10_000, 5), (-15_000, 5), (-20_000, 0)]


def test_number_of_objects_with_samples_is_bounded(
    client: Client, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = client.broker.statistics.sampler
    client.declare("r")
    client.feed(publish(1, b"a", routing_key="r"))
    monkeypatch.setattr(rates, "RINGS_MAX", 4)
    go_on(client, clock, 5)
    go_on(client, clock, 5, 1)
    assert sampler.ring(counters_of(client, "r")) is not None
    kept = sampler.ring(counters_of(client))
    assert kept is None, "r, its channel, its virtual host and the server came first"
    go_on(client, clock, rates.RING_SAMPLES * 5)
    go_on(client, clock, 5, 1)
    assert sampler.ring(counters_of(client)) is not None
    assert sampler.ring(counters_of(client, "r")) is None, "nothing to be seen there any more"


def test_the_history_has_seconds_and_minutes(client: Client, clock: ManualClock) -> None:
    go_on(client, clock, 130, 2)
    history = client.broker.statistics.sampler.history
    publish_at = MessageCounters.FIELDS.index("publish")

    def published(age_ms: int) -> list[int]:
        ring = history.ring(age_ms)
        last_ms = ring.last_ms
        times = range(last_ms, last_ms - 2 * ring.step_ms, -ring.step_ms)
        return [values[publish_at] for _, values in ring.at(iter(times))]

    assert published(60_000) == [260, 258]
    newest, before = published(3_600_000)
    assert newest == 260
    assert 100 <= before <= 240
