"""The attempts that are not durable yet, bounded in number and in bytes of their messages.

A target gets its next message while the outcome of the last one waits for the database.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ...core.clock import Clock
from ..attempts.attempt import RESPONSE_CHARACTERS, Attempt, AttemptOutcome
from ..attempts.kept_request import KeptRequest, bounded_request
from ..attempts.log import AttemptLog
from ..engine.own import ATTEMPTS
from ..engine.port import Delivery
from ..sender.port import Answer, SendError
from ..settings import KeptRequests
from .concurrency import DeliveryJob
from .envelope import Envelope
from .lifetime import first_arrival_s
from .metrics import DeliveryMetrics

MAX_WAITING = 10_000
"""Three seconds of deliveries at full speed, or a database that does not answer."""
MAX_WAITING_BYTES = 64 * 1024 * 1024


class PendingAttempts:
    """The attempts that are not durable yet.

    `ack` acknowledges many messages; `on_full` is called when no delivery may begin, `on_room` when
    they may again. `publishes` says whether attempts are published.
    """

    def __init__(
        self,
        log: AttemptLog,
        clock: Clock,
        ack: Callable[[Sequence[Delivery]], None],
        on_full: Callable[[], None],
        on_room: Callable[[], None],
        *,
        publishes: bool = False,
        requests: KeptRequests = "none",
        request_bytes: int = 0,
    ) -> None:
        self._log = log
        self._clock = clock
        self._ack = ack
        self._on_full = on_full
        self._on_room = on_room
        self._publishes = publishes
        self._requests = requests
        self._request_bytes = request_bytes
        self.metrics = DeliveryMetrics()
        self._waiting = 0
        self._waiting_bytes = 0
        self._is_full = False

    def record(
        self,
        job: DeliveryJob,
        envelope: Envelope,
        answer: Answer | SendError,
        outcome: AttemptOutcome,
        settle: Callable[[], None] | None = None,
    ) -> None:
        """Records the outcome. When it is durable, the message is acknowledged, or `settle` is
        called instead."""
        job.is_settled = True
        size = len(job.delivery.message.body)
        self._waiting += 1
        self._waiting_bytes += size
        attempt = self._attempt(job, envelope, answer, outcome)
        self.metrics.count(outcome, attempt.status, attempt.latency_ms / 1000)
        age_s = self._clock.steady_ms() / 1000 - first_arrival_s(
            envelope, job.delivery, self._clock
        )
        if outcome is AttemptOutcome.DELIVERED:
            self.metrics.delivery_s.observe(max(0.0, age_s))
        # Those of attempts themselves would never come to an end.
        if self._publishes and envelope.exchange != ATTEMPTS.name:
            attempt.age_s = age_s
            attempt.subscription = job.active.subscription
        if settle is None:
            self._log.record(attempt, self._ack_all, job.delivery)
        else:
            self._log.record(attempt, partial(self._settle, settle), job.delivery)
        if not self._is_full and self._exceeds():
            self._is_full = True
            self._on_full()

    def _ack_all(self, deliveries: Sequence[Delivery]) -> None:
        self._leave(deliveries)
        self._ack(deliveries)

    def _settle(self, settle: Callable[[], None], deliveries: Sequence[Delivery]) -> None:
        self._leave(deliveries)
        settle()

    def _leave(self, deliveries: Sequence[Delivery]) -> None:
        self._waiting -= len(deliveries)
        self._waiting_bytes -= sum([len(one.message.body) for one in deliveries])
        if self._is_full and not self._exceeds():
            self._is_full = False
            self._on_room()

    def _exceeds(self) -> bool:
        return self._waiting >= MAX_WAITING or self._waiting_bytes >= MAX_WAITING_BYTES

    def _attempt(
        self,
        job: DeliveryJob,
        envelope: Envelope,
        answer: Answer | SendError,
        outcome: AttemptOutcome,
    ) -> Attempt:
        if isinstance(answer, Answer):
            status, response, body = answer.status, answer.head, answer.body
        else:
            status, response, body = None, str(answer)[:RESPONSE_CHARACTERS], b""
        return Attempt(
            job.active.subscription.id,
            envelope.message_id,
            envelope.failures + 1,
            self._clock.wall_s(),
            self._clock.now_ms() - job.started_ms,
            status,
            outcome,
            response,
            job.active.subscription.callback,
            body.decode(errors="replace"),
            request=self._request_to_store(job, outcome),
            next_at=job.next_at,
        )

    def _request_to_store(self, job: DeliveryJob, outcome: AttemptOutcome) -> KeptRequest | None:
        request, kept = job.request, self._requests
        if request is None or kept == "none":
            return None
        if outcome is AttemptOutcome.DELIVERED and kept != "all":
            return None
        return bounded_request(request.url, request.headers, request.body, self._request_bytes)
