"""aio-pika: robust connections, confirms, iterators, patterns for remote calls and work queues."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import aio_pika
import aiormq
import pytest
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue
from aio_pika.exceptions import ChannelClosed, DeliveryError, PublishError
from aio_pika.patterns import RPC, Master
from aiormq import spec
from aiormq.abc import DeliveredMessage

from .support import WAIT_S, Broker, fresh


@pytest.fixture
async def connection(broker: Broker) -> AsyncIterator[aio_pika.abc.AbstractRobustConnection]:
    async with await aio_pika.connect_robust(broker.url) as connection:
        yield connection


@pytest.fixture
async def channel(connection: aio_pika.abc.AbstractConnection) -> AbstractChannel:
    return await connection.channel()


async def exclusive_queue(channel: AbstractChannel, **arguments: Any) -> AbstractQueue:
    return await channel.declare_queue(fresh("queue"), exclusive=True, arguments=arguments)


async def take(queue: AbstractQueue, count: int) -> list[AbstractIncomingMessage]:
    """Consumes until `count` messages came, each acknowledged."""
    messages: list[AbstractIncomingMessage] = []
    async with asyncio.timeout(WAIT_S):
        async with queue.iterator() as iterator:
            async for message in iterator:
                await message.ack()
                messages.append(message)
                if len(messages) == count:
                    break
    return messages


async def test_evan_and_anders_follow_tony(channel: AbstractChannel) -> None:
    exchange = await channel.declare_exchange(fresh("news"), "direct", auto_delete=True)
    queues = [await exclusive_queue(channel) for _ in ("evan", "anders")]
    for queue in queues:
        await queue.bind(exchange, "tony")
    await exchange.publish(aio_pika.Message(b"is at work"), "tony")
    for queue in queues:
        (message,) = await take(queue, 1)
        assert (message.body, message.routing_key, message.exchange) == (
            b"is at work",
            "tony",
            exchange.name,
        )
    returned = await exchange.publish(aio_pika.Message(b"is asleep"), "evan")
    assert isinstance(returned, DeliveredMessage)
    assert isinstance(returned.delivery, spec.Basic.Return)
    assert (returned.delivery.reply_code, returned.body) == (312, b"is asleep")


async def test_a_thousand_publishes_in_flight_are_all_confirmed(channel: AbstractChannel) -> None:
    queue = await exclusive_queue(channel)
    bodies = [b"%d" % number for number in range(1000)]
    results = await asyncio.gather(
        *(channel.default_exchange.publish(aio_pika.Message(body), queue.name) for body in bodies)
    )
    assert all(isinstance(result, spec.Basic.Ack) for result in results)
    assert [message.body for message in await take(queue, 1000)] == bodies


async def test_a_full_queue_that_rejects_says_nack(channel: AbstractChannel) -> None:
    queue = await exclusive_queue(channel, **{"x-max-length": 1, "x-overflow": "reject-publish"})
    await channel.default_exchange.publish(aio_pika.Message(b"1"), queue.name)
    with pytest.raises(DeliveryError):
        await channel.default_exchange.publish(aio_pika.Message(b"2"), queue.name)
    assert [message.body for message in await take(queue, 1)] == [b"1"]


async def test_unroutable_messages_raise_with_their_return(connection: Any) -> None:
    channel = await connection.channel(on_return_raises=True)
    with pytest.raises(PublishError) as caught:
        await channel.default_exchange.publish(aio_pika.Message(b"is at work"), "no.queue")
    returned = caught.value.message
    assert returned is not None and isinstance(returned.delivery, spec.Basic.Return)
    assert (returned.delivery.reply_code, returned.delivery.reply_text) == (312, "NO_ROUTE")
    assert returned.body == b"is at work"


async def test_everything_in_a_message_arrives(channel: AbstractChannel) -> None:
    queue = await exclusive_queue(channel)
    headers: dict[str, Any] = {
        "bool": True,
        "int": -5,
        "long": 2**40,
        "double": 1.5,
        "decimal": Decimal("3.14"),
        "text": "grüße",
        "time": datetime(2026, 11, 21, 9, 30, 15, tzinfo=UTC),
        "nothing": None,
        "list": [1, "two", [3]],
        "table": {"deep": {"deeper": "x"}},
    }
    sent = aio_pika.Message(
        b"body",
        headers=headers,
        content_type="text/plain",
        content_encoding="identity",
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        priority=3,
        correlation_id="c",
        reply_to="r",
        expiration=60.0,
        message_id="m",
        timestamp=datetime(2026, 11, 21, 9, 30, 15, tzinfo=UTC),
        type="t",
        user_id="guest",
        app_id="a",
    )
    await channel.default_exchange.publish(sent, queue.name)
    (got,) = await take(queue, 1)
    told, found = dict(sent.info()), dict(got.info())
    assert {name: found[name] for name in told if told[name] is not None} == {
        name: value for name, value in told.items() if value is not None
    }
    assert got.body == b"body"


async def test_messages_processed_in_a_block(channel: AbstractChannel) -> None:
    letters = await exclusive_queue(channel)
    queue = await exclusive_queue(
        channel,
        **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": letters.name},
    )
    for body in (b"good", b"bad", b"again"):
        await channel.default_exchange.publish(aio_pika.Message(body), queue.name)
    async with (await queue.get()).process():
        pass
    with pytest.raises(ZeroDivisionError):
        async with (await queue.get()).process():
            raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        async with (await queue.get()).process(requeue=True):
            raise ZeroDivisionError
    (again,) = await take(queue, 1)
    assert (again.body, again.redelivered) == (b"again", True)
    (dead,) = await take(letters, 1)
    assert dead.body == b"bad"
    assert dead.headers["x-first-death-reason"] == "rejected"


async def test_prefetch_is_shared_among_tasks(connection: Any) -> None:
    """Four workers with one message each in hand; nobody gets a second before settling."""
    queue = await exclusive_queue(await connection.channel())
    hands: list[asyncio.Queue[AbstractIncomingMessage]] = []
    for _ in range(4):
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=1)
        hand: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
        hands.append(hand)
        await (await channel.get_queue(queue.name)).consume(hand.put)
    publisher = await connection.channel()
    for number in range(8):
        await publisher.default_exchange.publish(aio_pika.Message(b"%d" % number), queue.name)
    async with asyncio.timeout(WAIT_S):
        first = [await hand.get() for hand in hands]
        declared = await publisher.declare_queue(queue.name, passive=True)
        assert declared.declaration_result.message_count == 4
        assert all(hand.empty() for hand in hands)
        await first[2].ack()
        assert (await hands[2].get()).body == b"4"
        assert all(hand.empty() for hand in hands)


async def test_remote_procedure_calls(connection: Any) -> None:
    """The pattern rests on an exclusive queue, a headers exchange for dead letters and returns."""
    serving, asking = await connection.channel(), await connection.channel()
    name = fresh("multiply")

    async def multiply(*, x: int, y: int) -> int:
        return x * y

    server = await RPC.create(serving)
    await server.register(name, multiply, auto_delete=True)
    client = await RPC.create(asking)
    async with asyncio.timeout(WAIT_S):
        results = await asyncio.gather(
            *(client.call(name, kwargs={"x": number, "y": 3}) for number in range(50))
        )
        assert results == [number * 3 for number in range(50)]
        with pytest.raises(aio_pika.exceptions.MessageProcessError):
            await client.call(fresh("nobody"), expiration=60)
        await server.close()
        await client.close()


async def test_a_call_that_nobody_takes_expires(connection: Any) -> None:
    """The question's TTL sends it to the dead letter exchange, which finds the asker."""
    name, channel = fresh("busy"), await connection.channel()
    arguments = {"x-dead-letter-exchange": RPC.DLX_NAME}
    client = await RPC.create(await connection.channel())
    await channel.declare_queue(name, auto_delete=True, arguments=arguments)
    async with asyncio.timeout(WAIT_S):
        with pytest.raises(TimeoutError):
            await client.call(name, expiration=1)
    await client.close()


async def test_work_for_several_workers(connection: Any) -> None:
    name = fresh("work")
    done: list[int] = []
    finished = asyncio.Event()
    rejected_once = asyncio.Event()

    async def work(*, number: int) -> None:
        if number == 3 and not rejected_once.is_set():
            rejected_once.set()
            raise aio_pika.patterns.NackMessage(requeue=True)
        done.append(number)
        if len(done) == 20:
            finished.set()

    channels = [await connection.channel() for _ in range(3)]
    for channel in channels[:2]:
        await channel.set_qos(prefetch_count=1)
        await Master(channel).create_worker(name, work, auto_delete=True)
    master = Master(channels[2])
    for number in range(20):
        await master.create_task(name, {"number": number})
    async with asyncio.timeout(WAIT_S):
        await finished.wait()
    assert sorted(done) == list(range(20))
    assert rejected_once.is_set()


async def test_the_end_of_a_queue_ends_its_iterator(connection: Any) -> None:
    channel, other = await connection.channel(), await connection.channel()
    queue = await channel.declare_queue(fresh("queue"))
    cancelled = asyncio.Event()

    async def on_message(message: AbstractIncomingMessage) -> None:
        raise AssertionError("no message was published")

    await queue.consume(on_message, consumer_tag="mine")
    underlying = await channel.get_underlay_channel()
    consumers = underlying.consumers
    assert "mine" in consumers
    await other.queue_delete(queue.name)
    async with asyncio.timeout(WAIT_S):
        while "mine" in consumers:
            await asyncio.sleep(0.01)
        cancelled.set()
    assert not channel.is_closed


async def test_a_robust_connection_comes_back_with_all_it_had(broker: Broker) -> None:
    connection = await aio_pika.connect_robust(broker.url, reconnect_interval=0.05)
    received: asyncio.Queue[bytes] = asyncio.Queue()

    async def on_message(message: AbstractIncomingMessage) -> None:
        await message.ack()
        await received.put(message.body)

    async with connection, asyncio.timeout(WAIT_S):
        channel = await connection.channel()
        exchange = await channel.declare_exchange(fresh("news"), "topic", auto_delete=True)
        queue = await channel.declare_queue(fresh("evan"), auto_delete=True)
        await queue.bind(exchange, "tony.#")
        await queue.consume(on_message)
        await exchange.publish(aio_pika.Message(b"before"), "tony.status")
        assert await received.get() == b"before"

        back = asyncio.Event()
        connection.reconnect_callbacks.add(lambda *_: back.set())
        assert connection.transport is not None
        doomed = await connection.transport.connection.channel()
        with pytest.raises(aiormq.exceptions.AMQPError):
            await doomed.basic_qos(prefetch_size=1)
        await back.wait()
        await channel.ready()
        await exchange.publish(aio_pika.Message(b"after"), "tony.status")
        assert await received.get() == b"after"


async def test_channel_errors_stay_on_their_channel(broker: Broker) -> None:
    async with await aio_pika.connect(broker.url) as connection:
        sound, broken = await connection.channel(), await connection.channel()
        with pytest.raises(aio_pika.exceptions.ChannelNotFoundEntity):
            await broken.get_queue(fresh("absent"), ensure=True)
        with pytest.raises((ChannelClosed, aio_pika.exceptions.ChannelInvalidStateError)):
            await broken.declare_queue("", exclusive=True)
        queue = await exclusive_queue(sound)
        await sound.default_exchange.publish(aio_pika.Message(b"sound"), queue.name)
        assert [message.body for message in await take(queue, 1)] == [b"sound"]


async def test_fifty_connections_at_once(broker: Broker) -> None:
    async def round_trip(number: int) -> bytes:
        async with await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            queue = await exclusive_queue(channel)
            message = aio_pika.Message(b"%d" % number * 1000)
            await channel.default_exchange.publish(message, queue.name)
            return (await take(queue, 1))[0].body

    async with asyncio.timeout(2 * WAIT_S):
        bodies = await asyncio.gather(*(round_trip(number) for number in range(50)))
    assert bodies == [b"%d" % number * 1000 for number in range(50)]
