"""Delivers messages from the queues of subscriptions to their callbacks.

A consumer calls `offer`; the message waits for the rate limits and for a slot, is posted, and
`outcomes.py` settles it by the answer. Most messages are posted and settled in callbacks of broker
and sender; those that wait for something else have a task. A message is acknowledged when its
outcome is durable, and after a failure when the broker has also confirmed the copy in a retry
queue, so a crash repeats it, under the same `webhook-id`, and never loses it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...core.clock import Clock
from ...core.message.model import Message
from ..attempts.log import AttemptLog
from ..engine.port import Delivery
from ..lazy import Lazy
from ..sender.port import Answer, Answered, Sender, SendError
from ..settings import HubSettings
from ..subscriptions.active import ActiveSubscription
from ..subscriptions.content_budget import ContentBudget
from ..tasks import Tasks
from .concurrency import ConcurrencyPools, DeliveryJob
from .envelope import Envelope
from .events import DeliveryEvents
from .lifetime import first_arrival_s
from .order import StrictOrder
from .outcomes import OnAttemptsExhausted, OnCallbackGone, OutcomeHandler, queue_of
from .overload import Overload
from .pending_attempts import PendingAttempts
from .rate_limits import RateLimits
from .request import DeliveryRequest, RequestTemplate
from .retry_queues import RetryQueues
from .suspensions import Suspensions

if TYPE_CHECKING:
    from ..spans import Spans

BACK_OFF_S = 1.0
"""The pause before a message is requeued that the broker did not take into a retry queue."""
LARGE_BYTES = 512 * 1024
"""Bodies of at least this size are signed in a thread: it takes some milliseconds."""


class Dispatcher:
    """Posts the messages of all subscriptions.

    `on_callback_gone` ends a subscription whose callback answered 410. `on_attempts_exhausted` is
    called, with the reason, for one whose message has failed for good without a success of
    another message meanwhile.
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
        self.spans: Spans | None = None
        """Records attempts, if spans are wanted."""
        self._running: dict[DeliveryJob, None] = {}
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
            attempts, clock, ack, self._pools.pause, self._pools.resume,
            publishes=settings.publish_attempts, requests=settings.attempt_requests,
            request_bytes=settings.attempt_request_bytes,
        )  # fmt: skip
        self.metrics = pending_attempts.metrics
        self._outcomes = OutcomeHandler(
            retry_queues, order, suspensions, pending_attempts, settings, clock, content_budget,
            on_callback_gone, on_attempts_exhausted, self._events,
        )  # fmt: skip

    def offer(self, active: ActiveSubscription, delivery: Delivery) -> None:
        """Takes a message from the queue of a subscription."""
        if self._has_room_for(active, delivery):
            self._waiting += 1
            self._rate_limits.enter(active, delivery)
        else:
            self._overload.requeue(active, delivery)

    @property
    def waiting_count(self) -> int:
        """The number of messages that wait for the rate limits or for a slot."""
        return self._waiting

    @property
    def in_flight_count(self) -> int:
        """The number of messages that are being delivered."""
        return len(self._running)

    async def drain(self, within_s: float) -> None:
        """Requeues messages whose delivery has not started, waits up to `within_s` for the others,
        then requeues those too."""
        for delivery in self._take_waiting():
            delivery.nack(requeue=True)
        await self._all_ended(within_s)
        await self._tasks.stop()
        for job in list(self._running):
            self._requeue(job)
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
        is_full = self._overload.is_over_limit(self._waiting)
        return not is_full or active.is_probed or not self._outcomes.is_parallel(active)

    def _enter(self, active: ActiveSubscription, delivery: Delivery) -> None:
        if active.state.takes():
            self._pools.enter(active, delivery)
        else:
            self._waiting -= 1
            self._order.done(active, delivery)
            delivery.nack(requeue=True)

    def _start(self, job: DeliveryJob) -> None:
        self._waiting -= 1
        self._running[job] = None
        if self._sweep is None:
            self._arm_sweep()
        try:
            self._begin(job)
        except Exception as error:
            self._tasks.own(self._fail(job, error))

    def _begin(self, job: DeliveryJob) -> None:
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
            or not active.state.takes()
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

    async def _run(self, job: DeliveryJob, work: Callable[[DeliveryJob], Awaitable[bool]]) -> None:
        """Runs `work`, which returns False if the job continues with the answer to its request."""
        is_over = True
        try:
            is_over = await work(job)
        except asyncio.CancelledError:
            self._requeue(job)
        except Exception as error:
            await self._back_off(job, error)
        finally:
            if is_over:
                self._leave(job)

    async def _fail(self, job: DeliveryJob, error: Exception) -> None:
        try:
            await self._back_off(job, error)
        finally:
            self._leave(job)

    def _leave(self, job: DeliveryJob) -> None:
        del self._running[job]
        self._ended.set()
        self._order.done(job.active, job.delivery)
        self._pools.leave(job)

    async def _back_off(self, job: DeliveryJob, error: Exception) -> None:
        self._events.backed_off(job.active, error)
        try:
            await asyncio.sleep(BACK_OFF_S)
        finally:
            self._requeue(job)
            self._suspensions.end_open(job.active)

    def _requeue(self, job: DeliveryJob) -> None:
        if not job.is_settled:
            job.is_settled = True
            job.delivery.nack(requeue=True)

    async def _prepare(self, job: DeliveryJob) -> bool:
        """Posts a message that `_begin` could not post. Returns whether the job is over instead."""
        active, delivery, internal_headers = (
            job.active,
            job.delivery,
            self._retry_queues.internal_headers,
        )
        if not active.state.takes():
            self._requeue(job)
            return True
        if len(delivery.message.body) >= LARGE_BYTES:
            job.envelope = await internal_headers.read_in_thread(
                delivery.message, delivery.sequence
            )
        envelope = job.envelope
        if envelope.not_before and await self._retry_queues.settle_returned(
            *queue_of(active), delivery, envelope
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

    async def _must_wait(self, job: DeliveryJob, envelope: Envelope) -> bool:
        """Requeues a message in strict order whose retry is not due. Returns whether it did."""
        wait_s = self._order.wait_s(job.active, job.delivery, envelope)
        if wait_s <= 0:
            return False
        await self._suspensions.begin(job.active)
        self._requeue(job)
        wait_s = self._retry_queues.limited_to_expiry_s(envelope, job.delivery, wait_s)
        self._suspensions.end_in(job.active, wait_s)
        return True

    def _template(self, active: ActiveSubscription) -> RequestTemplate:
        template = active.request_template
        if template is None or template.subscription is not active.subscription:
            template = active.request_template = RequestTemplate(
                active.subscription, self._settings.signature_method
            )
        return template

    def _request_arguments(self, job: DeliveryJob) -> tuple[Envelope, Message, float, float]:
        arrived_at = first_arrival_s(job.envelope, job.delivery, self._clock)
        return job.envelope, job.delivery.message, self._clock.wall_s(), arrived_at

    def _post(self, job: DeliveryJob, sender: Sender, post: DeliveryRequest) -> None:
        job.request = post
        answered: Answered = partial(self._answered, job)
        if self.spans is not None:
            source, envelope = job.active.subscription.source.name, job.envelope
            answered = self.spans.delivering(
                source, envelope.message_id, envelope.failures, post.url, post.headers, answered
            )
        sender.post(post.url, post.headers, post.body, answered)

    def _answered(self, job: DeliveryJob, answer: Answer | Exception) -> None:
        if job not in self._running:
            return  # requeued when the hub stopped
        took_ms = self._clock.now_ms() - job.started_ms
        job.active.answered(is_slow=took_ms >= self._slow_after_ms)
        try:
            is_over = self._outcomes.settle_success(job, answer)
        except Exception as error:
            self._tasks.own(self._fail(job, error))
        else:
            if is_over:
                self._leave(job)
            elif isinstance(answer, Answer | SendError):
                self._tasks.own(self._run(job, partial(self._handle_answer, answer)))
            else:
                self._tasks.own(self._fail(job, answer))

    async def _handle_answer(self, answer: Answer | SendError, job: DeliveryJob) -> bool:
        await self._outcomes.handle(job, job.delivery.message, job.envelope, answer)
        return True
