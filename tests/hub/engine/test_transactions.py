"""A transaction that can't be finished publishes nothing, and takes no memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from tests.support.amqp import make_broker
from warrenmq.core.broker import Broker
from warrenmq.core.errors import ChannelError, LowOnMemory
from warrenmq.core.message.model import Row
from warrenmq.core.resources.alarms import Bounds
from warrenmq.hub.engine.embedded import EmbeddedEngine
from warrenmq.hub.engine.port import QueueSpec, TransactionLog

MAX_BYTES = 100_000


@pytest.fixture
def broker() -> Broker:
    return make_broker()


@pytest.fixture
async def log(broker: Broker) -> TransactionLog:
    engine = EmbeddedEngine(broker)
    await engine.declare_queue("/", QueueSpec("q"))
    return engine.transactions("/")


async def rows(count: int, then: Callable[[], object] = int) -> AsyncIterator[Sequence[Row]]:
    for _ in range(count):
        yield [(b"q", b"\x10\x00\x02", bytes(1_000))]
    then()


async def publish(log: TransactionLog, broker: Broker, rows: AsyncIterator[Sequence[Row]]) -> int:
    user = broker.users.existing("guest")
    return (await log.publish(user, "", rows, "query", 0, max_bytes=MAX_BYTES)).published


async def test_a_transaction_without_memory_is_refused(broker: Broker, log: TransactionLog) -> None:
    broker.alarms.bounds = Bounds(memory=10_000)
    with pytest.raises(LowOnMemory, match="after 8 rows"):
        await publish(log, broker, rows(20))
    assert log.last("query") is None and broker.memory.resident_bytes == 0
    assert await publish(log, broker, rows(5)) == 5


async def test_a_transaction_in_a_recreated_virtual_host_is_refused(
    broker: Broker, log: TransactionLog
) -> None:
    def make_anew() -> None:
        broker.vhosts["/"] = make_broker().vhosts["/"]

    with pytest.raises(ChannelError, match="made anew"):
        await publish(log, broker, rows(1, make_anew))
    assert log.last("query") is None
