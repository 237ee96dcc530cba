"""Carries messages from subscriptions' queues to their callbacks.

A consumer calls `offer`; the message waits for its pace and for a slot, a task posts it, and
`verdict.py` says by the answer what becomes of it. A message is acked only when its outcome is
durable, and when it has failed only after the broker has confirmed the parked copy, so a crash
in between repeats it, under the same `webhook-id`, and never loses it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ...core.clock import Clock
from ...core.model import Message
from ..attempts.log import AttemptLog
from ..engine.port import Delivery
from ..sender.port import Answer, Sender, SendError
from ..settings import HubSettings
from ..subscriptions.live import Live
from .envelope import Envelope, read_envelope
from .holds import Holds
from .lanes import Job, Lanes
from .ledger import Ledger
from .lifetime import first_arrival_s
from .order import StrictOrder
from .pace import Pace
from .parking import Parking
from .post import Plan
from .surplus import Surplus
from .verdict import OnGone, OnSpent, Verdicts, home

HOLD_BACK_S = 1.0  # a broker that takes no parked message now is not asked faster than this
LARGE_BYTES = 512 * 1024
"""Signing so many takes some milliseconds: what is longer is signed aside from the loop."""

log = logging.getLogger(__name__)


class Courier:
    """`on_gone` ends a subscription whose callback answered 410; `on_spent` is told of one that
    has spent all attempts of a message without a success meanwhile, and why."""

    def __init__(
        self,
        sender: Callable[[], Awaitable[Sender]],
        attempts: AttemptLog,
        parking: Parking,
        order: StrictOrder,
        holds: Holds,
        settings: HubSettings,
        clock: Clock,
        on_gone: OnGone,
        on_spent: OnSpent,
    ) -> None:
        self._sender = sender
        self._parking = parking
        self._order = order
        self._holds = holds
        self._settings = settings
        self._clock = clock
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._waiting = 0
        self._surplus = Surplus(holds)
        self._slow_after_ms = int(settings.slow_after_s * 1000)
        self._lanes = Lanes(
            settings.quick_slots,
            settings.new_slots,
            settings.slow_slots,
            settings.max_in_flight,
            clock,
            self._start,
            lambda action: asyncio.get_running_loop().call_soon(action),
        )
        self._pace = Pace(settings, self._enter)
        ledger = Ledger(attempts, clock, self._lanes.hold, self._lanes.go_on)
        self._verdicts = Verdicts(parking, order, holds, ledger, settings, clock, on_gone, on_spent)

    def offer(self, live: Live, delivery: Delivery) -> None:
        if self._has_room_for(live, delivery):
            self._waiting += 1
            self._pace.enter(live, delivery)
        else:
            self._surplus.turn_away(live, delivery)

    async def drain(self, within_s: float) -> None:
        """Gives back what has not started, waits for the rest, then gives that back too."""
        for delivery in self._take_waiting():
            delivery.nack(requeue=True)
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=within_s)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._surplus.stop()
        await self._verdicts.stop()
        if self._sweep is not None:
            self._sweep.cancel()

    def _take_waiting(self) -> list[Delivery]:
        paced = [delivery for _, delivery in self._pace.take_waiting()]
        queued = [job.delivery for job in self._lanes.take_waiting()]
        self._waiting = 0
        return [*queued, *paced, *self._surplus.take_all()]

    def _has_room_for(self, live: Live, delivery: Delivery) -> bool:
        if live in self._surplus:
            return False
        if live.subscription.options.strict_order:
            return self._order.take(live, delivery)
        is_full = self._surplus.is_beyond(self._waiting)
        return not is_full or live.is_probed or not self._verdicts.is_parallel(live)

    def _enter(self, live: Live, delivery: Delivery) -> None:
        if live.takes():
            self._lanes.enter(live, delivery)
        else:
            self._waiting -= 1
            self._order.done(live, delivery)
            delivery.nack(requeue=True)

    def _start(self, job: Job) -> None:
        self._waiting -= 1
        task = asyncio.create_task(self._run(job))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        if self._sweep is None:
            self._arm_sweep()

    def _arm_sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweep = loop.call_later(self._settings.part_after_s, self._part_slow)

    def _part_slow(self) -> None:
        self._sweep = None
        self._lanes.part_slow(int(self._settings.part_after_s * 1000))
        if self._lanes.has_young and self._sweep is None:
            self._arm_sweep()

    async def _run(self, job: Job) -> None:
        try:
            await self._deliver(job)
        except asyncio.CancelledError:
            self._give_back(job)
        except Exception as error:
            name = job.live.subscription.id
            log.warning("subscription %s holds a message back: %r", name, error)
            await self._hold_back(job)
        finally:
            self._order.done(job.live, job.delivery)
            self._lanes.leave(job)

    async def _hold_back(self, job: Job) -> None:
        try:
            await asyncio.sleep(HOLD_BACK_S)
        finally:
            self._give_back(job)
            self._holds.end_begun(job.live)

    def _give_back(self, job: Job) -> None:
        if not job.is_settled:
            job.is_settled = True
            job.delivery.nack(requeue=True)

    async def _deliver(self, job: Job) -> None:
        live, delivery = job.live, job.delivery
        if not live.takes():
            self._give_back(job)
            return
        message = delivery.message
        envelope = read_envelope(message, delivery.sequence)
        if envelope.not_before and await self._parking.settles(*home(live), delivery, envelope):
            job.is_settled = True
            return
        if live.subscription.options.strict_order and await self._must_wait(job, envelope):
            return
        answer = await self._attempt(job, message, envelope)
        await self._verdicts.give(job, message, envelope, answer)

    async def _must_wait(self, job: Job, envelope: Envelope) -> bool:
        """Whether a strict order waits with this message, as after a restart."""
        wait_s = self._order.wait_s(job.live, job.delivery, envelope)
        if wait_s <= 0:
            return False
        await self._holds.begin(job.live)
        self._give_back(job)
        wait_s = self._parking.within_life_s(envelope, job.delivery, wait_s)
        self._holds.end_in(job.live, wait_s)
        return True

    async def _attempt(self, job: Job, message: Message, envelope: Envelope) -> Answer | SendError:
        live = job.live
        plan = live.plan
        if plan is None or plan.subscription is not live.subscription:
            plan = live.plan = Plan(live.subscription, self._settings.signature_method)
        sender = await self._sender()
        arrived_at = first_arrival_s(envelope, job.delivery, self._clock)
        parts = (envelope, message, self._clock.wall_s(), arrived_at)
        if len(message.body) < LARGE_BYTES:
            post = plan.post(*parts)
        else:
            post = await asyncio.to_thread(plan.post, *parts)
        answer: Answer | SendError
        try:
            answer = await sender.post(post.url, post.headers, post.body)
        except SendError as error:
            answer = error
        took_ms = self._clock.now_ms() - job.started_ms
        live.is_slow = took_ms >= self._slow_after_ms
        return answer
