"""The hub's engine on the core in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.amqp import Client, make_broker
from tests.support.manual_store import ManualStore
from warrenmq.core.broker import Broker, Limits
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
    Outcome,
    Properties,
    QueueSpec,
)  # fmt: skip

WAIT_S = 10.0


class House:
    """An engine whose broker is turned over by a listener without sockets."""

    def __init__(self, store: ManualStore | None = None) -> None:
        self.broker: Broker = make_broker(store, limits=Limits(max_message_bytes=1000))
        self.listener = Listener(self.broker)
        self.engine: Engine = EmbeddedEngine(self.broker)
        self.deliveries: asyncio.Queue[Delivery] = asyncio.Queue()
        self.cancelled = asyncio.Event()

    async def publish(
        self, body: bytes = b"x", key: str = "q", exchange: str = "", queue: str | None = None
    ) -> Outcome:
        return await self.engine.publish("/", exchange, key, Properties(), body, queue=queue)

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
async def queue(house: House) -> str:
    await house.engine.declare_queue("/", QueueSpec("q"))
    return "q"


async def code_of(call: object) -> int:
    with pytest.raises(ChannelError) as caught:
        await call  # type: ignore[misc]
    return caught.value.code


# -- exchanges, queues, bindings


async def test_exchanges(house: House) -> None:
    spec = ExchangeSpec("x", "topic", arguments={"alternate-exchange": "rest"})
    assert await house.engine.exchange("/", "x") is None
    for _ in range(2):
        await house.engine.declare_exchange("/", spec)
    assert await house.engine.exchange("/", "x") == spec
    assert await code_of(house.engine.declare_exchange("/", ExchangeSpec("x", "fanout"))) == 406
    await house.engine.delete_exchange("/", "x")
    await house.engine.delete_exchange("/", "x")
    assert await house.engine.exchange("/", "x") is None


async def test_an_exchange_in_use(house: House, queue: str) -> None:
    await house.engine.declare_exchange("/", ExchangeSpec("x"))
    await house.engine.bind("/", BindingSpec("x", queue))
    assert await code_of(house.engine.delete_exchange("/", "x", if_unused=True)) == 406


async def test_queues(house: House) -> None:
    spec = QueueSpec("q", arguments={"x-max-length": 5})
    assert await house.engine.queue("/", "q") is None
    declared = await house.engine.declare_queue("/", spec)
    assert (declared.spec, declared.messages_ready, declared.consumers) == (spec, 0, 0)
    await house.publish()
    await house.publish()
    found = await house.engine.queue("/", "q")
    assert found is not None
    assert found.messages_ready == 2
    assert await code_of(house.engine.declare_queue("/", QueueSpec("q"))) == 406
    assert await code_of(house.engine.delete_queue("/", "q", if_empty=True)) == 406
    assert await house.engine.delete_queue("/", "q") == 2
    assert await house.engine.delete_queue("/", "q") == 0


async def test_the_engine_makes_a_name(house: House) -> None:
    made = await house.engine.declare_queue("/", QueueSpec(""))
    assert made.spec.name.startswith("amq.gen-")
    assert await house.publish(key=made.spec.name) is Outcome.ROUTED


async def test_an_exclusive_queue_is_the_engines(house: House) -> None:
    await house.engine.declare_queue("/", QueueSpec("mine", durable=False, exclusive=True))
    assert await house.publish(key="mine") is Outcome.ROUTED
    (close,) = Client(house.broker).send("Basic.Get", queue="mine")
    assert close["reply_code"] == 405
    await house.consume("mine")
    assert (await house.delivery()).message.routing_key == "mine"


async def test_bindings(house: House, queue: str) -> None:
    await house.engine.declare_exchange("/", ExchangeSpec("inner", "direct"))
    to_queue = BindingSpec("inner", queue, routing_key="k")
    to_exchange = BindingSpec("amq.topic", "inner", destination_is_queue=False, routing_key="#")
    await house.engine.bind("/", to_queue)
    await house.engine.bind("/", to_exchange)
    assert await house.publish(exchange="amq.topic", key="k") is Outcome.ROUTED
    assert await house.publish(exchange="amq.topic", key="other") is Outcome.UNROUTED
    await house.engine.unbind("/", to_exchange)
    assert await house.publish(exchange="amq.topic", key="k") is Outcome.UNROUTED


async def test_counting_routes(house: House, queue: str) -> None:
    await house.engine.declare_exchange("/", ExchangeSpec("e", "direct"))
    await house.engine.declare_queue("/", QueueSpec("other"))
    for bound, key in ((queue, "a"), ("other", "a"), (queue, "b")):
        await house.engine.bind("/", BindingSpec("e", bound, routing_key=key))
    counts = [await house.engine.route_count("/", "e", key) for key in ("a", "b", "c")]
    assert counts == [2, 1, 0]
    assert await house.engine.route_count("/", "", queue) == 1
    assert await code_of(house.engine.route_count("/", "none", "a")) == 404


async def test_ends_that_are_not_there(house: House, queue: str) -> None:
    bind = house.engine.bind
    assert await code_of(bind("/", BindingSpec("none", queue))) == 404
    assert await code_of(bind("/", BindingSpec("amq.fanout", "none"))) == 404
    assert await code_of(bind("/", BindingSpec("", queue))) == 403
    assert await code_of(house.engine.queue("v", "q")) == 404


# -- publishing


async def test_outcomes(house: House, queue: str) -> None:
    full = {"x-max-length": 0, "x-overflow": "reject-publish"}
    await house.engine.declare_queue("/", QueueSpec("full", arguments=full))  # type: ignore[arg-type]
    assert await house.publish() is Outcome.ROUTED
    assert await house.publish(key="none") is Outcome.UNROUTED
    assert await house.publish(key="full") is Outcome.REJECTED


async def test_straight_into_a_queue(house: House, queue: str) -> None:
    assert await house.publish(key="another key", queue=queue) is Outcome.ROUTED
    await house.consume()
    assert (await house.delivery()).message.routing_key == "another key"
    assert await code_of(house.publish(queue="none")) == 404


async def test_straight_into_several_queues(house: House, queue: str) -> None:
    await house.engine.declare_queue("/", QueueSpec("other"))
    publish_to = house.engine.publish_to
    names = [queue, "none", "other"]
    assert await publish_to("/", names, "a key", Properties(), b"x") is Outcome.ROUTED
    assert await publish_to("/", ["none"], "a key", Properties(), b"x") is Outcome.UNROUTED
    sequences = set()
    for name in (queue, "other"):
        await house.consume(name)
        delivery = await house.delivery()
        assert (delivery.message.routing_key, delivery.message.body) == ("a key", b"x")
        sequences.add(delivery.sequence)
    assert len(sequences) == 1  # it is kept once


async def test_refused_publishes(house: House) -> None:
    assert await code_of(house.publish(exchange="none")) == 404
    assert await code_of(house.publish(exchange="amq.rabbitmq.trace")) == 403
    assert await code_of(house.publish(bytes(1001))) == 406
    assert await house.publish(bytes(1000)) is Outcome.UNROUTED


async def test_any_user_id_passes(house: House, queue: str) -> None:
    """The hub publishes for whoever it has authenticated."""
    properties = Properties(user_id="somebody")
    assert await house.engine.publish("/", "", queue, properties, b"") is Outcome.ROUTED


async def test_a_publish_waits_for_its_commit() -> None:
    store = ManualStore()
    house = House(store)
    await house.listener.start([])
    await house.engine.declare_queue("/", QueueSpec("q"))
    persistent = Properties(delivery_mode=2)
    publishes = [
        asyncio.ensure_future(house.engine.publish("/", "", "q", persistent, b"x"))
        for _ in range(3)
    ]
    await asyncio.sleep(0)
    assert house.broker.counters.published == 3
    assert await house.publish() is Outcome.ROUTED, "a transient one waits for nothing"
    assert not any(publish.done() for publish in publishes)
    store.commit()
    async with asyncio.timeout(WAIT_S):
        assert await asyncio.gather(*publishes) == [Outcome.ROUTED] * 3
    await house.listener.stop()


async def test_a_disk_that_takes_no_more() -> None:
    store = ManualStore()
    house = House(store)
    await house.listener.start([])
    await house.engine.declare_queue("/", QueueSpec("q"))
    publish = asyncio.ensure_future(
        house.engine.publish("/", "", "q", Properties(delivery_mode=2), b"x")
    )
    await asyncio.sleep(0)
    assert not publish.done()
    store.refuse()
    async with asyncio.timeout(WAIT_S):
        assert await publish is Outcome.NOT_KEPT
    await house.listener.stop()


async def test_a_binding_waits_for_what_the_exchange_has_kept() -> None:
    store = ManualStore()
    house = House(store)
    await house.listener.start([])
    await house.engine.declare_queue("/", QueueSpec("q"))
    kept: Table = {"x-persist-messages": 5}
    await house.engine.declare_exchange("/", ExchangeSpec("x", "fanout", arguments=kept))
    publish = asyncio.ensure_future(
        house.engine.publish("/", "x", "", Properties(delivery_mode=2), b"x")
    )
    await asyncio.sleep(0)
    store.commit()
    async with asyncio.timeout(WAIT_S):
        assert await publish is Outcome.ROUTED
    spec = BindingSpec("x", "q", arguments={"x-from": 0})
    bind = asyncio.ensure_future(house.engine.bind("/", spec))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not bind.done()
    assert store.arrive() == 1
    async with asyncio.timeout(WAIT_S):
        await bind
    found = await house.engine.queue("/", "q")
    assert found is not None and found.messages_ready == 1
    await house.listener.stop()


# -- consuming


async def test_deliveries(house: House, queue: str) -> None:
    await house.consume()
    await house.publish(b"hello")
    delivery = await house.delivery()
    assert delivery.message.body == b"hello"
    delivery.nack(requeue=True)
    again = await house.delivery()
    assert again.message.redelivered
    assert again.sequence == delivery.sequence
    again.ack()
    info = await house.engine.queue("/", queue)
    assert info is not None
    assert (info.messages_ready, info.consumers) == (0, 1)


async def test_what_amqp_clients_publish_is_delivered(house: House, queue: str) -> None:
    await house.consume()
    Client(house.broker).publish(b"hello", {"content_type": "a/b"}, routing_key=queue)
    message = (await house.delivery()).message
    assert (message.body, message.properties.content_type) == (b"hello", "a/b")


async def test_prefetch(house: House, queue: str) -> None:
    await house.consume(prefetch=1)
    await house.publish(b"1")
    await house.publish(b"2")
    first = await house.delivery()
    assert house.deliveries.empty()
    first.ack()
    assert (await house.delivery()).message.body == b"2"


async def test_the_end_of_the_queue(house: House, queue: str) -> None:
    await house.consume()
    await house.engine.delete_queue("/", queue)
    async with asyncio.timeout(WAIT_S):
        await house.cancelled.wait()


async def test_cancel(house: House, queue: str) -> None:
    consumption = await house.consume()
    await house.publish()
    delivery = await house.delivery()
    await consumption.cancel()
    await consumption.cancel()
    delivery.nack(requeue=True)
    info = await house.engine.queue("/", queue)
    assert info is not None
    assert (info.messages_ready, info.consumers) == (1, 0)
    assert not house.cancelled.is_set()


async def test_an_exclusive_consumer_shuts_others_out(house: House, queue: str) -> None:
    Client(house.broker).consume(queue, exclusive=True)
    assert await code_of(house.consume()) == 403
    assert await code_of(house.consume("none")) == 404
