from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from tests.hub.deliver.test_lanes import Handed, live
from warrenmq.core.clock import ManualClock
from warrenmq.core.model import Message, Properties
from warrenmq.hub.attempts.attempt import Attempt, Outcome
from warrenmq.hub.attempts.log import AttemptLog
from warrenmq.hub.deliver.envelope import Envelope
from warrenmq.hub.deliver.lanes import Job, Lane
from warrenmq.hub.deliver.ledger import Ledger
from warrenmq.hub.sender.port import Answer, SendError

ENVELOPE = Envelope("msg_1", "news", "eu.fr", failures=2)
ANSWER = Answer(200, None, "HTTP/1.1 200 OK", body=b"ok")


class Log:
    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.settled: list[Callable[[], None]] = []

    def record(self, attempt: Attempt, settled: Callable[[], None]) -> None:
        self.attempts.append(attempt)
        self.settled.append(settled)


class Rig:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.log = Log()
        self.events: list[str] = []
        self.ledger = Ledger(
            cast(AttemptLog, self.log),
            self.clock,
            lambda: self.events.append("full"),
            lambda: self.events.append("room"),
        )

    def record(self, answer: Answer | SendError = ANSWER, body: bytes = b"x") -> Job:
        handed = Handed()
        handed.message = Message("", "", Properties(), body)
        job = Job(live(), handed, Lane(1))
        job.started_ms = self.clock.now_ms()
        self.clock.advance(250)
        self.ledger.record(
            job, ENVELOPE, answer, Outcome.DELIVERED, lambda: self.events.append("settled")
        )
        return job


def test_what_is_recorded() -> None:
    rig = Rig()
    assert rig.record().is_settled
    at = rig.clock.wall_s()
    expected = Attempt(
        "1", "msg_1", 3, at, 250, 200, Outcome.DELIVERED, "HTTP/1.1 200 OK", "http://a.b/", "ok"
    )
    assert rig.log.attempts == [expected]
    rig.record(SendError("no answer in time" + "!" * 1_000))
    response = ("no answer in time" + "!" * 1_000)[:512]
    failed = replace(expected, at=rig.clock.wall_s(), status=None, response=response, body="")
    assert rig.log.attempts[1] == failed


def test_nothing_is_settled_before_the_log_says_so() -> None:
    rig = Rig()
    rig.record()
    assert rig.events == []
    rig.log.settled[0]()
    assert rig.events == ["settled"]


def test_so_many_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warrenmq.hub.deliver.ledger.MAX_WAITING", 3)
    rig = Rig()
    for _ in range(4):
        rig.record()
    assert rig.events == ["full"]
    rig.log.settled[0]()
    assert rig.events == ["full", "settled"]
    rig.log.settled[1]()
    assert rig.events == ["full", "settled", "room", "settled"]
    rig.record()
    assert rig.events[-1] == "full"


def test_so_many_bytes_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warrenmq.hub.deliver.ledger.MAX_WAITING_BYTES", 100)
    rig = Rig()
    rig.record(body=bytes(99))
    assert rig.events == []
    rig.record()
    assert rig.events == ["full"]
    rig.log.settled[0]()
    assert rig.events == ["full", "room", "settled"]
