from __future__ import annotations

from dataclasses import replace

import pytest

from tests.hub.support import House
from warrenmq.core.clock import ManualClock
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.model import Message, Properties
from warrenmq.core.resources.alarms import Reading
from warrenmq.hub.delivery.envelope import Envelope
from warrenmq.hub.delivery.retry_queues import RetryQueues

MESSAGE = Message("news", "eu.fr", Properties(content_type="text/plain"), b"bonjour")
ENVELOPE = Envelope("msg_1", "news", "eu.fr", failures=1)


def at_home(message: Message) -> Message:
    """As it is when its wait is over: it comes back over the default exchange."""
    return replace(message, exchange="")


async def test_a_wait_consists_of_steps(house: House) -> None:
    clock = ManualClock()
    retry_queues = RetryQueues(house.engine, clock, house.hub.internal_headers)
    await retry_queues.enqueue("/", "in", MESSAGE, ENVELOPE, 4_000.0)
    [waiting] = await house.take("hub.retry.3600s", 1)
    back = house.hub.internal_headers.read(at_home(waiting.message), 1)
    assert waiting.message.routing_key == "in" and back.not_before == clock.wall_s() + 4_000
    assert back.message_id == "msg_1" and back.failures == 1

    clock.advance(3_600_000)
    assert retry_queues.is_early(back)
    await retry_queues.enqueue_again("/", "in", waiting.message, back)
    [waiting] = await house.take("hub.retry.300s", 1)
    clock.advance(400_000)
    assert not retry_queues.is_early(house.hub.internal_headers.read(at_home(waiting.message), 2))


@pytest.mark.parametrize("step_s", [3_600, -3_600])
async def test_a_wall_clock_step_does_not_delay_retries(house: House, step_s: float) -> None:
    clock = ManualClock()
    retry_queues = RetryQueues(house.engine, clock, house.hub.internal_headers)
    await retry_queues.enqueue("/", "in", MESSAGE, ENVELOPE, 5.0)
    [waiting] = await house.take("hub.retry.5s", 1)
    clock.step(step_s)
    back = house.hub.internal_headers.read(at_home(waiting.message), 1)
    assert retry_queues.is_early(back)
    clock.advance(5_000)
    assert not retry_queues.is_early(back)


@pytest.mark.parametrize("deleted", ["queue", "exchange"])
async def test_a_deleted_delay_queue_is_declared_again(house: House, deleted: str) -> None:
    retry_queues = RetryQueues(house.engine, ManualClock(), house.hub.internal_headers)
    await retry_queues.enqueue("/", "in", MESSAGE, ENVELOPE, 60.0)
    if deleted == "queue":
        await house.engine.delete_queue("/", "hub.retry.60s")
    else:
        await house.engine.delete_exchange("/", "hub.retry.60s")
    with pytest.raises(ChannelError):
        await retry_queues.enqueue("/", "in", MESSAGE, ENVELOPE, 60.0)
    before = await house.depth("hub.retry.60s") or 0
    await retry_queues.enqueue("/", "in", MESSAGE, ENVELOPE, 60.0)
    assert await house.depth("hub.retry.60s") == before + 1


async def test_cc_does_not_route_a_dead_letter(house: House) -> None:
    retry_queues = RetryQueues(house.engine, ManualClock(), house.hub.internal_headers)
    copied = Message("news", "k", Properties(headers={"CC": ["in"]}), b"x")
    await retry_queues.add_dead_letter("/", copied, ENVELOPE, "1", "tried enough")
    assert await house.depth("hub.dead") == 1
    assert await house.depth("in") == 0


async def test_alarms_do_not_stop_the_hub(house: House) -> None:
    """Or a full disk could not be emptied."""
    house.broker.alarms.measure(Reading(store_is_full=True))
    retry_queues = RetryQueues(house.engine, ManualClock(), house.hub.internal_headers)
    await retry_queues.enqueue("/", "in", MESSAGE, ENVELOPE, 60.0)
    assert await house.depth("hub.retry.60s") == 1
    await retry_queues.add_dead_letter("/", MESSAGE, ENVELOPE, "subscription", "tried often")
    assert await house.depth("hub.dead") == 1
