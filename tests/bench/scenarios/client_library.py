"""The client library of the hub's engine alone, used as the hub uses it: what the hub spends beyond
that is its own.

"CPU us" of these rows is that of the process with the library, not of the broker.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from typing import NamedTuple, cast

import aiormq
import uvloop
from aiormq.abc import DeliveredMessage
from aiormq.channel import Channel
from pamqp.commands import Basic

from warrenmq.hub.engine.amqp.consuming import AHEAD_OWN
from warrenmq.hub.engine.amqp.publishing import CONFIRM_S

from ..brokers import Broker
from ..client import Address
from ..figures import Figures
from ..flow import Flow, Standing, fill
from ..frames import PERSISTENT, Message, Stream
from ..producer import Load
from ..scenario import Scenario, Settings
from ..worker import Control, Crew
from .http import BODY, CONNECTIONS
from .throughput import QUEUES

IN_FLIGHT = 1
"""The deliveries of a subscription at the same time, as the hub is set up at first."""
CONSUMED_PER_S = 4_000
LIMIT_S = 120.0
FLOW = Flow(QUEUES[:1], durable=True)


class Used(NamedTuple):
    messages: int
    seconds: float
    cpu_s: float


def _publish(control: Control, address: Address, seconds: float) -> Used:
    """Publishes with as many messages unconfirmed as the hub has clients over HTTP."""
    return uvloop.run(_published(control, address, seconds))


async def _published(control: Control, address: Address, seconds: float) -> Used:
    numbers = count()
    async with _channel(address) as channel:
        control.ready()
        start, cpu_s = time.monotonic(), time.process_time()

        async def client() -> None:
            while time.monotonic() < start + seconds:
                await channel.basic_publish(
                    BODY, routing_key=QUEUES[0], mandatory=True, timeout=CONFIRM_S, wait=False,
                    properties=Basic.Properties(delivery_mode=2, message_id=str(next(numbers))),
                )  # fmt: skip

        await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
        return Used(next(numbers), time.monotonic() - start, time.process_time() - cpu_s)


def _consume(control: Control, address: Address, messages: int) -> Used:
    """Consumes with the hub's prefetch; acknowledges what came in one iteration of the event
    loop."""
    return uvloop.run(_consumed(control, address, messages))


async def _consumed(control: Control, address: Address, messages: int) -> Used:
    is_over = asyncio.Event()
    async with _channel(address) as channel:
        control.ready()
        start, cpu_s = time.monotonic(), time.process_time()
        last = acked = 0

        async def acknowledge() -> None:
            nonlocal acked
            acked = last
            await channel.basic_ack(acked, multiple=True, wait=False)
            if acked == messages:
                is_over.set()

        async def take(delivered: DeliveredMessage) -> None:
            nonlocal last
            if last == acked:
                channel.create_task(acknowledge())
            last = delivered.delivery_tag or 0

        await channel.basic_qos(prefetch_count=IN_FLIGHT + AHEAD_OWN)
        await channel.basic_consume(QUEUES[0], take)
        await is_over.wait()
        return Used(messages, time.monotonic() - start, time.process_time() - cpu_s)


@asynccontextmanager
async def _channel(address: Address) -> AsyncIterator[Channel]:
    host, port, user, password, _ = address
    connection = await aiormq.connect(f"amqp://{user}:{password}@{host}:{port}/")
    try:
        yield cast(Channel, await connection.channel())
    finally:
        await connection.close()


def library_publish(broker: Broker, settings: Settings) -> Figures:
    with Standing(broker, FLOW), Crew() as crew:
        worker = crew.hire(_publish, broker.address, settings.seconds)
        crew.go()
        used: Used = worker.result(settings.seconds + LIMIT_S)
    return Figures(used.messages / used.seconds, None, _cpu_us(used))


def library_deliveries(broker: Broker, settings: Settings) -> Figures:
    messages = max(1, int(CONSUMED_PER_S * settings.seconds))
    message = Message("", QUEUES[0], BODY, PERSISTENT)
    producer = (partial(Stream.repeat, message, 100), Load(LIMIT_S, limit=messages))
    with Standing(broker, FLOW), Crew() as crew:
        fill(broker, Flow((), (producer,)))
        worker = crew.hire(_consume, broker.address, messages)
        crew.go()
        used: Used = worker.result(LIMIT_S)
    return Figures(None, used.messages / used.seconds, _cpu_us(used))


def _cpu_us(used: Used) -> float:
    return used.cpu_s / used.messages * 1e6


SCENARIOS = (
    Scenario("library-publish", library_publish, long=True),
    Scenario("library-deliveries", library_deliveries, long=True),
)
