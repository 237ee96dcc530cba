"""When a subscription is consumed, whatever comes in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.http import Callback
from warrenmq.core.message.model import Properties
from warrenmq.hub.engine.port import BindingSpec, ExchangeSpec, QueueSpec
from warrenmq.hub.requests import Resource
from warrenmq.hub.settings import HubSettings
from warrenmq.hub.subscriptions.active import ActiveSubscription
from warrenmq.hub.subscriptions.attach import Attacher
from warrenmq.hub.subscriptions.options import Options
from warrenmq.hub.subscriptions.subscription import Status, Subscription

from ..support import INBOX, NEWS, House, deliveries, request, until


def active_of(source: Any = INBOX, **given: Any) -> ActiveSubscription:
    fields: dict[str, Any] = {
        "id": "1", "source": source, "topic": "#", "callback": "http://s/cb", "lease_seconds": 60,
        "expires_at": 0.0, "owner": "guest", "status": Status.ACTIVE, **given,
    }  # fmt: skip
    return ActiveSubscription(Subscription(**fields))


async def test_an_auto_delete_queue_outlives_a_pause(house: House) -> None:
    """Not the end of its last subscription."""
    await house.engine.declare_queue("/", QueueSpec("own", auto_delete=True))
    active = active_of(Resource("/", "q", "own"))
    attacher = Attacher(house.engine, HubSettings(), lambda *_: None, lambda *_: None)
    await attacher.attach(active)
    await attacher.suspend(active)
    assert await house.engine.queue("/", "own") is not None
    await attacher.resume(active)
    await attacher.detach(active)
    assert await house.engine.queue("/", "own") is None


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
    return Attacher(engine, HubSettings(in_flight_per_subscription=7), _nobody, _nobody)


def _nobody(*_: Any) -> None:
    raise AssertionError("no message was sent")


async def test_a_suspended_subscription_takes_nothing_until_it_is_resumed(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    attacher = house.hub._attacher
    for _ in range(2):
        await attacher.suspend(active)
    await attacher.attach(active)
    await house.publish("k", b"waits")
    assert await house.depth(active.subscription.queue) == 1
    for _ in range(2):
        await attacher.resume(active)
    info = await house.engine.queue("/", active.subscription.queue)
    assert info is not None and info.consumers == 1
    assert [one.body for one in await deliveries(callback, 1)] == [b"waits"]


async def test_what_was_paused_or_ended_is_not_resumed(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    attacher = house.hub._attacher
    await attacher.suspend(active)
    await house.hub.subscriptions.pause(active, "for now")
    await attacher.resume(active)
    await house.post("in", "k", b"stays")
    assert await house.depth("in") == 1 and active.consumption is None
    await house.hub.subscriptions.unsubscribe(request(INBOX, callback.url))
    await attacher.resume(active)
    assert active.consumption is None


async def test_what_is_over_is_not_attached_again(house: House, callback: Callback) -> None:
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    await house.hub.subscriptions.unsubscribe(request(NEWS, callback.url))
    await house.engine.delete_exchange("/", "news")
    await house.hub._attacher.resume(active)
    assert house.hub._attacher.sources.waiting_count == 0
    assert await house.depth(active.subscription.queue) is None


async def test_a_renewal_leaves_a_suspension_to_whoever_began_it(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    await house.hub._attacher.suspend(active)
    await house.hub._store.renew(active, 60)
    assert active.consumption is None and not active.takes()


def suspended(attacher: Attacher, active: ActiveSubscription) -> Any:
    return attacher.suspend(active)


async def paused(attacher: Attacher, active: ActiveSubscription) -> None:
    active.subscription = active_of(status=Status.PAUSED).subscription
    await active.cancel()


def over(attacher: Attacher, active: ActiveSubscription) -> Any:
    return attacher.detach(active)


@pytest.mark.parametrize("change", [suspended, paused, over])
async def test_a_change_while_the_engine_is_asked_wins(
    change: Callable[[Attacher, ActiveSubscription], Any],
) -> None:
    engine = SlowEngine()
    attacher, active = attacher_of(engine), active_of()
    attaching = asyncio.create_task(attacher.attach(active))
    await until(lambda: engine.begun == 1, "a consume under way")
    await change(attacher, active)
    engine.let_go()
    await attaching
    assert engine.running == 0 and active.consumption is None


async def test_attaching_many_times_at_once_consumes_once() -> None:
    engine = SlowEngine()
    attacher, active = attacher_of(engine), active_of()
    attaching = [asyncio.create_task(attacher.attach(active)) for _ in range(3)]
    await until(lambda: engine.begun == 1, "a consume under way")
    await attacher.suspend(active)
    attaching.append(asyncio.create_task(attacher.resume(active)))
    engine.let_go()
    await asyncio.gather(*attaching)
    assert (engine.begun, engine.running) == (1, 1) and active.consumption is not None


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
def test_how_many_are_under_way(options: Options, expected: int) -> None:
    subscription = active_of(options=options).subscription
    assert attacher_of(SlowEngine()).prefetch(subscription) == expected


async def test_a_renewal_with_another_number_in_flight_consumes_anew(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    first = active.consumption
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    assert active.consumption is first
    given = {"hub.in_flight": "5"}
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url, given=given))
    assert active.consumption is not None and active.consumption is not first
    info = await house.engine.queue("/", "in")
    assert info is not None and info.consumers == 1


async def test_a_queue_that_is_lost_twice_is_consumed_once(
    house: House, callback: Callback
) -> None:
    await house.hub.subscriptions.subscribe(request(INBOX, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    await house.engine.delete_queue("/", "in")
    await house.engine.declare_queue("/", QueueSpec("in"))
    active.consumption = None  # a renewal came before the notice of the lost queue
    await house.hub._attacher.attach(active)
    await until(
        lambda: house.hub._attacher.sources.waiting_count > 0, "the notice of the lost queue"
    )
    await until(lambda: not house.hub._attacher.sources.waiting_count, "resumed subscription")
    info = await house.engine.queue("/", "in")
    assert info is not None and info.consumers == 1


async def test_an_exchange_is_left_for_another(house: House, callback: Callback) -> None:
    """For a renewal that asks for other content; what is not bound, or not there, is no error."""
    await house.engine.declare_exchange("/", ExchangeSpec("old", "topic"))
    await house.hub.subscriptions.subscribe(request(NEWS, callback.url))
    [active] = house.hub.subscriptions.active_subscriptions()
    binding = BindingSpec("old", active.subscription.queue, routing_key="#")
    await house.engine.bind("/", binding)
    for exchange in ("old", "old", "none"):
        await house.hub._attacher.leave(active, exchange)
    await house.engine.publish("/", "old", "k", Properties(), b"old")
    await house.publish("k", b"new")
    [delivery] = await deliveries(callback, 1)
    assert delivery.body == b"new"
