"""What becomes of a message by the answer of its callback.

2xx: it is done. 410: the subscription ends. 508: it goes round in a circle, and is buried at
once. Anything else is a failure: the message waits in a delay queue or, where the order is
strict, at the head of its own queue; when its attempts are spent, it is buried.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

from ...core.clock import Clock
from ...core.model import Message
from ..attempts.attempt import Outcome
from ..sender.port import Answer, SendError, TimedOut
from ..settings import HubSettings
from ..subscriptions.allowance import Allowance
from ..subscriptions.live import Live
from ..tasks import Tasks
from .breaker import State
from .envelope import Envelope
from .events import DeliveryEvents
from .holds import Holds
from .lanes import Job
from .ledger import Ledger
from .order import StrictOrder
from .parking import Parking
from .retry import delay_s, retry_after_s
from .trouble import Blocking, Trouble

GONE = 410
LOOP = 508
_SAME_TIME_S = 0.002  # headers keep milliseconds

OnGone = Callable[[Live], Awaitable[None]]
OnSpent = Callable[[Live, str], Awaitable[None]]


class Verdicts:
    """`on_gone` ends a subscription; `on_spent` is told of one that takes nothing any more."""

    def __init__(
        self,
        parking: Parking,
        order: StrictOrder,
        holds: Holds,
        ledger: Ledger,
        settings: HubSettings,
        clock: Clock,
        allowance: Allowance,
        on_gone: OnGone,
        on_spent: OnSpent,
        events: DeliveryEvents,
    ) -> None:
        self._parking = parking
        self._order = order
        self._holds = holds
        self._ledger = ledger
        self._settings = settings
        self._clock = clock
        self._allowance = allowance
        self._on_gone = on_gone
        self._on_spent = on_spent
        self._tasks = Tasks()
        self._events = events

    def gives_at_once(self, job: Job, answer: Answer | Exception) -> bool:
        """Settles the job of a success that nothing has to wait for, as most; `give` all others."""
        if not isinstance(answer, Answer) or not 200 <= answer.status < 300:
            return False
        if job.live.blocking is not None:
            return False
        self._succeed(job, job.envelope, answer)
        return True

    async def give(
        self, job: Job, message: Message, envelope: Envelope, answer: Answer | SendError
    ) -> None:
        """Settles the job when its outcome is durable."""
        status = answer.status if isinstance(answer, Answer) else 0
        if 200 <= status < 300:
            if job.live.blocking is not None:
                await self._order.clear(job.live)
            self._succeed(job, envelope, answer)
        elif status == GONE:
            await self._end(job, envelope, answer)
        else:
            await self._fail(job, message, envelope, answer, is_loop=status == LOOP)

    def is_parallel(self, live: Live) -> bool:
        """Whether more than one may be under way when all is well."""
        options = live.subscription.options
        in_flight = options.in_flight or self._settings.in_flight_per_subscription
        return in_flight > 1 and not options.strict_order

    async def stop(self) -> None:
        await self._tasks.stop()

    def _succeed(self, job: Job, envelope: Envelope, answer: Answer | SendError) -> None:
        live, delivery = job.live, job.delivery
        was_probed = live.is_probed
        if live.breaker_state is not State.CLOSED:
            self._events.breaker_closed(live)
        live.succeeded(self._clock.wall_s())
        if was_probed and (live.is_suspended or self.is_parallel(live)):
            self._holds.end_now(live)
        delivery.release()  # the target has answered; only the ack waits for the log
        self._ledger.record(job, envelope, answer, Outcome.DELIVERED)

    async def _end(self, job: Job, envelope: Envelope, answer: Answer | SendError) -> None:
        await self._on_gone(job.live)
        job.delivery.nack(requeue=True)  # a queue's other subscribers may take it
        self._ledger.record(job, envelope, answer, Outcome.GONE, _nothing)

    async def _fail(
        self,
        job: Job,
        message: Message,
        envelope: Envelope,
        answer: Answer | SendError,
        *,
        is_loop: bool,
    ) -> None:
        live, at = job.live, self._clock.wall_s()
        failed = envelope.failed(at)
        trouble = live.failed(_describe(answer), at)
        if self._is_dead(live, trouble, at):
            reason = f"{trouble.error_count} failures, the last: {trouble.last_error}"
            self._tasks.own(self._tell_spent(live, reason))
        if is_loop:
            await self._bury(job, message, failed, "status 508: it goes round in a circle")
            outcome = Outcome.DEAD
        elif failed.failures >= self._settings.max_attempts:
            await self._spend(job, message, failed, trouble)
            outcome = Outcome.DEAD
        elif live.subscription.options.strict_order:
            await self._block(job, envelope, failed, answer)
            return
        elif not self._may_copy(live, message):
            await self._hold(job, envelope, failed, answer, trouble)
            return
        else:
            wait_s = self._wait_s(failed.failures, answer)
            await self._parking.park(*home(live), message, failed, wait_s, job.delivery)
            self._events.retried(live, failed, trouble.last_error, wait_s)
            outcome = Outcome.RETRIED
        if not is_loop and not live.subscription.options.strict_order:
            await self._tell_breaker(live, trouble, answer)
        job.delivery.release()
        self._ledger.record(job, envelope, answer, outcome)

    async def _block(
        self, job: Job, envelope: Envelope, failed: Envelope, answer: Answer | SendError
    ) -> None:
        """The message goes back to the head of its queue, when nobody takes from it here, and
        only then can the time come to consume again: nothing can overtake it. What is behind it
        does not wait for longer than it lives."""
        live, delivery = job.live, job.delivery
        wait_s = self._wait_s(failed.failures, answer)
        due_at, due_ms = self._clock.wall_s() + wait_s, self._clock.now_ms() + round(wait_s * 1000)
        await self._holds.begin(live)
        reason = _describe(answer)
        blocking = Blocking(failed.message_id, failed.failures, due_at, reason, due_ms)
        await self._order.block(live, blocking)
        self._events.retried(live, failed, reason, wait_s)

        def give_back() -> None:
            delivery.nack(requeue=True)
            self._order.came_back(live)
            wait_s = (due_ms - self._clock.now_ms()) / 1000
            self._holds.end_in(live, self._parking.within_life_s(envelope, delivery, wait_s))

        self._ledger.record(job, envelope, answer, Outcome.RETRIED, give_back)

    async def _spend(self, job: Job, message: Message, failed: Envelope, trouble: Trouble) -> None:
        live = job.live
        reason = f"{failed.failures} attempts, the last: {trouble.last_error}"
        await self._bury(job, message, failed, reason)
        if live.subscription.is_websub or live.subscription.options.strict_order:
            # WebSub drops the update and tries the next (rule 22). A strict order could never
            # have had a success meanwhile: it goes on behind the message that held it up.
            return
        # Another delivery may have succeeded while this one was buried: then there is no error.
        if trouble.error_count and trouble.first_error_at <= failed.failed_at + _SAME_TIME_S:
            self._tasks.own(self._tell_spent(live, reason))

    def _may_copy(self, live: Live, message: Message) -> bool:
        """Whether a message may be parked: beside its own queue, a stranger has so much an hour."""
        stranger = live.subscription.options.stranger
        return stranger is None or self._allowance.take(stranger, len(message.body))

    async def _hold(
        self,
        job: Job,
        envelope: Envelope,
        failed: Envelope,
        answer: Answer | SendError,
        trouble: Trouble,
    ) -> None:
        """The message goes back to its queue, from which nothing is taken for a while."""
        live, delivery = job.live, job.delivery
        wait_s = self._wait_s(trouble.error_count, answer)
        await self._holds.begin(live)
        self._events.retried(live, failed, trouble.last_error, wait_s)

        def give_back() -> None:
            delivery.nack(requeue=True)
            self._holds.end_in(live, self._parking.within_life_s(envelope, delivery, wait_s))

        self._ledger.record(job, envelope, answer, Outcome.RETRIED, give_back)

    def _is_dead(self, live: Live, trouble: Trouble, at: float) -> bool:
        """A stranger's callback that fails on and on: nobody else would notice."""
        settings, failing_s = self._settings, at - trouble.first_error_at
        often = trouble.error_count >= settings.max_attempts
        is_strangers = live.subscription.is_strangers and live.takes()
        return is_strangers and often and failing_s >= settings.strangers_dead_after_s

    async def _tell_spent(self, live: Live, reason: str) -> None:
        await self._on_spent(live, reason)

    async def _bury(self, job: Job, message: Message, failed: Envelope, reason: str) -> None:
        live = job.live
        vhost, _ = home(live)
        if not live.subscription.is_strangers:  # nobody would look for it
            await self._parking.bury(vhost, message, failed, live.subscription.id, reason)
        self._events.died(live, failed, reason)
        await self._order.clear(live)

    async def _tell_breaker(self, live: Live, trouble: Trouble, answer: Answer | SendError) -> None:
        cool_down_s = trouble.breaker.failed(self._clock.now_ms() / 1000)
        if cool_down_s:
            self._events.breaker_opened(live, cool_down_s, trouble.last_error)
            await self._holds.begin(live)
            self._holds.end_in(live, cool_down_s)
        elif isinstance(answer, TimedOut) and self.is_parallel(live) and not live.is_probed:
            live.is_single = True
            self._holds.end_now(live)

    def _wait_s(self, failures: int, answer: Answer | SendError) -> float:
        asked = answer.retry_after if isinstance(answer, Answer) else None
        after_s = retry_after_s(asked, self._clock.wall_s())
        return delay_s(failures, random.random(), after_s)


def home(live: Live) -> tuple[str, str]:
    """Virtual host and name of the queue that its messages come from."""
    return live.subscription.source.vhost, live.subscription.queue


def _describe(answer: Answer | SendError) -> str:
    return f"status {answer.status}" if isinstance(answer, Answer) else str(answer)


def _nothing() -> None:
    """The message of a subscription that is gone was given back at once."""
