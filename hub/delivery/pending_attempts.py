"""What became of each attempt, on its way into the log of attempts.

A target gets its next message while the outcome of the last one waits for the database, so what
waits is bounded here: in number, and in bytes of the messages that it keeps in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ...core.clock import Clock
from ..attempts.attempt import RESPONSE_CHARACTERS, Attempt, Outcome
from ..attempts.log import AttemptLog
from ..engine.port import Delivery
from ..sender.port import Answer, SendError
from .concurrency import Job
from .envelope import Envelope

MAX_WAITING = 10_000
"""Three seconds of deliveries at full speed, or a database that does not answer."""
MAX_WAITING_BYTES = 64 * 1024 * 1024


class PendingAttempts:
    """`ack` acks many messages; `on_full` is called when nothing new may begin, `on_room` when it
    may again."""

    def __init__(
        self,
        log: AttemptLog,
        clock: Clock,
        ack: Callable[[Sequence[Delivery]], None],
        on_full: Callable[[], None],
        on_room: Callable[[], None],
    ) -> None:
        self._log = log
        self._clock = clock
        self._ack = ack
        self._on_full = on_full
        self._on_room = on_room
        self._waiting = 0
        self._waiting_bytes = 0
        self._is_full = False

    def record(
        self,
        job: Job,
        envelope: Envelope,
        answer: Answer | SendError,
        outcome: Outcome,
        settle: Callable[[], None] | None = None,
    ) -> None:
        """Once the outcome is durable the message is acked, or `settle` is called instead. From
        here on the job is done with."""
        job.is_settled = True
        size = len(job.delivery.message.body)
        self._waiting += 1
        self._waiting_bytes += size
        attempt = self._attempt(job, envelope, answer, outcome)
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
        self, job: Job, envelope: Envelope, answer: Answer | SendError, outcome: Outcome
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
        )
