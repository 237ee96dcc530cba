from __future__ import annotations

import itertools

import pytest

from warrenmq.hub.delivery import breaker
from warrenmq.hub.engine.port import Consumption
from warrenmq.hub.subscriptions.delivery_state import (
    CONSUMERS,
    PHASES,
    ConsumerEvent,
    ConsumerState,
    DeliveryEvent,
    DeliveryState,
    Phase,
)
from warrenmq.hub.subscriptions.subscription import SubscriptionStatus
from warrenmq.hub.transitions import IllegalMove, after


class Recorded:
    def __init__(self) -> None:
        self.calls: list[str] = []

    async def cancel(self) -> None:
        self.calls.append("cancel")

    async def end(self) -> None:
        self.calls.append("end")

    async def close(self) -> None:
        self.calls.append("close")


def consuming(consumption: Consumption) -> DeliveryState:
    state = DeliveryState(SubscriptionStatus.ACTIVE)
    assert state.start_consuming()
    state.consume(consumption)
    return state


def test_illegal_moves_name_state_and_event() -> None:
    illegal = set(itertools.product(Phase, DeliveryEvent)) - PHASES.keys()
    assert illegal == {
        (Phase.UNVERIFIED, DeliveryEvent.PAUSE), (Phase.UNVERIFIED, DeliveryEvent.SUSPEND),
        (Phase.UNVERIFIED, DeliveryEvent.RESUME), (Phase.ACTIVE, DeliveryEvent.ACTIVATE),
        (Phase.SUSPENDED, DeliveryEvent.ACTIVATE), (Phase.PAUSED, DeliveryEvent.PAUSE),
        (Phase.OVER, DeliveryEvent.ACTIVATE), (Phase.OVER, DeliveryEvent.PAUSE),
    }  # fmt: skip
    for phase, event in illegal:
        with pytest.raises(
            IllegalMove, match=f"event {event.name} is illegal in state {phase.name}"
        ):
            after(PHASES, phase, event)
    for consumer, happened in (
        set(itertools.product(ConsumerState, ConsumerEvent)) - CONSUMERS.keys()
    ):
        with pytest.raises(IllegalMove):
            after(CONSUMERS, consumer, happened)
    assert breaker.MOVES.keys() == set(
        itertools.product(breaker.BreakerState, breaker.BreakerEvent)
    )


@pytest.mark.parametrize(
    ("status", "events", "takes"),
    [
        (SubscriptionStatus.ACTIVE, "", True),
        (SubscriptionStatus.ACTIVE, "suspend", False),
        (SubscriptionStatus.ACTIVE, "suspend resume", True),
        (SubscriptionStatus.ACTIVE, "suspend pause resume", False),
        (SubscriptionStatus.ACTIVE, "suspend pause activate", True),
        (SubscriptionStatus.ACTIVE, "end resume", False),
        (SubscriptionStatus.PAUSED, "", False),
        (SubscriptionStatus.PAUSED, "suspend resume", False),
        (SubscriptionStatus.UNVERIFIED, "", False),
        (SubscriptionStatus.UNVERIFIED, "activate", True),
        (SubscriptionStatus.PENDING, "resume", False),
        (SubscriptionStatus.ENDING, "resume", False),
    ],
)
def test_messages_are_delivered_while_active_alone(
    status: SubscriptionStatus, events: str, takes: bool
) -> None:
    state = DeliveryState(status)
    happen = {
        "activate": lambda: state.store(SubscriptionStatus.ACTIVE),
        "pause": lambda: state.store(SubscriptionStatus.PAUSED),
        "suspend": state.suspend,
        "resume": state.resume,
        "end": state.end,
    }
    for event in events.split():
        happen[event]()
    assert state.takes() is takes
    assert state.start_consuming() is takes


async def test_one_consumer_is_started_at_a_time() -> None:
    state, consumption = DeliveryState(SubscriptionStatus.ACTIVE), Recorded()
    assert state.start_consuming()
    await state.cancel()
    assert not state.start_consuming()
    state.fail_to_consume()
    assert state.start_consuming()
    state.consume(consumption)
    assert state.consumption is consumption and not state.start_consuming()
    await state.cancel()
    await state.cancel()
    assert consumption.calls == ["cancel"] and state.start_consuming()


async def test_cancelling_after_the_end_ends_the_consumer() -> None:
    consumption = Recorded()
    state = consuming(consumption)
    state.end()
    await state.cancel()
    assert consumption.calls == ["end"]


def test_the_reason_of_a_wait() -> None:
    state = DeliveryState(SubscriptionStatus.ACTIVE)
    state.wait_for_source("it was deleted")
    assert state.missing_source == "it was deleted"
    state.follow_source()
    assert state.missing_source == ""
