"""Consumption of a RabbitMQ queue; its promises are in
`tests/conformance/test_promises_on_rabbitmq.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import pika

from tests.hub.support import until
from tests.support.hub_on_rabbitmq import PASSWORD, USER
from tests.support.rabbitmq import RabbitMQServer
from warrenmq.hub.engine.amqp.address import read_address
from warrenmq.hub.engine.amqp.connections import Connections
from warrenmq.hub.engine.amqp.consuming import AmqpConsumption
from warrenmq.hub.engine.port import Delivery

QUEUE = "hub.short"


async def test_a_queue_that_soon_sends_no_more_tells_so(node: RabbitMQServer) -> None:
    """It sends five that are not acknowledged; the hub releases them one after the other."""
    with pika.BlockingConnection(pika.URLParameters(node.amqp_url)) as client:
        channel = client.channel()
        channel.queue_declare(QUEUE)
        for _ in range(6):
            channel.basic_publish("", QUEUE, b"")
        address = read_address(f"amqp://{USER}:{PASSWORD}@{node.host}:{node.port}/")
        connections = Connections(address, "", lambda: None)
        delivered: list[Delivery] = []
        told: list[int] = []
        consumption = AmqpConsumption(
            connections, "/", QUEUE, prefetch=1, ahead=4, is_shared=False,
            on_delivery=delivered.append, on_cancel=lambda: asyncio.sleep(0),
            on_short=lambda: told.append(len(delivered)),
        )  # fmt: skip
        await consumption.start()
        for count in range(1, 6):
            await until(partial(_has, delivered, count), f"{count} deliveries")
            delivered[-1].release()
        assert told == [3, 4, 5]
        delivered[0].ack()
        await until(partial(_has, delivered, 6), "the last one")
        await consumption.close()
        await connections.close()
        channel.queue_delete(QUEUE)


def _has(delivered: Sequence[Delivery], count: int) -> bool:
    return len(delivered) == count
