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
from warrenmq.hub.engine.embedded import EmbeddedEngine

MESSAGE = Message("news", "eu.fr", Properties(content_type="text/plain"), b"bonjour")
ENVELOPE = Envelope("msg_1", "news", "eu.fr", failures=1)


def at_home(message: Message) -> Message:
    """As it is when its wait is over: it comes back over the default exchange."""
    return replace(message, exchange="")


async def test_a_wait_is_made_of_steps(house: House) -> None:
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
async def test_a_step_of_the_wall_clock_parks_nothing_for_longer(
    house: House, step_s: float
) -> None:
    clock = ManualClock()
    retry_queues = RetryQueues(house.engine, clock, house.hub.internal_headers)
    await retry_queues.enqueue("/", "in", MESSAGE, ENVELOPE, 5.0)
    [waiting] = await house.take("hub.retry.5s", 1)
    clock.step(step_s)
    back = house.hub.internal_headers.read(at_home(waiting.message), 1)
    assert retry_queues.is_early(back)
    clock.advance(5_000)
    assert not retry_queues.is_early(back)


async def test_a_message_comes_back_from_its_retry_queue(house: House) -> None:
    retry_queues = RetryQueues(house.engine, ManualClock(), house.hub.internal_headers)
    await retry_queues.enqueue("/", "in", MESSAGE, ENVELOPE, 1.0)
    [home] = await house.take("in", 1)
    assert home.message.body == b"bonjour"
    assert home.message.properties.content_type == "text/plain"
    envelope = house.hub.internal_headers.read(home.message, 99)
    assert (envelope.exchange, envelope.routing_key) == ("news", "eu.fr")


@pytest.mark.parametrize("deleted", ["queue", "exchange"])
async def test_a_delay_queue_that_somebody_deleted(house: House, deleted: str) -> None:
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


async def test_a_copy_header_does_not_bring_the_message_elsewhere(house: House) -> None:
    retry_queues = RetryQueues(house.engine, ManualClock(), house.hub.internal_headers)
    copied = Message("news", "k", Properties(headers={"CC": ["in"]}), b"x")
    await retry_queues.add_dead_letter("/", copied, ENVELOPE, "1", "tried enough")
    assert await house.depth("hub.dead") == 1
    assert await house.depth("in") == 0


async def test_an_alarm_stops_nothing_that_the_hub_moves(house: House) -> None:
    """Or a full disk could not be emptied."""
    assert isinstance(house.engine, EmbeddedEngine)
    house.engine._broker.alarms.measure(Reading(store_is_full=True))
    retry_queues = RetryQueues(house.engine, ManualClock(), house.hub.internal_headers)
    await retry_queues.enqueue("/", "in", MESSAGE, ENVELOPE, 60.0)
    assert await house.depth("hub.retry.60s") == 1
    await retry_queues.add_dead_letter("/", MESSAGE, ENVELOPE, "subscription", "tried often")
    assert await house.depth("hub.dead") == 1
