"""Settles messages by the answers of their callbacks.

2xx: the message is delivered. 410: the subscription ends. 508: the message runs in a loop, and is
dead-lettered at once. Anything else is a failure: the message waits in a retry queue or, in strict
order, at the head of its own queue; after its last attempt it is dead-lettered.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

from ...core.clock import Clock
from ...core.counted import counted
from ...core.message.model import Message
from ..attempts.attempt import AttemptOutcome
from ..sender.port import Answer, SendError, TimedOut
from ..settings import HubSettings
from ..subscriptions.active import ActiveSubscription
from ..subscriptions.content_budget import ContentBudget
from ..subscriptions.delivery_state import Phase
from ..tasks import Tasks
from .breaker import BreakerState
from .concurrency import DeliveryJob
from .envelope import Envelope
from .events import DeliveryEvents
from .failure_state import Blocking, FailureState
from .order import StrictOrder
from .pending_attempts import PendingAttempts
from .retry import delay_s, retry_after_s
from .retry_queues import RetryQueues
from .suspensions import Suspensions

GONE = 410
LOOP = 508
_SAME_TIME_S = 0.002  # headers have milliseconds

OnCallbackGone = Callable[[ActiveSubscription], Awaitable[None]]
OnAttemptsExhausted = Callable[[ActiveSubscription, str], Awaitable[None]]


class OutcomeHandler:
    """Settles messages by the answers of their callbacks.

    `on_callback_gone` ends a subscription; `on_attempts_exhausted` is called, with the reason, for
    one whose callback accepts no message.
    """

    def __init__(
        self,
        retry_queues: RetryQueues,
        order: StrictOrder,
        suspensions: Suspensions,
        pending_attempts: PendingAttempts,
        settings: HubSettings,
        clock: Clock,
        content_budget: ContentBudget,
        on_callback_gone: OnCallbackGone,
        on_attempts_exhausted: OnAttemptsExhausted,
        events: DeliveryEvents,
    ) -> None:
        self._retry_queues = retry_queues
        self._order = order
        self._suspensions = suspensions
        self._pending_attempts = pending_attempts
        self._settings = settings
        self._clock = clock
        self._content_budget = content_budget
        self._on_callback_gone = on_callback_gone
        self._on_attempts_exhausted = on_attempts_exhausted
        self._tasks = Tasks()
        self._events = events

    def settle_success(self, job: DeliveryJob, answer: Answer | Exception) -> bool:
        """Settles the job of a success. Returns False if `handle` has to be called instead."""
        if not isinstance(answer, Answer) or not 200 <= answer.status < 300:
            return False
        if job.active.blocking is not None:
            return False
        self._succeed(job, job.envelope, answer)
        return True

    async def handle(
        self, job: DeliveryJob, message: Message, envelope: Envelope, answer: Answer | SendError
    ) -> None:
        """Settles the job of any answer, when its outcome is durable."""
        status = answer.status if isinstance(answer, Answer) else 0
        if 200 <= status < 300:
            if job.active.blocking is not None:
                await self._order.clear(job.active)
            self._succeed(job, envelope, answer)
        elif status == GONE:
            await self._end(job, envelope, answer)
        else:
            await self._fail(job, message, envelope, answer, is_loop=status == LOOP)

    def is_parallel(self, active: ActiveSubscription) -> bool:
        """Whether several messages may be in flight while there are no failures."""
        options = active.subscription.options
        in_flight = options.in_flight or self._settings.in_flight_per_subscription
        return in_flight > 1 and not options.strict_order

    async def stop(self) -> None:
        await self._tasks.stop()

    def _succeed(self, job: DeliveryJob, envelope: Envelope, answer: Answer | SendError) -> None:
        active, delivery = job.active, job.delivery
        was_probed = active.is_probed
        if active.breaker_state is not BreakerState.CLOSED:
            self._events.breaker_closed(active)
        active.succeeded(self._clock.wall_s())
        if was_probed and (active.state.phase is Phase.SUSPENDED or self.is_parallel(active)):
            self._suspensions.end_now(active)
        delivery.release()  # only the acknowledgement waits for the log of attempts
        self._pending_attempts.record(job, envelope, answer, AttemptOutcome.DELIVERED)

    async def _end(self, job: DeliveryJob, envelope: Envelope, answer: Answer | SendError) -> None:
        await self._on_callback_gone(job.active)
        job.delivery.nack(requeue=True)  # for other consumers of the queue
        self._pending_attempts.record(job, envelope, answer, AttemptOutcome.GONE, _nothing)

    async def _fail(
        self,
        job: DeliveryJob,
        message: Message,
        envelope: Envelope,
        answer: Answer | SendError,
        *,
        is_loop: bool,
    ) -> None:
        active, at = job.active, self._clock.wall_s()
        failed = envelope.failed(at)
        failure_state = active.failed(_describe(answer), at)
        if self._is_dead(active, failure_state, at):
            failures = counted(failure_state.error_count, "failure")
            reason = f"{failures}, the last: {failure_state.last_error}"
            self._tasks.own(self._report_exhausted(active, reason))
        if is_loop:
            await self._dead_letter(job, message, failed, "status 508: a loop")
            outcome = AttemptOutcome.DEAD
        elif failed.failures >= self._settings.max_attempts:
            await self._exhaust_attempts(job, message, failed, failure_state)
            outcome = AttemptOutcome.DEAD
        elif active.subscription.options.strict_order:
            await self._block(job, envelope, failed, answer)
            return
        elif not self._may_copy(active, message):
            await self._suspend_for_retry(job, envelope, failed, answer, failure_state)
            return
        else:
            wait_s = self._wait_s(failed.failures, answer)
            await self._retry_queues.enqueue(
                *queue_of(active), message, failed, wait_s, job.delivery
            )
            self._events.retried(active, failed, failure_state.last_error, wait_s)
            job.next_at = at + wait_s
            outcome = AttemptOutcome.RETRIED
        if not is_loop and not active.subscription.options.strict_order:
            await self._update_breaker(active, failure_state, answer)
        job.delivery.release()
        self._pending_attempts.record(job, envelope, answer, outcome)

    async def _block(
        self, job: DeliveryJob, envelope: Envelope, failed: Envelope, answer: Answer | SendError
    ) -> None:
        """Requeues the message at the head of its queue, which is consumed again when the retry is
        due, or the message expires: no other message overtakes it."""
        active, delivery = job.active, job.delivery
        wait_s = self._wait_s(failed.failures, answer)
        due_at, due_ms = self._clock.wall_s() + wait_s, self._clock.now_ms() + round(wait_s * 1000)
        await self._suspensions.begin(active)
        job.next_at = due_at
        reason = _describe(answer)
        blocking = Blocking(failed.message_id, failed.failures, due_at, reason, due_ms)
        await self._order.block(active, blocking)
        self._events.retried(active, failed, reason, wait_s)

        def requeue() -> None:
            delivery.nack(requeue=True)
            self._order.requeued(active)
            wait_s = (due_ms - self._clock.now_ms()) / 1000
            self._suspensions.end_in(
                active, self._retry_queues.limited_to_expiry_s(envelope, delivery, wait_s)
            )

        self._pending_attempts.record(job, envelope, answer, AttemptOutcome.RETRIED, requeue)

    async def _exhaust_attempts(
        self, job: DeliveryJob, message: Message, failed: Envelope, failure_state: FailureState
    ) -> None:
        active = job.active
        attempts = counted(failed.failures, "attempt")
        reason = f"{attempts}, the last: {failure_state.last_error}"
        await self._dead_letter(job, message, failed, reason)
        if active.subscription.is_websub or active.subscription.options.strict_order:
            # WebSub drops the update and tries the next (rule 22). In strict order no other message
            # can have succeeded meanwhile: the next one is tried.
            return
        # After a success of another message the callback works.
        if (
            failure_state.error_count
            and failure_state.first_error_at <= failed.failed_at + _SAME_TIME_S
        ):
            self._tasks.own(self._report_exhausted(active, reason))

    def _may_copy(self, active: ActiveSubscription, message: Message) -> bool:
        """Whether a copy may be put into a retry queue: anonymous clients have an hourly budget."""
        anonymous_client = active.subscription.options.anonymous_client
        return anonymous_client is None or self._content_budget.take(
            anonymous_client, len(message.body)
        )

    async def _suspend_for_retry(
        self,
        job: DeliveryJob,
        envelope: Envelope,
        failed: Envelope,
        answer: Answer | SendError,
        failure_state: FailureState,
    ) -> None:
        """Requeues the message, and suspends its subscription until the retry is due."""
        active, delivery = job.active, job.delivery
        wait_s = self._wait_s(failure_state.error_count, answer)
        await self._suspensions.begin(active)
        job.next_at = self._clock.wall_s() + wait_s
        self._events.retried(active, failed, failure_state.last_error, wait_s)

        def requeue() -> None:
            delivery.nack(requeue=True)
            self._suspensions.end_in(
                active, self._retry_queues.limited_to_expiry_s(envelope, delivery, wait_s)
            )

        self._pending_attempts.record(job, envelope, answer, AttemptOutcome.RETRIED, requeue)

    def _is_dead(self, active: ActiveSubscription, failure_state: FailureState, at: float) -> bool:
        """Whether the callback of an anonymous client has failed for too long."""
        settings, failing_s = self._settings, at - failure_state.first_error_at
        often = failure_state.error_count >= settings.max_attempts
        is_anonymous = active.subscription.is_anonymous and active.state.takes()
        return is_anonymous and often and failing_s >= settings.anonymous_dead_after_s

    async def _report_exhausted(self, active: ActiveSubscription, reason: str) -> None:
        await self._on_attempts_exhausted(active, reason)

    async def _dead_letter(
        self, job: DeliveryJob, message: Message, failed: Envelope, reason: str
    ) -> None:
        active = job.active
        vhost, _ = queue_of(active)
        if not active.subscription.is_anonymous:  # nobody could list it
            await self._retry_queues.add_dead_letter(
                vhost, message, failed, active.subscription.id, reason
            )
        self._events.died(active, failed, reason)
        await self._order.clear(active)

    async def _update_breaker(
        self, active: ActiveSubscription, failure_state: FailureState, answer: Answer | SendError
    ) -> None:
        cool_down_s = failure_state.breaker.failed(self._clock.now_ms() / 1000)
        if cool_down_s:
            self._pending_attempts.metrics.breakers_opened += 1
            failure_state.rests_until = failure_state.last_error_at + cool_down_s
            self._events.breaker_opened(active, cool_down_s, failure_state.last_error)
            await self._suspensions.begin(active)
            self._suspensions.end_in(active, cool_down_s)
        elif isinstance(answer, TimedOut) and self.is_parallel(active) and not active.is_probed:
            active.limit_to_one()
            self._suspensions.end_now(active)

    def _wait_s(self, failures: int, answer: Answer | SendError) -> float:
        requested = answer.retry_after if isinstance(answer, Answer) else None
        after_s = retry_after_s(requested, self._clock.wall_s())
        return delay_s(failures, random.random(), after_s)


def queue_of(active: ActiveSubscription) -> tuple[str, str]:
    """Returns virtual host and name of the queue that is consumed for a subscription."""
    return active.subscription.source.vhost, active.subscription.queue


def _describe(answer: Answer | SendError) -> str:
    return f"status {answer.status}" if isinstance(answer, Answer) else str(answer)


def _nothing() -> None:
    """Does nothing: the message was requeued when its subscription ended."""
