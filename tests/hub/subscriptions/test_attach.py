"""When a subscription is consumed, whatever comes in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.http import Callback
from tests.support.settings import hub_settings
from warrenmq.core.message.model import Properties
from warrenmq.hub.engine.port import BindingSpec, ExchangeSpec, QueueSpec
from warrenmq.hub.subscriptions.active import ActiveSubscription
from warrenmq.hub.subscriptions.attach import Attacher
from warrenmq.hub.subscriptions.options import Options
from warrenmq.hub.subscriptions.subscription import SubscriptionStatus

from ..support import INBOX, NEWS, House, deliveries, subscription, until


def active_of(source: Any = INBOX, **given: Any) -> ActiveSubscription:
    made = {"source": source, "status": SubscriptionStatus.ACTIVE, **given}
    return ActiveSubscription(subscription(**made))


class SlowConsumption:
    def __init__(self, engine: SlowEngine) -> None:
        self._engine = engine

    async def cancel(self) -> None:
        self._engine.running -= 1

    async def end(self) -> None:
        await self.cancel()


class SlowEngine:
    """An engine across a network: a consume takes until `let_go`."""

    def __init__(self) -> None:
        self.running = 0
        self.begun = 0
        self._gate = asyncio.Event()

    def let_go(self) -> None:
        self._gate.set()

    def watch_deleted(self, *_: Any) -> None: ...
    def watch_declared(self, *_: Any) -> None: ...

    async def declare_queue(self, *_: Any) -> None: ...
    async def delete_queue(self, *_: Any) -> None: ...
    async def bind(self, *_: Any) -> None: ...

    async def consume(self, *_: Any, **__: Any) -> SlowConsumption:
        self.begun += 1
        await self._gate.wait()
        self.running += 1
        return SlowConsumption(self)


def attacher_of(engine: Any) -> Attacher:
    return Attacher(engine, hub_settings(in_flight_per_subscription=7), _nobody, _nobody)


def _nobody(*_: Any) -> None:
    raise AssertionError("no message was sent")


async def pause(attacher: Attacher, active: ActiveSubscription) -> None:
    active.change(active_of(status=SubscriptionStatus.PAUSED).subscription)
    await active.state.cancel()


STEPS: dict[str, Callable[[Attacher, ActiveSubscription], Any]] = {
    "attach": Attacher.attach, "suspend": Attacher.suspend, "resume": Attacher.resume,
    "end": Attacher.detach, "pause": pause,
}  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "running"),
    [
        ("attach suspend suspend attach", 0),
        ("attach suspend attach resume resume", 1),
        ("attach suspend pause resume", 0),
        ("attach suspend end resume", 0),
        ("attach end resume", 0),
    ],
)
async def test_a_queue_is_consumed_once_after_any_steps(steps: str, running: int) -> None:
    engine = SlowEngine()
    engine.let_go()
    attacher, active = attacher_of(engine), active_of()
    for step in steps.split():
        await STEPS[step](attacher, active)
    assert engine.running == running and attacher.sources.waiting_count == 0


async def test_a_renewal_does_not_end_a_suspension(house: House, callback: Callback) -> None:
    active = await house.subscribe(INBOX, callback)
    await house.hub.attacher.suspend(active)
    await house.hub.subscription_store.renew(active, 60)
    assert active.state.consumption is None and not active.state.takes()


@pytest.mark.parametrize("change", ["suspend", "pause", "end"])
async def test_a_change_during_consume_wins(change: str) -> None:
    engine = SlowEngine()
    attacher, active = attacher_of(engine), active_of()
    attaching = asyncio.create_task(attacher.attach(active))
    await until(lambda: engine.begun == 1, "a consume under way")
    await STEPS[change](attacher, active)
    engine.let_go()
    await attaching
    assert engine.running == 0 and active.state.consumption is None


async def test_attaching_many_times_at_once_consumes_once() -> None:
    engine = SlowEngine()
    attacher, active = attacher_of(engine), active_of()
    attaching = [asyncio.create_task(attacher.attach(active)) for _ in range(3)]
    await until(lambda: engine.begun == 1, "a consume under way")
    await attacher.suspend(active)
    attaching.append(asyncio.create_task(attacher.resume(active)))
    engine.let_go()
    await asyncio.gather(*attaching)
    assert (engine.begun, engine.running) == (1, 1) and active.state.consumption is not None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (Options(), 7),
        (Options(in_flight=3), 3),
        (Options(in_flight=3, strict_order=True), 1),
        (Options(in_flight=100, max_tps=2), 30),
        (Options(in_flight=3, max_tps=2), 3),
    ],
)
def test_the_prefetch(options: Options, expected: int) -> None:
    made = active_of(options=options).subscription
    assert attacher_of(SlowEngine()).prefetch(made) == expected


async def test_a_changed_prefetch_replaces_the_consumer(house: House, callback: Callback) -> None:
    active = await house.subscribe(INBOX, callback)
    first = active.state.consumption
    await house.subscribe(INBOX, callback)
    assert active.state.consumption is first
    given = {"hub.in_flight": "5"}
    await house.subscribe(INBOX, callback, given=given)
    assert active.state.consumption is not None and active.state.consumption is not first
    info = await house.engine.queue("/", "in")
    assert info is not None and info.consumers == 1


async def test_a_queue_lost_twice_is_consumed_once(house: House, callback: Callback) -> None:
    active = await house.subscribe(INBOX, callback)
    await house.engine.delete_queue("/", "in")
    await house.engine.declare_queue("/", QueueSpec("in"))
    active.state.consumption = None  # a renewal came before the notice of the lost queue
    await house.hub.attacher.attach(active)
    await until(
        lambda: house.hub.attacher.sources.waiting_count > 0, "the notice of the lost queue"
    )
    await until(lambda: not house.hub.attacher.sources.waiting_count, "resumed subscription")
    info = await house.engine.queue("/", "in")
    assert info is not None and info.consumers == 1


async def test_an_exchange_is_left_for_another(house: House, callback: Callback) -> None:
    """For a renewal that asks for other content; what is not bound, or not there, is no error."""
    await house.engine.declare_exchange("/", ExchangeSpec("old", "topic"))
    active = await house.subscribe(NEWS, callback)
    binding = BindingSpec("old", active.subscription.queue, routing_key="#")
    await house.engine.bind("/", binding)
    for exchange in ("old", "old", "none"):
        await house.hub.attacher.leave(active, exchange)
    await house.engine.publish(None, "/", "old", "k", Properties(), b"old")
    await house.publish("k", b"new")
    [delivery] = await deliveries(callback, 1)
    assert delivery.body == b"new"
