"""The hub's engine on the core in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.amqp import Client, make_broker
from tests.support.manual_store import ManualStore
from warrenmq.core.broker import Broker
from warrenmq.core.context import BrokerLimits
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.model import Table
from warrenmq.core.server.listener import Listener
from warrenmq.hub.engine.embedded import EmbeddedEngine
from warrenmq.hub.engine.port import (
    BindingSpec,
    Consumption,
    Delivery,
    Engine,
    ExchangeSpec,
    Properties,
    PublishOutcome,
    QueueSpec,
)

WAIT_S = 60.0


class House:
    """An engine whose broker is turned over by a listener without sockets."""

    def __init__(self, store: ManualStore | None = None) -> None:
        self.broker: Broker = make_broker(store, limits=BrokerLimits(max_message_bytes=1000))
        self.listener = Listener(self.broker)
        self.engine: Engine = EmbeddedEngine(self.broker)
        self.deliveries: asyncio.Queue[Delivery] = asyncio.Queue()
        self.cancelled = asyncio.Event()

    async def publish(
        self, body: bytes = b"x", key: str = "q", exchange: str = "", queue: str | None = None
    ) -> PublishOutcome:
        return await self.engine.publish(None, "/", exchange, key, Properties(), body, queue=queue)

    async def consume(self, queue: str = "q", prefetch: int = 10) -> Consumption:
        async def cancel() -> None:
            self.cancelled.set()

        return await self.engine.consume(
            "/", queue, prefetch=prefetch, on_delivery=self.deliveries.put_nowait, on_cancel=cancel
        )

    async def delivery(self) -> Delivery:
        async with asyncio.timeout(WAIT_S):
            return await self.deliveries.get()


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = House()
    await house.listener.start([])
    yield house
    await house.listener.stop()


@pytest.fixture
async def store() -> ManualStore:
    return ManualStore()


@pytest.fixture
async def manual(store: ManualStore) -> AsyncIterator[House]:
    """With the queue `q`; nothing is durable before the store commits."""
    house = House(store)
    await house.listener.start([])
    await house.engine.declare_queue("/", QueueSpec("q"))
    yield house
    await house.listener.stop()


@pytest.fixture
async def queue(house: House) -> str:
    await house.engine.declare_queue("/", QueueSpec("q"))
    return "q"


async def code_of(call: object) -> int:
    with pytest.raises(ChannelError) as caught:
        await call  # type: ignore[misc]
    return caught.value.code


# -- exchanges, queues, bindings


async def test_counting_routes(house: House, queue: str) -> None:
    await house.engine.declare_exchange("/", ExchangeSpec("e", "direct"))
    await house.engine.declare_queue("/", QueueSpec("other"))
    for bound, key in ((queue, "a"), ("other", "a"), (queue, "b")):
        await house.engine.bind("/", BindingSpec("e", bound, routing_key=key))
    counts = [await house.engine.route_count("/", "e", key) for key in ("a", "b", "c")]
    assert counts == [2, 1, 0]
    assert await house.engine.route_count("/", "", queue) == 1
    assert await code_of(house.engine.route_count("/", "none", "a")) == 404


# -- publishing


async def test_publishing_to_several_queues(house: House, queue: str) -> None:
    await house.engine.declare_queue("/", QueueSpec("other"))
    publish_to = house.engine.publish_to
    names = [queue, "none", "other"]
    assert await publish_to("/", names, "a key", Properties(), b"x") is PublishOutcome.ROUTED
    assert await publish_to("/", ["none"], "a key", Properties(), b"x") is PublishOutcome.UNROUTED
    sequences = set()
    for name in (queue, "other"):
        await house.consume(name)
        delivery = await house.delivery()
        assert (delivery.message.routing_key, delivery.message.body) == ("a key", b"x")
        sequences.add(delivery.sequence)
    assert len(sequences) == 1  # it is kept once


async def test_any_user_id_is_allowed(house: House, queue: str) -> None:
    """The hub publishes for whoever it has authenticated."""
    properties = Properties(user_id="somebody")
    assert (
        await house.engine.publish(None, "/", "", queue, properties, b"") is PublishOutcome.ROUTED
    )


async def test_a_publish_waits_for_its_commit(manual: House, store: ManualStore) -> None:
    persistent = Properties(delivery_mode=2)
    publishes = [
        asyncio.ensure_future(manual.engine.publish(None, "/", "", "q", persistent, b"x"))
        for _ in range(3)
    ]
    await asyncio.sleep(0)
    assert manual.broker.statistics.total.publish == 3
    assert await manual.publish() is PublishOutcome.ROUTED, "a transient one waits for nothing"
    assert not any(publish.done() for publish in publishes)
    store.commit()
    async with asyncio.timeout(WAIT_S):
        assert await asyncio.gather(*publishes) == [PublishOutcome.ROUTED] * 3


async def test_a_full_disk(manual: House, store: ManualStore) -> None:
    publish = asyncio.ensure_future(
        manual.engine.publish(None, "/", "", "q", Properties(delivery_mode=2), b"x")
    )
    await asyncio.sleep(0)
    assert not publish.done()
    store.refuse()
    async with asyncio.timeout(WAIT_S):
        assert await publish is PublishOutcome.NOT_DURABLE


async def test_a_binding_waits_for_the_replay(manual: House, store: ManualStore) -> None:
    kept: Table = {"x-persist-messages": 5}
    await manual.engine.declare_exchange("/", ExchangeSpec("x", "fanout", arguments=kept))
    publish = asyncio.ensure_future(
        manual.engine.publish(None, "/", "x", "", Properties(delivery_mode=2), b"x")
    )
    await asyncio.sleep(0)
    store.commit()
    async with asyncio.timeout(WAIT_S):
        assert await publish is PublishOutcome.ROUTED
    spec = BindingSpec("x", "q", arguments={"x-from": 0})
    bind = asyncio.ensure_future(manual.engine.bind("/", spec))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not bind.done()
    assert store.arrive() == 1
    async with asyncio.timeout(WAIT_S):
        await bind
    found = await manual.engine.queue("/", "q")
    assert found is not None and found.messages_ready == 1


# -- consuming


async def test_an_exclusive_consumer(house: House, queue: str) -> None:
    Client(house.broker).consume(queue, exclusive=True)
    assert await code_of(house.consume()) == 403
    assert await code_of(house.consume("none")) == 404
