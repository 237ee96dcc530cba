from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from tests.hub.delivery.test_concurrency import Handed, active
from warrenmq.core.clock import ManualClock
from warrenmq.core.message.model import Message, Properties
from warrenmq.hub.attempts.attempt import Attempt, AttemptOutcome
from warrenmq.hub.attempts.log import AttemptLog, Settle
from warrenmq.hub.delivery.concurrency import ConcurrencyPool, DeliveryJob
from warrenmq.hub.delivery.envelope import Envelope
from warrenmq.hub.delivery.pending_attempts import PendingAttempts
from warrenmq.hub.sender.port import Answer, SendError

ENVELOPE = Envelope("msg_1", "news", "eu.fr", failures=2)
ANSWER = Answer(200, None, "HTTP/1.1 200 OK", body=b"ok")


class Log:
    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.waiting: list[tuple[Settle, object]] = []

    def record(self, attempt: Attempt, settle: Settle, what: object) -> None:
        self.attempts.append(attempt)
        self.waiting.append((settle, what))

    def written(self, *numbers: int) -> None:
        """The attempts with these numbers are durable."""
        [settle] = {self.waiting[number][0] for number in numbers}
        settle([self.waiting[number][1] for number in numbers])


class Rig:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.log = Log()
        self.events: list[str] = []
        self.pending_attempts = PendingAttempts(
            cast(AttemptLog, self.log),
            self.clock,
            lambda deliveries: self.events.append(f"{len(deliveries)} acked"),
            lambda: self.events.append("full"),
            lambda: self.events.append("room"),
        )

    def record(
        self,
        answer: Answer | SendError = ANSWER,
        body: bytes = b"x",
        settle: Callable[[], None] | None = None,
        outcome: AttemptOutcome = AttemptOutcome.DELIVERED,
    ) -> DeliveryJob:
        handed = Handed()
        handed.message = Message("", "", Properties(), body)
        job = DeliveryJob(active(), handed, ConcurrencyPool(1))
        job.started_ms = self.clock.now_ms()
        self.clock.advance(250)
        self.pending_attempts.record(job, ENVELOPE, answer, outcome, settle)
        return job


def test_the_recorded_attempt() -> None:
    rig = Rig()
    assert rig.record().is_settled
    at = rig.clock.wall_s()
    expected = Attempt(
        "1",
        "msg_1",
        3,
        at,
        250,
        200,
        AttemptOutcome.DELIVERED,
        "HTTP/1.1 200 OK",
        "http://a.b/",
        "ok",
    )
    assert rig.log.attempts == [expected]
    rig.record(SendError("no answer in time" + "!" * 1_000))
    response = ("no answer in time" + "!" * 1_000)[:512]
    failed = replace(expected, at=rig.clock.wall_s(), status=None, response=response, body="")
    assert rig.log.attempts[1] == failed


def test_the_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warrenmq.hub.delivery.pending_attempts.MAX_WAITING_BYTES", 100)
    rig = Rig()
    rig.record(body=bytes(99))
    assert rig.events == []
    rig.record()
    assert rig.events == ["full"]
    rig.log.written(0)
    assert rig.events == ["full", "room", "1 acked"]


def test_attempts_are_counted_by_outcome_and_timed() -> None:
    rig = Rig()
    rig.record()
    rig.record(SendError("no answer in time"), outcome=AttemptOutcome.RETRIED)
    metrics = rig.pending_attempts.metrics
    assert metrics.attempts == {
        (AttemptOutcome.DELIVERED, "2xx"): 1,
        (AttemptOutcome.RETRIED, "none"): 1,
    }
    assert metrics.attempt_s.sum == 0.5
    assert metrics.delivery_s.cumulative()[-1] == 1
