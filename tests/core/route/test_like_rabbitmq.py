"""The same bindings and messages given to a real RabbitMQ: who gets what must be the same."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.core.route.support import FakeQueue, exchange
from tests.support.rabbitmq import RabbitMQServer
from warrenmq.core.message.model import Table
from warrenmq.core.route.exchange import Exchange

Wish = tuple[str, Table]
Message = tuple[str, Table]


@pytest.fixture
def channel(rabbitmq: RabbitMQServer) -> Iterator[BlockingChannel]:
    connection = pika.BlockingConnection(pika.URLParameters(rabbitmq.amqp_url))
    channel = connection.channel()
    channel.confirm_delivery()
    yield channel
    connection.close()


def receivers(
    channel: BlockingChannel, source: str, wishes: list[Wish], messages: list[Message]
) -> list[list[str]]:
    """For each message the names of RabbitMQ's queues that got it, one queue a wish."""
    channel.exchange_declare("x", source, auto_delete=True)
    names = [str(number) for number in range(len(wishes))]
    for name, (key, arguments) in zip(names, wishes, strict=True):
        channel.queue_declare(name, exclusive=True)
        channel.queue_bind(name, "x", key, arguments)
    for number, (key, headers) in enumerate(messages):
        channel.basic_publish("x", key, str(number).encode(), pika.BasicProperties(headers=headers))
    got: list[list[str]] = [[] for _ in messages]
    for name in names:
        while (delivery := channel.basic_get(name, auto_ack=True))[0] is not None:
            got[int(delivery[2])].append(name)
    return got


def matches(source: Exchange, wishes: list[Wish], messages: list[Message]) -> list[list[str]]:
    for number, (key, arguments) in enumerate(wishes):
        source.bind(FakeQueue(str(number)), key, arguments)
    return [
        sorted({queue.name for queue in source.match(key, headers)}, key=int)
        for key, headers in messages
    ]


def test_topics(channel: BlockingChannel) -> None:
    chance = random.Random(9)
    wishes: list[Wish] = [
        (".".join(chance.choices(["a", "b", "", "*", "#"], k=length)), {})
        for length in range(6)
        for _ in range(40)
    ]
    messages: list[Message] = [
        (".".join(chance.choices(["a", "b", "", "*", "#"], k=length)), {})
        for length in range(6)
        for _ in range(15)
    ]
    expected = receivers(channel, "topic", wishes, messages)
    assert matches(exchange("topic"), wishes, messages) == expected


def test_headers(channel: BlockingChannel) -> None:
    chance = random.Random(9)

    def table(names: list[str]) -> Table:
        return {name: chance.choice([None, True, 1, 2**40, "a", "b"]) for name in names}

    modes: list[Table] = [{}]
    modes += [{"x-match": mode} for mode in ("all", "any", "all-with-x", "any-with-x")]
    names = ["a", "b", "x-a"]
    wishes: list[Wish] = [
        ("", mode | table(chance.sample(names, k=size)))
        for mode in modes
        for size in range(4)
        for _ in range(8)
    ]
    messages: list[Message] = [
        ("", table(chance.sample([*names, "c"], k=size))) for size in range(5) for _ in range(20)
    ]
    expected = receivers(channel, "headers", wishes, messages)
    assert matches(exchange("headers"), wishes, messages) == expected
