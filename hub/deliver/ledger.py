"""What became of each attempt, on its way into the log of attempts.

A target gets its next message while the outcome of the last one waits for the database, so what
waits is bounded here: in number, and in bytes of the messages that it keeps in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...core.clock import Clock
from ..attempts.attempt import RESPONSE_CHARACTERS, Attempt, Outcome
from ..attempts.log import AttemptLog
from ..sender.port import Answer, SendError
from .envelope import Envelope
from .lanes import Job

MAX_WAITING = 10_000
"""Three seconds of deliveries at full speed, or a database that does not answer."""
MAX_WAITING_BYTES = 64 * 1024 * 1024


class Ledger:
    """`on_full` is called when nothing new may begin, `on_room` when it may again."""

    def __init__(
        self,
        log: AttemptLog,
        clock: Clock,
        on_full: Callable[[], None],
        on_room: Callable[[], None],
    ) -> None:
        self._log = log
        self._clock = clock
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
        settle: Callable[[], None],
    ) -> None:
        """`settle` is called once the outcome is durable. From here on the job is done with."""
        job.is_settled = True
        size = len(job.delivery.message.body)
        self._waiting += 1
        self._waiting_bytes += size
        attempt = self._attempt(job, envelope, answer, outcome)
        self._log.record(attempt, partial(self._settle, size, settle))
        if not self._is_full and self._exceeds():
            self._is_full = True
            self._on_full()

    def _settle(self, size: int, settle: Callable[[], None]) -> None:
        self._waiting -= 1
        self._waiting_bytes -= size
        if self._is_full and not self._exceeds():
            self._is_full = False
            self._on_room()
        settle()

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
            job.live.subscription.id,
            envelope.message_id,
            envelope.failures + 1,
            self._clock.wall_s(),
            self._clock.now_ms() - job.started_ms,
            status,
            outcome,
            response,
            job.live.subscription.callback,
            body.decode(errors="replace"),
        )
