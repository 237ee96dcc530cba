"""The scenarios of scenarios.py through each Python library."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from .libraries import LIBRARIES, Library, Refused
from .scenarios import SCENARIOS
from .support import Broker, fresh

PAYLOAD_BYTES = 131_072 - 8
"""Of a body frame, with the frame size that both sides agree on."""
REPLY_TO = "amq.rabbitmq.reply-to"
Scenario = Callable[[Library], None]


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest, broker: Broker) -> Iterator[Library]:
    opened = LIBRARIES[request.param](broker)
    yield opened
    opened.close()


def confirms(library: Library) -> None:
    channel = library.channel()
    channel.confirm()
    queue = channel.declare()
    for number in range(50):
        assert channel.publish(b"%d" % number, queue, delivery_mode=1 + number % 2)
    assert channel.count(queue) == 50
    received = channel.consume(queue)
    assert channel.bodies(received, 50) == [b"%d" % number for number in range(50)]


def returns(library: Library) -> None:
    channel = library.channel()
    channel.confirm()
    assert channel.publish(b"is at work", "nobody", exchange="amq.direct", mandatory=True)
    channel.wait(lambda: bool(channel.returned))
    assert channel.returned == [312]


def nacks(library: Library) -> None:
    channel = library.channel()
    channel.confirm()
    queue = channel.declare(fresh("full"), max_length=1, overflow="reject-publish")
    assert channel.publish(b"1", queue)
    assert not channel.publish(b"2", queue)
    message = channel.get(queue)
    assert message is not None and message.body == b"1"
    assert channel.publish(b"3", queue)


def transaction(library: Library) -> None:
    channel = library.channel()
    queue = channel.declare()
    channel.tx("select")
    for step, count in (("rollback", 0), ("commit", 1)):
        channel.publish(step.encode(), queue)
        assert channel.count(queue) == 0
        channel.tx(step)
        assert channel.count(queue) == count
    received = channel.consume(queue, no_ack=False, tag="mine")
    assert channel.bodies(received, 1) == [b"commit"]
    channel.ack(1)
    channel.tx("rollback")
    channel.reject(1, requeue=True)
    channel.cancel("mine")
    channel.tx("commit")
    assert channel.count(queue) == 1


def calls(library: Library) -> None:
    server, client = library.channel(), library.channel()
    queue = server.declare()
    questions, answers = server.consume(queue), client.consume(REPLY_TO)
    for number in range(3):
        client.publish(b"%d" % number, queue, reply_to=REPLY_TO, correlation_id=f"{number}")
    assert server.bodies(questions, 3) == [b"0", b"1", b"2"]
    for question in questions:
        address = question.properties["reply_to"]
        assert address.startswith(f"{REPLY_TO}.")
        correlation = question.properties["correlation_id"]
        server.publish(b"re: " + question.body, address, correlation_id=correlation)
    assert client.bodies(answers, 3) == [b"re: 0", b"re: 1", b"re: 2"]
    assert [one.properties["correlation_id"] for one in answers] == ["0", "1", "2"]


def numbers(library: Library) -> None:
    channel = library.channel()
    for number in (5, 300, 70_000, 2**40):
        queue = fresh("queue")
        for _ in range(2):
            assert channel.declare(queue, max_length=number) == queue


def bad_argument(library: Library) -> None:
    queue = fresh("queue")
    with pytest.raises(Refused) as refused:
        library.channel().declare(queue, max_priority=256)
    assert refused.value.code == 406
    start = f"PRECONDITION_FAILED - invalid arg 'x-max-priority' for queue '{queue}'"
    assert refused.value.text.startswith(start)
    assert library.channel().declare()


def properties(library: Library) -> None:
    headers: dict[str, Any] = {
        "bool": True, "int": -3, "long": 2**40, "decimal": Decimal("3.14"),
        "text": "grüße", "nothing": None, "list": [1, "two", [3]],
        "table": {"deep": {"deeper": "x" * 1000}},
    }  # fmt: skip
    if library.writes_floats:
        headers["double"] = 0.5
    sent: dict[str, Any] = {
        "content_type": "application/atom+xml", "content_encoding": "identity",
        "headers": headers, "delivery_mode": 2, "priority": 4, "correlation_id": "c",
        "reply_to": "r", "expiration": "60000", "message_id": "m", "message_type": "t",
        "user_id": "guest", "app_id": "a",
    }  # fmt: skip
    channel = library.channel()
    queue = channel.declare()
    channel.publish(b"body", queue, **sent)
    channel.publish(b"plain", queue)
    full, plain = channel.get(queue), channel.get(queue)
    assert full is not None and plain is not None
    assert {name: full.properties[name] for name in sent} == sent
    # aiormq adds a message_id.
    assert {name for name, value in plain.properties.items() if value} <= {"message_id"}


def sizes(library: Library) -> None:
    channel = library.channel()
    queue = channel.declare()
    received = channel.consume(queue)
    whole = PAYLOAD_BYTES
    lengths = [0, 1, 0, whole - 1, whole, whole + 1, 2 * whole, 0, 5_000_000]
    bodies = [random.Random(length).randbytes(length) for length in lengths]
    for count, body in enumerate(bodies, 1):
        channel.publish(body, queue)
        assert channel.bodies(received, count) == bodies[:count]


def prefetch(library: Library) -> None:
    channel, observer = library.channel(), library.channel()
    channel.confirm()
    queue = channel.declare()
    for number in range(5):
        channel.publish(b"%d" % number, queue)
    channel.prefetch(2)
    received = channel.consume(queue, no_ack=False)
    assert channel.bodies(received, 2) == [b"0", b"1"]
    assert observer.count(queue) == 3
    channel.reject(received[1].tag, requeue=True)
    channel.bodies(received, 3)
    assert (received[2].body, received[2].redelivered) == (b"1", True)
    channel.ack(received[0].tag)
    assert channel.bodies(received, 4)[3:] == [b"2"]
    channel.ack(received[3].tag, multiple=True)
    assert channel.bodies(received, 6)[4:] == [b"3", b"4"]


def dead_letters(library: Library) -> None:
    """The retry loop of many applications: rejected, expired in a queue with a TTL, again."""
    channel, work = library.channel(), fresh("work")
    waiting = channel.declare(dead_letter_exchange="", dead_letter_routing_key=work, message_ttl=20)
    channel.declare(work, dead_letter_exchange="", dead_letter_routing_key=waiting)
    received = channel.consume(work, no_ack=False)
    channel.publish(b"try me", work)
    for round_number in (1, 2):
        channel.bodies(received, round_number)
        channel.reject(received[-1].tag, requeue=False)
    assert channel.bodies(received, 3) == [b"try me"] * 3
    headers = received[2].properties["headers"]
    deaths = [(death["queue"], death["reason"], death["count"]) for death in headers["x-death"]]
    assert deaths == [(waiting, "expired", 2), (work, "rejected", 2)]
    first = headers["x-first-death-queue"], headers["x-first-death-reason"]
    assert first == (work, "rejected")
    assert abs(headers["x-death"][0]["time"].replace(tzinfo=UTC) - datetime.now(UTC)).seconds < 60


def cancelled(library: Library) -> None:
    channel = library.channel()
    queue = channel.declare()
    channel.consume(queue, tag="mine")
    library.channel().delete(queue)
    channel.wait(lambda: bool(channel.cancelled))
    assert channel.cancelled == ["mine"]
    assert channel.declare()


def priorities(library: Library) -> None:
    channel = library.channel()
    channel.confirm()
    queue = channel.declare(fresh("queue"), max_priority=10)
    for priority in (1, 9, 5, 99):
        channel.publish(b"%d" % priority, queue, priority=priority)
    assert channel.bodies(channel.consume(queue), 4) == [b"99", b"9", b"5", b"1"]


def single_active(library: Library) -> None:
    first, second = library.channel(), library.channel()
    queue = first.declare(fresh("queue"), single_active_consumer=True)
    active, standby = first.consume(queue, tag="first"), second.consume(queue)
    for number in range(3):
        first.publish(b"%d" % number, queue)
    assert first.bodies(active, 3) == [b"0", b"1", b"2"]
    first.cancel("first")
    first.publish(b"3", queue)
    assert second.bodies(standby, 1) == [b"3"]


def quorum(library: Library) -> None:
    channel = library.channel()
    queue = channel.declare(fresh("quorum"), durable=True, queue_type="quorum", delivery_limit=5)
    channel.publish(b"1", queue, delivery_mode=2)
    received = channel.consume(queue, no_ack=False)
    channel.bodies(received, 1)
    channel.reject(received[0].tag, requeue=True)
    channel.bodies(received, 2)
    assert received[1].redelivered
    assert received[1].properties["headers"]["x-delivery-count"] == 1
    channel.ack(received[1].tag)
    channel.delete(queue)


def stream(library: Library) -> None:
    channel = library.channel()
    channel.confirm()
    queue = channel.declare(fresh("stream"), durable=True, queue_type="stream")
    for number in range(10):
        channel.publish(b"%d" % number, queue)
    for offset, first in (("first", 0), (4, 4), ("1h", 0)):
        reader = library.channel()
        reader.prefetch(100)
        received = reader.consume(queue, no_ack=False, stream_offset=offset)
        assert reader.bodies(received, 10 - first) == [b"%d" % n for n in range(first, 10)]
        offsets = [one.properties["headers"]["x-stream-offset"] for one in received]
        assert offsets == list(range(first, 10))
    channel.delete(queue)


FUNCTIONS: tuple[Scenario, ...] = (
    confirms, returns, nacks, transaction, calls, numbers, bad_argument, properties, sizes,
    prefetch, dead_letters, cancelled, priorities, single_active, quorum, stream,
)  # fmt: skip


@pytest.mark.parametrize(
    "scenario", [pytest.param(one, id=name) for name, one in zip(SCENARIOS, FUNCTIONS, strict=True)]
)
def test_scenario(library: Library, scenario: Scenario) -> None:
    scenario(library)
