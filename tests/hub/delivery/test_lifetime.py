"""A message in a retry queue ages: what expires while it waits is never delivered."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hub.delivery.test_concurrency import Handed
from tests.hub.support import House, attempts_of, deliveries, request, until
from tests.support.http import Callback
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.definitions.kinds import PolicyDefinition
from warrenmq.core.message.model import Message, Properties, Table
from warrenmq.hub.deadletter.dead_letter import read_dead_letter, replayed_properties
from warrenmq.hub.delivery.envelope import Envelope
from warrenmq.hub.delivery.lifetime import left_s, with_arrival
from warrenmq.hub.delivery.retry_queues import RetryQueues
from warrenmq.hub.engine.port import BindingSpec, ExchangeSpec, QueueSpec
from warrenmq.hub.requests import Resource

WORK = Resource("/", "q", "work")
MORTAL: Table = {"x-dead-letter-exchange": "morgue"}
TTL: Table = {"x-message-ttl": 1_500}


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second attempt would come when the messages of these tests are long over."""
    monkeypatch.setattr("warrenmq.hub.delivery.retry.DELAYS_S", (3_600,))


async def make(house: House, arguments: Table) -> None:
    """A queue that gets what the exchange `news` gets, and one for what expires in it."""
    engine = house.engine
    await engine.declare_exchange("/", ExchangeSpec("morgue", "topic"))
    await engine.declare_queue("/", QueueSpec("late"))
    await engine.bind("/", BindingSpec("morgue", "late", routing_key="eu.#"))
    await engine.declare_queue("/", QueueSpec("work", arguments=arguments))
    await engine.bind("/", BindingSpec("news", "work", routing_key="#"))


async def fail_once(house: House, callback: Callback, **options: Any) -> None:
    await house.hub.subscriptions.subscribe(request(WORK, callback.url, **options))
    callback.script(503)


async def expired(house: House) -> Message:
    [taken] = await house.take("late", 1)
    return taken.message


@pytest.mark.parametrize(
    ("arguments", "expiration", "policy"),
    [({}, "1500", None), (TTL, None, None), ({}, None, 1_500), (TTL, "60000", 60_000)],
    ids=["its own", "the queue's", "a policy's", "the shortest"],
)
async def test_a_waiting_message_expires_as_in_its_queue(
    house: House, broker: Broker, callback: Callback,
    arguments: Table, expiration: str | None, policy: int | None,
) -> None:  # fmt: skip
    await make(house, arguments | MORTAL)
    if policy is not None:
        definition: Table = {"message-ttl": policy}
        record = PolicyDefinition("/", "short", "^work$", "queues", 0, definition)
        broker.vhosts["/"].policies.set(record)
    await fail_once(house, callback)
    await house.publish("eu.fr", b"bonjour", expiration=expiration, headers={"x-mine": 1})
    message = await expired(house)
    assert (message.body, message.routing_key, len(callback.deliveries)) == (b"bonjour", "eu.fr", 1)
    headers = message.properties.headers or {}
    deaths: Any = headers["x-death"]
    [death] = deaths
    assert (death["queue"], death["reason"], death["exchange"]) == ("work", "expired", "news")
    assert headers["x-mine"] == 1 and not any(name.startswith("x-hub-") for name in headers)


async def test_a_new_policy_counts_from_the_arrival(
    house: House, broker: Broker, callback: Callback
) -> None:
    """Counts from its arrival, as for those that never left the queue."""
    await make(house, MORTAL)
    await fail_once(house, callback)
    await house.publish("eu.fr", b"old", expiration="9000")
    await until(lambda: _is_waiting_for_retry(house), "message in a retry queue")
    definition: Table = {"message-ttl": 1}
    broker.vhosts["/"].policies.set(PolicyDefinition("/", "p", "^work$", "queues", 0, definition))
    assert (await expired(house)).body == b"old"
    assert len(callback.deliveries) == 1


async def test_strict_order_waits_until_expiration(house: House, callback: Callback) -> None:
    await make(house, MORTAL)
    await fail_once(house, callback, given={"hub.order": "strict"})
    await house.publish("eu.fr", b"old", expiration="1500")
    await house.publish("eu.fr", b"new")
    assert [one.body for one in await deliveries(callback, 2)] == [b"old", b"new"]
    assert (await expired(house)).body == b"old"
    await attempts_of(house, 2)


async def test_no_step_is_longer_than_the_time_to_live(house: House) -> None:
    retry_queues = RetryQueues(house.engine, ManualClock(), house.hub.internal_headers)
    message = Message("news", "k", Properties(expiration="400000"), b"x")
    handed = Handed()
    handed.message, handed.time_to_live_s = message, 400.0
    await retry_queues.enqueue("/", "in", message, Envelope("msg_1", "news", "k"), 4_000.0, handed)
    [waiting] = await house.take("hub.retry.300s", 1)
    assert waiting.message.properties.expiration is None


async def _is_waiting_for_retry(house: House) -> bool:
    return bool(await house.depth("hub.retry.5s"))


def delivered(age_s: float, time_to_live_s: float | None = None, expiration: str = "") -> Handed:
    handed = Handed()
    properties = Properties(expiration=expiration or None)
    handed.message = Message("", "q", properties, b"")
    handed.age_s, handed.time_to_live_s = age_s, time_to_live_s
    return handed


def test_both_limits_count_from_the_first_arrival() -> None:
    first = with_arrival(Envelope("i", "e", "k"), delivered(2, 9, "30000"), now_s=100)
    assert (first.arrived_at, first.expiration) == (98, "30000")
    assert with_arrival(first, delivered(1, 9, "5"), now_s=120) == first
    assert left_s(first, delivered(1), now_s=120) == 30 - 22
    assert left_s(first, delivered(1, 25), now_s=120) == 25 - 22
    assert left_s(Envelope("i", "e", "k"), delivered(1, 25), now_s=120) == 24
    assert left_s(Envelope("i", "e", "k"), delivered(1), now_s=120) is None


async def test_a_forged_arrival_gives_no_more_time(
    house: House,
) -> None:
    headers: Table = {"x-hub-arrived-at": 2**47, "x-hub-expiration": "9" * 30}
    forged = house.hub.internal_headers.read(Message("", "q", Properties(headers=headers), b""), 1)
    assert left_s(forged, delivered(1, 25), now_s=120) == 24


async def test_the_age_of_a_replay_begins_at_zero(house: House) -> None:
    """Somebody wants it delivered although it is old."""
    handed = delivered(50, 60, "60000")
    envelope = with_arrival(Envelope("msg_1", "news", "k", failures=12), handed, now_s=100)
    await RetryQueues(house.engine, ManualClock(), house.hub.internal_headers).add_dead_letter(
        "/", handed.message, envelope, "1", "tried"
    )
    [dead] = await house.take("hub.dead", 1)
    assert dead.message.properties.expiration is None
    internal_headers = house.hub.internal_headers
    again = replayed_properties(await read_dead_letter("/", dead, lambda _: None, internal_headers))
    assert again.expiration == "60000"
    again = await internal_headers.sealed(again, b"")
    replayed = internal_headers.read(Message("", "q", again, b""), 1)
    assert replayed.message_id == "msg_1"
    assert left_s(replayed, delivered(0), now_s=500) is None
