"""Carries messages from subscriptions' queues to their callbacks.

A consumer calls `offer`; the message waits for the rate limits and for a slot, is posted, and
`outcomes.py` settles it by the answer. Most are posted and settled in the callbacks of broker and
sender; what has to wait for something else has a task meanwhile. A message is acked only when its
outcome is durable, and when it has failed only after the broker has confirmed the copy in a retry
queue, so a crash in between repeats it, under the same `webhook-id`, and never loses it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from ...core.clock import Clock
from ...core.message.model import Message
from ..attempts.log import AttemptLog
from ..engine.port import Delivery
from ..lazy import Lazy
from ..sender.port import Answer, Sender, SendError
from ..settings import HubSettings
from ..subscriptions.active import ActiveSubscription
from ..subscriptions.content_budget import ContentBudget
from ..tasks import Tasks
from .concurrency import ConcurrencyPools, Job
from .envelope import Envelope
from .events import DeliveryEvents
from .lifetime import first_arrival_s
from .order import StrictOrder
from .outcomes import OnAttemptsExhausted, OnCallbackGone, OutcomeHandler, home
from .overload import Overload
from .pending_attempts import PendingAttempts
from .rate_limits import RateLimits
from .request import DeliveryRequest, RequestTemplate
from .retry_queues import RetryQueues
from .suspensions import Suspensions

BACK_OFF_S = 1.0
"""Between two tries to put a message into a retry queue that the broker refuses."""
LARGE_BYTES = 512 * 1024
"""Bodies of this size and above are signed in a thread: it takes some milliseconds."""


class Dispatcher:
    """Posts the messages of all subscriptions.

    `on_callback_gone` is called for a subscription whose callback answered 410, and ends it;
    `on_attempts_exhausted` for one that has used up all attempts of a message without a success
    meanwhile, with the reason.
    """

    def __init__(
        self,
        sender: Lazy[Sender],
        attempts: AttemptLog,
        ack: Callable[[Sequence[Delivery]], None],
        retry_queues: RetryQueues,
        order: StrictOrder,
        suspensions: Suspensions,
        settings: HubSettings,
        clock: Clock,
        content_budget: ContentBudget,
        on_callback_gone: OnCallbackGone,
        on_attempts_exhausted: OnAttemptsExhausted,
    ) -> None:
        self._sender = sender
        self._retry_queues = retry_queues
        self._order = order
        self._suspensions = suspensions
        self._settings = settings
        self._clock = clock
        self._running: dict[Job, None] = {}
        self._tasks = Tasks()
        self._ended = asyncio.Event()
        self._sweep: asyncio.TimerHandle | None = None
        self._waiting = 0
        self._overload = Overload(suspensions)
        self._slow_after_ms = int(settings.slow_after_s * 1000)
        self._pools = ConcurrencyPools(
            settings.quick_slots,
            settings.new_slots,
            settings.slow_slots,
            settings.max_in_flight,
            clock,
            self._start,
            lambda action: asyncio.get_running_loop().call_soon(action),
        )
        self._rate_limits = RateLimits(settings, self._enter)
        self._events = DeliveryEvents(clock)
        pending_attempts = PendingAttempts(
            attempts, clock, ack, self._pools.pause, self._pools.resume
        )
        self._outcomes = OutcomeHandler(
            retry_queues, order, suspensions, pending_attempts, settings, clock, content_budget,
            on_callback_gone, on_attempts_exhausted, self._events,
        )  # fmt: skip

    def offer(self, active: ActiveSubscription, delivery: Delivery) -> None:
        if self._has_room_for(active, delivery):
            self._waiting += 1
            self._rate_limits.enter(active, delivery)
        else:
            self._overload.turn_away(active, delivery)

    async def drain(self, within_s: float) -> None:
        """Requeues what has not started, waits for the rest, then requeues that too."""
        for delivery in self._take_waiting():
            delivery.nack(requeue=True)
        await self._all_ended(within_s)
        await self._tasks.stop()
        for job in list(self._running):
            self._give_back(job)
            self._leave(job)
        await self._overload.stop()
        await self._outcomes.stop()
        if self._sweep is not None:
            self._sweep.cancel()

    async def _all_ended(self, within_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._running:
                    self._ended.clear()
                    await self._ended.wait()

    def _take_waiting(self) -> list[Delivery]:
        limited = [delivery for _, delivery in self._rate_limits.take_waiting()]
        queued = [job.delivery for job in self._pools.take_waiting()]
        self._waiting = 0
        return [*queued, *limited, *self._overload.take_all()]

    def _has_room_for(self, active: ActiveSubscription, delivery: Delivery) -> bool:
        if active in self._overload:
            return False
        if active.subscription.options.strict_order:
            return self._order.take(active, delivery)
        is_full = self._overload.is_beyond(self._waiting)
        return not is_full or active.is_probed or not self._outcomes.is_parallel(active)

    def _enter(self, active: ActiveSubscription, delivery: Delivery) -> None:
        if active.takes():
            self._pools.enter(active, delivery)
        else:
            self._waiting -= 1
            self._order.done(active, delivery)
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
        active, delivery = job.active, job.delivery
        sender = self._sender.made
        is_large = len(delivery.message.body) >= LARGE_BYTES
        if not is_large:
            job.envelope = self._retry_queues.internal_headers.read(
                delivery.message, delivery.sequence
            )
        if (
            sender is None
            or is_large
            or job.envelope.not_before
            or active.subscription.options.strict_order
            or not active.takes()
        ):
            self._tasks.own(self._run(job, self._prepare))
        else:
            self._post(
                job, sender, self._template(active).make_request(*self._request_arguments(job))
            )

    def _arm_sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweep = loop.call_later(self._settings.part_after_s, self._move_slow)

    def _move_slow(self) -> None:
        self._sweep = None
        self._pools.move_slow(int(self._settings.part_after_s * 1000))
        if self._pools.has_young and self._sweep is None:
            self._arm_sweep()

    async def _run(self, job: Job, work: Callable[[Job], Awaitable[bool]]) -> None:
        """Runs `work`, which returns False if the job goes on when its post is answered."""
        is_over = True
        try:
            is_over = await work(job)
        except asyncio.CancelledError:
            self._give_back(job)
        except Exception as error:
            await self._back_off(job, error)
        finally:
            if is_over:
                self._leave(job)

    async def _fail(self, job: Job, error: Exception) -> None:
        try:
            await self._back_off(job, error)
        finally:
            self._leave(job)

    def _leave(self, job: Job) -> None:
        del self._running[job]
        self._ended.set()
        self._order.done(job.active, job.delivery)
        self._pools.leave(job)

    async def _back_off(self, job: Job, error: Exception) -> None:
        self._events.backed_off(job.active, error)
        try:
            await asyncio.sleep(BACK_OFF_S)
        finally:
            self._give_back(job)
            self._suspensions.end_begun(job.active)

    def _give_back(self, job: Job) -> None:
        if not job.is_settled:
            job.is_settled = True
            job.delivery.nack(requeue=True)

    async def _prepare(self, job: Job) -> bool:
        """Posts what can't be posted at once. Returns whether the job ended without a post."""
        active, delivery, internal_headers = (
            job.active,
            job.delivery,
            self._retry_queues.internal_headers,
        )
        if not active.takes():
            self._give_back(job)
            return True
        if len(delivery.message.body) >= LARGE_BYTES:
            job.envelope = await internal_headers.read_aside(delivery.message, delivery.sequence)
        envelope = job.envelope
        if envelope.not_before and await self._retry_queues.settles(
            *home(active), delivery, envelope
        ):
            job.is_settled = True
            return True
        if active.subscription.options.strict_order and await self._must_wait(job, envelope):
            return True
        sender, make = await self._sender.get(), self._template(active).make_request
        if len(delivery.message.body) < LARGE_BYTES:
            post = make(*self._request_arguments(job))
        else:
            post = await asyncio.to_thread(make, *self._request_arguments(job))
        self._post(job, sender, post)
        return False

    async def _must_wait(self, job: Job, envelope: Envelope) -> bool:
        """Requeues a message whose retry is not due in a strict order. Returns whether it did."""
        wait_s = self._order.wait_s(job.active, job.delivery, envelope)
        if wait_s <= 0:
            return False
        await self._suspensions.begin(job.active)
        self._give_back(job)
        wait_s = self._retry_queues.within_life_s(envelope, job.delivery, wait_s)
        self._suspensions.end_in(job.active, wait_s)
        return True

    def _template(self, active: ActiveSubscription) -> RequestTemplate:
        template = active.request_template
        if template is None or template.subscription is not active.subscription:
            template = active.request_template = RequestTemplate(
                active.subscription, self._settings.signature_method
            )
        return template

    def _request_arguments(self, job: Job) -> tuple[Envelope, Message, float, float]:
        arrived_at = first_arrival_s(job.envelope, job.delivery, self._clock)
        return job.envelope, job.delivery.message, self._clock.wall_s(), arrived_at

    def _post(self, job: Job, sender: Sender, post: DeliveryRequest) -> None:
        sender.post(post.url, post.headers, post.body, partial(self._answered, job))

    def _answered(self, job: Job, answer: Answer | Exception) -> None:
        if job not in self._running:
            return  # it was requeued when the hub stopped
        took_ms = self._clock.now_ms() - job.started_ms
        job.active.is_slow = took_ms >= self._slow_after_ms
        try:
            is_over = self._outcomes.handles_at_once(job, answer)
        except Exception as error:
            self._tasks.own(self._fail(job, error))
        else:
            if is_over:
                self._leave(job)
            elif isinstance(answer, Answer | SendError):
                self._tasks.own(self._run(job, partial(self._handle_answer, answer)))
            else:
                self._tasks.own(self._fail(job, answer))

    async def _handle_answer(self, answer: Answer | SendError, job: Job) -> bool:
        await self._outcomes.handle(job, job.delivery.message, job.envelope, answer)
        return True
