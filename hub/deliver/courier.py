"""Carries messages from subscriptions' queues to their callbacks.

A consumer calls `offer`; the message waits for its pace and for a slot, is posted, and
`verdict.py` says by the answer what becomes of it. Most are posted and done with in the callbacks
of broker and sender; what has to wait for something else has a task meanwhile. A message is acked
only when its outcome is durable, and when it has failed only after the broker has confirmed the
parked copy, so a crash in between repeats it, under the same `webhook-id`, and never loses it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from ...core.clock import Clock
from ...core.model import Message
from ..attempts.log import AttemptLog
from ..engine.port import Delivery
from ..lazy import Lazy
from ..sender.port import Answer, Sender, SendError
from ..settings import HubSettings
from ..subscriptions.allowance import Allowance
from ..subscriptions.live import Live
from ..tasks import Tasks
from .envelope import Envelope
from .events import DeliveryEvents
from .holds import Holds
from .lanes import Job, Lanes
from .ledger import Ledger
from .lifetime import first_arrival_s
from .order import StrictOrder
from .pace import Pace
from .parking import Parking
from .post import Plan, Post
from .surplus import Surplus
from .verdict import OnGone, OnSpent, Verdicts, home

HOLD_BACK_S = 1.0  # a broker that takes no parked message now is not asked faster than this
LARGE_BYTES = 512 * 1024
"""Signing so many takes some milliseconds: what is longer is signed aside from the loop."""


class Courier:
    """`on_gone` ends a subscription whose callback answered 410; `on_spent` is told of one that
    has spent all attempts of a message without a success meanwhile, and why."""

    def __init__(
        self,
        sender: Lazy[Sender],
        attempts: AttemptLog,
        ack: Callable[[Sequence[Delivery]], None],
        parking: Parking,
        order: StrictOrder,
        holds: Holds,
        settings: HubSettings,
        clock: Clock,
        allowance: Allowance,
        on_gone: OnGone,
        on_spent: OnSpent,
    ) -> None:
        self._sender = sender
        self._parking = parking
        self._order = order
        self._holds = holds
        self._settings = settings
        self._clock = clock
        self._running: dict[Job, None] = {}
        self._tasks = Tasks()
        self._ended = asyncio.Event()
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
        self._events = DeliveryEvents(clock)
        ledger = Ledger(attempts, clock, ack, self._lanes.hold, self._lanes.go_on)
        self._verdicts = Verdicts(
            parking, order, holds, ledger, settings, clock, allowance, on_gone, on_spent,
            self._events,
        )  # fmt: skip

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
        await self._all_ended(within_s)
        await self._tasks.stop()
        for job in list(self._running):
            self._give_back(job)
            self._leave(job)
        await self._surplus.stop()
        await self._verdicts.stop()
        if self._sweep is not None:
            self._sweep.cancel()

    async def _all_ended(self, within_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._running:
                    self._ended.clear()
                    await self._ended.wait()

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
        self._running[job] = None
        if self._sweep is None:
            self._arm_sweep()
        try:
            self._begin(job)
        except Exception as error:
            self._tasks.own(self._fail(job, error))

    def _begin(self, job: Job) -> None:
        live, delivery = job.live, job.delivery
        sender = self._sender.made
        is_large = len(delivery.message.body) >= LARGE_BYTES
        if not is_large:
            job.envelope = self._parking.notes.read(delivery.message, delivery.sequence)
        if (
            sender is None
            or is_large
            or job.envelope.not_before
            or live.subscription.options.strict_order
            or not live.takes()
        ):
            self._tasks.own(self._run(job, self._prepare))
        else:
            self._post(job, sender, self._plan(live).post(*self._to_post(job)))

    def _arm_sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweep = loop.call_later(self._settings.part_after_s, self._part_slow)

    def _part_slow(self) -> None:
        self._sweep = None
        self._lanes.part_slow(int(self._settings.part_after_s * 1000))
        if self._lanes.has_young and self._sweep is None:
            self._arm_sweep()

    async def _run(self, job: Job, work: Callable[[Job], Awaitable[bool]]) -> None:
        """`work` tells whether the job is over, or goes on when its post is answered."""
        is_over = True
        try:
            is_over = await work(job)
        except asyncio.CancelledError:
            self._give_back(job)
        except Exception as error:
            await self._hold_back(job, error)
        finally:
            if is_over:
                self._leave(job)

    async def _fail(self, job: Job, error: Exception) -> None:
        try:
            await self._hold_back(job, error)
        finally:
            self._leave(job)

    def _leave(self, job: Job) -> None:
        del self._running[job]
        self._ended.set()
        self._order.done(job.live, job.delivery)
        self._lanes.leave(job)

    async def _hold_back(self, job: Job, error: Exception) -> None:
        self._events.held_back(job.live, error)
        try:
            await asyncio.sleep(HOLD_BACK_S)
        finally:
            self._give_back(job)
            self._holds.end_begun(job.live)

    def _give_back(self, job: Job) -> None:
        if not job.is_settled:
            job.is_settled = True
            job.delivery.nack(requeue=True)

    async def _prepare(self, job: Job) -> bool:
        """Posts what can't be posted at once; whether it is over instead."""
        live, delivery, notes = job.live, job.delivery, self._parking.notes
        if not live.takes():
            self._give_back(job)
            return True
        if len(delivery.message.body) >= LARGE_BYTES:
            job.envelope = await notes.read_aside(delivery.message, delivery.sequence)
        envelope = job.envelope
        if envelope.not_before and await self._parking.settles(*home(live), delivery, envelope):
            job.is_settled = True
            return True
        if live.subscription.options.strict_order and await self._must_wait(job, envelope):
            return True
        sender, make = await self._sender.get(), self._plan(live).post
        if len(delivery.message.body) < LARGE_BYTES:
            post = make(*self._to_post(job))
        else:
            post = await asyncio.to_thread(make, *self._to_post(job))
        self._post(job, sender, post)
        return False

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

    def _plan(self, live: Live) -> Plan:
        plan = live.plan
        if plan is None or plan.subscription is not live.subscription:
            plan = live.plan = Plan(live.subscription, self._settings.signature_method)
        return plan

    def _to_post(self, job: Job) -> tuple[Envelope, Message, float, float]:
        arrived_at = first_arrival_s(job.envelope, job.delivery, self._clock)
        return job.envelope, job.delivery.message, self._clock.wall_s(), arrived_at

    def _post(self, job: Job, sender: Sender, post: Post) -> None:
        sender.post(post.url, post.headers, post.body, partial(self._answered, job))

    def _answered(self, job: Job, answer: Answer | Exception) -> None:
        if job not in self._running:
            return  # it was given back when the hub stopped
        took_ms = self._clock.now_ms() - job.started_ms
        job.live.is_slow = took_ms >= self._slow_after_ms
        try:
            is_over = self._verdicts.gives_at_once(job, answer)
        except Exception as error:
            self._tasks.own(self._fail(job, error))
        else:
            if is_over:
                self._leave(job)
            elif isinstance(answer, Answer | SendError):
                self._tasks.own(self._run(job, partial(self._judge, answer)))
            else:
                self._tasks.own(self._fail(job, answer))

    async def _judge(self, answer: Answer | SendError, job: Job) -> bool:
        await self._verdicts.give(job, job.delivery.message, job.envelope, answer)
        return True
