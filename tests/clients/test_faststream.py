"""FastStream: subscribers, replies, acknowledgement policies, a retry queue with a TTL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from faststream import AckPolicy
from faststream.exceptions import RejectMessage
from faststream.rabbit import RabbitBroker, RabbitMessage, RabbitQueue
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


async def test_a_rejected_message_is_redelivered_after_its_ttl(stream: RabbitBroker) -> None:
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
    assert await take(results, 1) == [[(waiting_name, "expired", 3), (work_name, "rejected", 3)]]
