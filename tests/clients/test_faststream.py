"""FastStream: subscribers, replies, acknowledgement policies, a retry queue with a TTL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from faststream import AckPolicy
from faststream.exceptions import RejectMessage
from faststream.rabbit import ExchangeType, RabbitBroker, RabbitExchange, RabbitMessage, RabbitQueue
from pydantic import BaseModel

from .support import WAIT_S, Broker, fresh


class Status(BaseModel):
    who: str
    text: str


@pytest.fixture
async def stream(broker: Broker) -> AsyncIterator[RabbitBroker]:
    stream = RabbitBroker(broker.url, logger=None)
    yield stream
    await stream.stop()


def temporary(word: str, **options: Any) -> RabbitQueue:
    return RabbitQueue(fresh(word), durable=False, exclusive=True, **options)


async def take(results: asyncio.Queue[Any], count: int) -> list[Any]:
    async with asyncio.timeout(WAIT_S):
        return [await results.get() for _ in range(count)]


async def test_evan_and_anders_follow_tony(stream: RabbitBroker) -> None:
    news = RabbitExchange(fresh("news"), ExchangeType.TOPIC, auto_delete=True)
    results: asyncio.Queue[tuple[str, Status]] = asyncio.Queue()

    async def evan(status: Status) -> None:
        await results.put(("evan", status))

    async def anders(status: Status) -> None:
        await results.put(("anders", status))

    for follower in (evan, anders):
        queue = temporary("follower", routing_key="tony.*")
        stream.subscriber(queue, news)(follower)
    await stream.start()
    status = Status(who="tony", text="is at work")
    await stream.publish(status, exchange=news, routing_key="tony.status")
    await stream.publish(Status(who="evan", text="?"), exchange=news, routing_key="evan.status")
    assert sorted(await take(results, 2), key=lambda one: one[0]) == [
        ("anders", status),
        ("evan", status),
    ]


async def test_requests_are_answered(stream: RabbitBroker) -> None:
    """A request goes out with direct reply-to."""
    queue = temporary("questions")

    @stream.subscriber(queue)
    async def answer(text: str) -> str:
        return text.upper()

    await stream.start()
    answers = await asyncio.gather(
        *(stream.request(f"question {number}", queue, timeout=WAIT_S) for number in range(20))
    )
    assert [await one.decode() for one in answers] == [f"QUESTION {n}" for n in range(20)]


async def test_a_pipeline_of_two_steps(stream: RabbitBroker) -> None:
    first, second = temporary("first"), temporary("second")
    results: asyncio.Queue[int] = asyncio.Queue()

    @stream.publisher(second)
    @stream.subscriber(first)
    async def double(number: int) -> int:
        return 2 * number

    @stream.subscriber(second)
    async def keep(number: int) -> None:
        await results.put(number)

    await stream.start()
    for number in range(100):
        await stream.publish(number, first)
    assert sorted(await take(results, 100)) == [2 * number for number in range(100)]


async def test_a_rejected_message_waits_and_comes_again(stream: RabbitBroker) -> None:
    """The retry of the manual: reject into a queue with a TTL, whose dead letters come back."""
    work_name, waiting_name = fresh("work"), fresh("waiting")
    work = RabbitQueue(
        work_name, durable=False, exclusive=True,
        arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": waiting_name},
    )  # fmt: skip
    waiting = RabbitQueue(
        waiting_name, durable=False, exclusive=True,
        arguments={
            "x-message-ttl": 30,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": work_name,
        },
    )  # fmt: skip
    results: asyncio.Queue[list[tuple[str, str, int]]] = asyncio.Queue()

    @stream.subscriber(work, ack_policy=AckPolicy.REJECT_ON_ERROR)
    async def flaky(text: str, message: RabbitMessage) -> None:
        deaths: list[dict[str, Any]] = message.headers.get("x-death", [])
        if not deaths or deaths[0]["count"] < 3:
            raise RejectMessage
        await results.put([(one["queue"], one["reason"], one["count"]) for one in deaths])

    await stream.connect()
    await stream.declare_queue(waiting)
    await stream.start()
    await stream.publish("try me", work)
    assert await take(results, 1) == [
        [(waiting_name, "expired", 3), (work_name, "rejected", 3)],
    ]


async def test_an_error_with_nack_comes_again_at_once(stream: RabbitBroker) -> None:
    queue = temporary("queue")
    results: asyncio.Queue[bool | None] = asyncio.Queue()

    @stream.subscriber(queue, ack_policy=AckPolicy.NACK_ON_ERROR)
    async def once(text: str, message: RabbitMessage) -> None:
        await results.put(message.raw_message.redelivered)
        if not message.raw_message.redelivered:
            raise RuntimeError("the first time")

    await stream.start()
    await stream.publish("twice", queue)
    assert await take(results, 2) == [False, True]
