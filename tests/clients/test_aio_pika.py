"""aio-pika: robust connections, confirms, iterators, patterns for remote calls and work queues."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aio_pika
import aiormq
import pytest
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue
from aio_pika.patterns import RPC, Master

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


async def test_messages_processed_in_a_block(channel: AbstractChannel) -> None:
    letters = await exclusive_queue(channel)
    queue = await exclusive_queue(
        channel, **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": letters.name}
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


async def test_a_call_without_a_server_expires(connection: Any) -> None:
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


async def test_a_robust_connection_restores_queues_bindings_and_consumers(broker: Broker) -> None:
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
