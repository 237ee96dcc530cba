"""Carries messages from subscriptions' queues to their callbacks.

A consumer calls `offer`; the lanes give the job a slot; a task posts it and settles the
message by the answer: 2xx acks, 410 ends the subscription, anything else parks the message for
a later attempt or, when its attempts are spent, buries it. The message is acked only after the
broker has confirmed the parked copy, so a crash in between repeats it and never loses it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace

from ...core.clock import Clock
from ...core.model import Message
from ..engine.port import Delivery
from ..live import Live
from ..retry import delay_s, retry_after_s
from ..sender.port import Answer, Sender, SendError
from ..settings import HubSettings
from .envelope import Envelope, read_envelope
from .lanes import Job, Lanes
from .parking import Parking
from .post import make_post

GONE = 410
HOLD_BACK_S = 1.0  # a broker that takes no parked message now is not asked faster than this

log = logging.getLogger(__name__)


class Courier:
    """`on_gone` ends a subscription whose callback answered 410."""

    def __init__(
        self,
        sender: Callable[[], Awaitable[Sender]],
        parking: Parking,
        settings: HubSettings,
        clock: Clock,
        on_gone: Callable[[Live], Awaitable[None]],
    ) -> None:
        self._sender = sender
        self._parking = parking
        self._settings = settings
        self._clock = clock
        self._on_gone = on_gone
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._slow_after_ms = int(settings.slow_after_s * 1000)
        self._lanes = Lanes(
            settings.fast_slots, settings.slow_slots, settings.max_in_flight, self._start
        )

    def offer(self, live: Live, delivery: Delivery) -> None:
        self._lanes.enter(live, delivery, self._clock.now_ms())

    async def drain(self, within_s: float) -> None:
        """Gives back what has not started, waits for the rest, then gives that back too."""
        for job in self._lanes.take_waiting():
            job.delivery.nack(requeue=True)
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=within_s)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._sweep is not None:
            self._sweep.cancel()

    def _start(self, job: Job) -> None:
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
        after_ms = int(self._settings.part_after_s * 1000)
        self._lanes.part_slow(self._clock.now_ms(), after_ms)
        if self._lanes.has_young and self._sweep is None:
            self._arm_sweep()

    async def _run(self, job: Job) -> None:
        try:
            await self._deliver(job)
        except asyncio.CancelledError:
            job.delivery.nack(requeue=True)
        except Exception as error:
            name = job.live.subscription.id
            log.warning("subscription %s holds a message back: %r", name, error)
            await self._hold_back(job)
        finally:
            self._lanes.leave(job, self._clock.now_ms())

    async def _hold_back(self, job: Job) -> None:
        try:
            await asyncio.sleep(HOLD_BACK_S)
        finally:
            job.delivery.nack(requeue=True)

    async def _deliver(self, job: Job) -> None:
        live, delivery = job.live, job.delivery
        if live.is_over:
            delivery.nack(requeue=True)
            return
        message = delivery.message  # decoded anew each time it is asked for
        envelope = read_envelope(message, delivery.sequence)
        if self._parking.is_early(envelope):
            await self._parking.park_again(*self._home(live), message, envelope)
            delivery.ack()
            return
        answer = await self._attempt(job, message, envelope)
        if isinstance(answer, Answer) and 200 <= answer.status < 300:
            delivery.ack()
        elif isinstance(answer, Answer) and answer.status == GONE:
            await self._end(live, delivery)
        else:
            await self._fail(live, message, envelope, answer)
            delivery.ack()

    async def _attempt(self, job: Job, message: Message, envelope: Envelope) -> Answer | SendError:
        post = make_post(
            job.live.subscription,
            envelope,
            message,
            now_s=self._clock.wall_s(),
            signature_method=self._settings.signature_method,
        )
        sender = await self._sender()
        try:
            return await sender.post(post.url, post.headers, post.body)
        except SendError as error:
            return error
        finally:
            took_ms = self._clock.now_ms() - job.started_ms
            job.live.is_slow = took_ms >= self._slow_after_ms

    async def _end(self, live: Live, delivery: Delivery) -> None:
        try:
            await self._on_gone(live)
        finally:
            delivery.nack(requeue=True)  # a queue's other subscribers may take it

    async def _fail(
        self, live: Live, message: Message, envelope: Envelope, answer: Answer | SendError
    ) -> None:
        """Parks or buries the message; it may be acked afterwards."""
        failed = replace(envelope, failures=envelope.failures + 1)
        vhost, queue = self._home(live)
        if failed.failures >= self._settings.max_attempts:
            reason = f"{failed.failures} attempts, the last: {_describe(answer)}"
            await self._parking.bury(vhost, message, failed, live.subscription.id, reason)
        else:
            wait_s = self._wait_s(failed.failures, answer)
            await self._parking.park(vhost, queue, message, failed, wait_s)

    def _wait_s(self, failures: int, answer: Answer | SendError) -> float:
        asked = answer.retry_after if isinstance(answer, Answer) else None
        after_s = retry_after_s(asked, self._clock.wall_s())
        return delay_s(failures, random.random(), after_s)

    def _home(self, live: Live) -> tuple[str, str]:
        return live.subscription.source.vhost, live.subscription.queue


def _describe(answer: Answer | SendError) -> str:
    return f"status {answer.status}" if isinstance(answer, Answer) else str(answer)
