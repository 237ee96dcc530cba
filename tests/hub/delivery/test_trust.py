"""No message is lost, settled twice or kept from everybody, whatever happens in whichever order.

Engine, store and database are real; the targets are scripted, and a random walk goes through
answers, pauses, ends, renewals, restarts and outages. A failing walk is repeated by its seed.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from tests.hub.support import INBOX, NEWS, House, until
from tests.support.settings import hub_settings
from tests.support.users import guest_users
from warrenmq.core.auth import User
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.errors import WarrenError
from warrenmq.core.server.listener import Listener
from warrenmq.hub.engine.embedded import EmbeddedEngine, LocalConsumption
from warrenmq.hub.engine.port import Delivery, ExchangeSpec, PublishOutcome, QueueSpec
from warrenmq.hub.errors import StorageFailed
from warrenmq.hub.guard.guard import Guard
from warrenmq.hub.requests import Resource
from warrenmq.hub.sender.port import Answer, Answered, Sender, SendError, TimedOut
from warrenmq.hub.service import Hub
from warrenmq.hub.settings import HubSettings
from warrenmq.hub.storage.database import Database
from warrenmq.hub.subscriptions.active import ActiveSubscription
from warrenmq.hub.subscriptions.options import Options
from warrenmq.hub.subscriptions.subscription import Subscription, SubscriptionStatus

STEPS = 150
SUBSCRIPTIONS: dict[str, tuple[Resource, Options]] = {
    "loose": (NEWS, Options()),
    "wide": (NEWS, Options(in_flight=5)),
    "limited": (NEWS, Options(in_flight=6, max_tps=50)),
    "strict": (NEWS, Options(strict_order=True)),
    "first": (INBOX, Options(in_flight=2)),
    "second": (INBOX, Options()),
    "leaving": (NEWS, Options()),
}
ANSWERS: tuple[Answer | SendError, ...] = (
    *[Answer(200)] * 8,
    Answer(302), Answer(404), Answer(500), Answer(503, retry_after="2"), Answer(508),
    SendError("refused"), TimedOut("no answer in time"),
)  # fmt: skip


class Once:
    """A delivery that records when it is settled again."""

    def __init__(self, delivery: Delivery, twice: list[int]) -> None:
        self._delivery = delivery
        self._twice = twice
        self._is_settled = False

    def __getattr__(self, name: str) -> Any:
        if name in ("ack", "nack", "expire"):
            self.settled()
        return getattr(self._delivery, name)

    def settled(self) -> Delivery:
        if self._is_settled:
            self._twice.append(self._delivery.sequence)
        self._is_settled = True
        return self._delivery


class Engine(EmbeddedEngine):
    """Takes no message into a retry queue while its disk is full, and knows who consumes."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.broker = broker
        self.is_full = False
        self.twice: list[int] = []
        self._consumptions: list[LocalConsumption] = []

    async def publish(
        self,
        user: User | None,
        vhost: str,
        exchange: str,
        routing_key: str,
        *args: Any,
        **kwargs: Any,
    ) -> PublishOutcome:
        is_ours = exchange.startswith("hub.") or routing_key.startswith("hub.")
        if self.is_full and is_ours:
            return PublishOutcome.NOT_DURABLE
        return await super().publish(user, vhost, exchange, routing_key, *args, **kwargs)

    async def consume(
        self, vhost: str, queue: str, *, on_delivery: Callable[[Delivery], None], **given: Any
    ) -> LocalConsumption:
        def deliver(delivery: Delivery) -> None:
            on_delivery(cast(Delivery, Once(delivery, self.twice)))

        consumption = await super().consume(vhost, queue, on_delivery=deliver, **given)
        self._consumptions.append(consumption)
        return consumption

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        super().ack([cast(Once, one).settled() for one in deliveries])

    async def lose_consumers(self) -> None:
        """As at the end of a process: what it has not settled comes again."""
        for consumption in self._consumptions:
            await consumption.close()
        self._consumptions.clear()


@dataclass(slots=True)
class Asked:
    name: str
    body: bytes
    answered: Answered


class Targets:
    """Every post waits for its answer, or gets 200 at once while `are_well`."""

    def __init__(self) -> None:
        self.are_well = False
        self.asked: list[Asked] = []
        self.taken: dict[str, list[bytes]] = {name: [] for name in SUBSCRIPTIONS}

    def post(self, url: str, headers: Mapping[str, str], body: bytes, answered: Answered) -> None:
        name = url.split("?")[0].rpartition("/")[2]
        asked = Asked(name, body, answered)
        self.asked.append(asked)
        if self.are_well:
            self.give(asked, Answer(200))

    def give(self, asked: Asked, answer: Answer | SendError) -> None:
        self.asked.remove(asked)
        if isinstance(answer, Answer) and answer.status == 200:
            self.taken[asked.name].append(asked.body)
        asyncio.get_running_loop().call_soon(asked.answered, answer)

    async def close(self) -> None:
        self.asked.clear()


class Town(House):
    """A house whose targets, clock, database and disk do what a test wants."""

    def __init__(self, engine: Engine, directory: Path, clock: ManualClock) -> None:
        self.targets = Targets()
        super().__init__(engine, engine.broker, directory, clock)

    def make_hub(self, **changed: Any) -> Hub:
        settings = hub_settings(
            allow_loopback=True,
            source_poll_s=0.01,
            drain_s=0.01,
            max_attempts=4,
            quick_slots=3,
            new_slots=3,
            slow_slots=1,
            max_in_flight=6,
            part_after_s=0.01,
            **changed,
        )

        async def make_sender(settings: HubSettings, guard: Guard) -> Sender:
            return self.targets

        return Hub(
            self.engine, settings, self.directory, starter=self.starter, clock=self.clock,
            make_sender=make_sender,
        )  # fmt: skip


@dataclass(slots=True)
class Walk:
    """`published` and `posted` are the bodies that went to the exchange and into the queue."""

    town: Town
    engine: Engine
    clock: ManualClock
    chance: random.Random
    is_down: bool = False
    published: list[bytes] = field(default_factory=list)
    posted: list[bytes] = field(default_factory=list)
    _under_way: list[asyncio.Task[None]] = field(default_factory=list)

    async def begin(self) -> None:
        for name, (source, options) in SUBSCRIPTIONS.items():
            await self.town.hub.subscription_store.put(self.wanted(name, source, options))

    def wanted(self, name: str, source: Resource, options: Options) -> Subscription:
        return Subscription(
            id=secrets.token_hex(16),
            source=source,
            topic="#" if source.kind == "x" else "",
            callback=f"http://127.0.0.1:1/{name}",
            lease_seconds=10**6,
            expires_at=self.clock.wall_s() + 10**6,
            owner="guest",
            options=options,
        )

    async def go(self) -> None:
        steps: list[tuple[int, Callable[[], Coroutine[Any, Any, None]]]] = [
            (30, self.publish), (60, self.answer), (5, self.pause), (8, self.resume),
            (4, self.renew), (1, self.leave), (4, self.break_database), (4, self.fill_disk),
            (15, self.pass_time), (2, self.restart),
        ]  # fmt: skip
        weights = [weight for weight, _ in steps]
        for _ in range(STEPS):
            [(_, step)] = self.chance.choices(steps, weights)
            await step()
            for _ in range(self.chance.randrange(6)):
                await asyncio.sleep(0)
            if self.chance.random() < 0.1:
                await asyncio.sleep(0.005)

    async def publish(self) -> None:
        body = b"%d" % (len(self.published) + len(self.posted))
        if self.chance.random() < 0.6:
            self.published.append(body)
            await self.town.publish("k", body)
        else:
            self.posted.append(body)
            await self.town.post("in", "k", body)

    async def answer(self) -> None:
        targets = self.town.targets
        if not targets.asked:
            return
        asked = self.chance.choice(targets.asked)
        is_gone = asked.name == "leaving" and self.chance.random() < 0.1
        targets.give(asked, Answer(410) if is_gone else self.chance.choice(ANSWERS))

    async def pause(self) -> None:
        active = self._one()
        self._start(self.town.hub.subscription_store.pause(active, "by hand"))

    async def resume(self) -> None:
        self._start(self.town.hub.subscription_store.resume(self._one()))

    async def renew(self) -> None:
        name = self.chance.choice(["wide", "limited", "first", "second"])
        source, options = SUBSCRIPTIONS[name]
        changed = self.chance.choice(
            [Options(), Options(in_flight=4), Options(max_tps=200), Options(in_flight=9)]
        )
        wanted = self.wanted(name, source, self.chance.choice([options, changed]))
        self._start(self.town.hub.subscription_store.put(wanted))

    async def leave(self) -> None:
        for active in self.town.hub.subscription_store.all():
            if self.name_of(active) in ("leaving", "second"):
                self._start(self.town.hub.subscription_store.end(active))
                return

    async def break_database(self) -> None:
        self.is_down = not self.is_down

    async def fill_disk(self) -> None:
        self.engine.is_full = not self.engine.is_full

    async def pass_time(self) -> None:
        self.clock.advance(self.chance.choice([200, 1_000, 3_000]))
        self.engine.broker.tick()
        self.engine.broker.on_work()

    async def restart(self) -> None:
        """A stop leaves nothing unsettled but what the database did not take."""
        await self._finish_steps()
        was_down = self.is_down
        await self.town.stop()
        assert was_down or not self.unacked()
        self.is_down = False
        await self.engine.lose_consumers()
        self.town.hub = self.town.make_hub()
        await self.town.start()

    async def heal(self) -> None:
        """All is well from now on, and all that moves comes to rest."""
        self.is_down = self.engine.is_full = False
        await self._finish_steps()
        self.town.targets.are_well = True
        for asked in list(self.town.targets.asked):
            self.town.targets.give(asked, Answer(200))
        await until(self._is_at_rest, "rest", 30.0)

    async def _is_at_rest(self) -> bool:
        for active in self.town.hub.subscription_store.all():
            if active.subscription.status is SubscriptionStatus.PAUSED:
                await self.town.hub.subscription_store.resume(active)
        await self.pass_time()
        await asyncio.sleep(0.02)
        return not any(self.left().values())

    def left(self) -> dict[str, tuple[int, int]]:
        """Ready and unacked messages by queue, where there are any that should move."""
        served = {active.subscription.queue for active in self.town.hub.subscription_store.all()}
        return {
            name: (queue.ready_count, queue.unacked_count)
            for name, queue in self.engine.broker.vhosts["/"].queues.items()
            if queue.unacked_count
            or (queue.ready_count and (name in served or name.startswith("hub.retry.")))
        }

    def unacked(self) -> dict[str, int]:
        queues = self.engine.broker.vhosts["/"].queues
        return {name: one.unacked_count for name, one in queues.items() if one.unacked_count}

    async def dead(self) -> list[tuple[str, bytes]]:
        """Subscription and body of each dead letter."""
        depth = await self.town.depth("hub.dead") or 0
        taken = await self.town.take("hub.dead", depth) if depth else []
        found = [(one.message.properties.headers or {}, one.message.body) for one in taken]
        return [(str(headers["x-hub-subscription"]), body) for headers, body in found]

    def name_of(self, active: ActiveSubscription) -> str:
        return active.subscription.callback.rpartition("/")[2]

    def _one(self) -> ActiveSubscription:
        return self.chance.choice(self.town.hub.subscription_store.all())

    def _start(self, step: Coroutine[Any, Any, None]) -> None:
        self._under_way.append(asyncio.create_task(step))

    async def _finish_steps(self) -> None:
        was_down, self.is_down = self.is_down, False
        for outcome in await asyncio.gather(*self._under_way, return_exceptions=True):
            if isinstance(outcome, BaseException):
                assert isinstance(outcome, WarrenError), outcome
        self._under_way.clear()
        self.is_down = was_down


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits of the loop's own clock are short; those of the delay queues pass by hand."""
    monkeypatch.setattr("warrenmq.hub.delivery.retry.DELAYS_S", (0.01,) * 11)
    monkeypatch.setattr("warrenmq.hub.delivery.dispatcher.BACK_OFF_S", 0.01)
    monkeypatch.setattr("warrenmq.hub.delivery.overload.MAX_WAITING", 3)
    monkeypatch.setattr("warrenmq.hub.delivery.breaker.THRESHOLD", 3)
    monkeypatch.setattr("warrenmq.hub.delivery.breaker.FIRST_COOL_DOWN_S", 0.01)
    monkeypatch.setattr("warrenmq.hub.delivery.breaker.MAX_COOL_DOWN_S", 0.02)
    monkeypatch.setattr("warrenmq.hub.attempts.log.GATHER_S", 0.002)
    monkeypatch.setattr("warrenmq.hub.attempts.log.TRY_AGAIN_S", 0.01)
    monkeypatch.setattr("warrenmq.hub.attempts.log.STOP_WITHIN_S", 0.5)


@pytest.fixture
async def walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Walk]:
    clock = ManualClock()
    broker = Broker(guest_users(), clock=clock)
    listener = Listener(broker)
    await listener.start([])
    engine = Engine(broker)
    await engine.declare_exchange("/", ExchangeSpec("news", "topic"))
    await engine.declare_queue("/", QueueSpec("in"))
    town = Town(engine, tmp_path, clock)
    walk = Walk(town, engine, clock, random.Random(0))
    begin = Database.begin

    @asynccontextmanager
    async def maybe_begin(database: Database) -> AsyncIterator[AsyncSession]:
        if walk.is_down:
            raise StorageFailed("can't be reached now", field="database")
        async with begin(database) as session:
            yield session

    monkeypatch.setattr(Database, "begin", maybe_begin)
    await town.start()
    yield walk
    await town.stop()
    await listener.stop()


@pytest.mark.parametrize("seed", range(8))
async def test_trust_follows_its_rules_in_a_random_walk(walk: Walk, seed: int) -> None:
    walk.chance.seed(seed)
    await walk.begin()
    ids = {
        walk.name_of(active): active.subscription.id
        for active in walk.town.hub.subscription_store.all()
    }
    await walk.go()
    await walk.heal()
    await walk.restart()
    assert walk.engine.twice == []
    dead = await walk.dead()
    taken = walk.town.targets.taken
    for name in ("loose", "wide", "limited", "strict"):
        dead_letters = {body for subscription_id, body in dead if subscription_id == ids[name]}
        assert {*taken[name], *dead_letters} == set(walk.published), name
    assert {*taken["first"], *taken["second"], *(body for _, body in dead)} >= set(walk.posted)
    dead_letters = {body for subscription_id, body in dead if subscription_id == ids["strict"]}
    firsts = [int(body) for body in dict.fromkeys(taken["strict"]) if body not in dead_letters]
    assert firsts == sorted(firsts)
