"""Callbacks are told the end of their subscription (websub.md rule 13)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.http import Answer, Callback
from tests.support.settings import hub_settings
from warrenmq.hub.guard.guard import Guard
from warrenmq.hub.subscriptions.denial import Denials, notice
from warrenmq.hub.subscriptions.options import Keys
from warrenmq.hub.subscriptions.subscription import Subscription
from warrenmq.hub.tasks import Tasks
from warrenmq.hub.verification.verify import Verifier

from ..support import subscription, until


def ended(callback: str, **given: Any) -> Subscription:
    made = {"topic": "eu.#", "callback": callback, "reason": "over & done", **given}
    return subscription(**made)


class Told:
    """Who was told, in order."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    async def __call__(self, ended: Subscription) -> None:
        self.ids.append(ended.id)


@asynccontextmanager
async def denying(
    waits_s: tuple[float, ...] = (0.0, 0.0), **changed: Any
) -> AsyncIterator[Denials]:
    settings = hub_settings(**{"allow_loopback": True, **changed})
    verifier, tasks = Verifier(settings, Guard(settings)), Tasks()

    async def give() -> Verifier:
        return verifier

    denials = Denials(give, tasks, waits_s)
    try:
        yield denials
    finally:
        denials.stop()
        await tasks.stop()
        await verifier.close()


def test_the_url_of_a_denial() -> None:
    assert notice(ended("http://s/cb?a=1")) == (
        "http://s/cb?a=1&hub.mode=denied&hub.topic=eu.%23&hub.reason=over%20%26%20done"
    )
    websub = ended("http://s/cb", topic_url="https://a.b/feed")
    assert "hub.topic=https%3A%2F%2Fa.b%2Ffeed&" in notice(websub)


async def test_a_denial(callback: Callback) -> None:
    told = Told()
    async with denying() as denials:
        denials.announce(ended(callback.url, keys=Keys(basic_auth="dTpw")), told)
        await until(lambda: told.ids == ["1"], "the denial")
        assert denials.count == 0
    [request] = callback.denials
    assert request.method == "GET" and request.headers["Authorization"] == "Basic dTpw"
    assert dict(request.query) == {
        "hub.mode": "denied", "hub.topic": "eu.#", "hub.reason": "over & done",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("statuses", "tries"),
    [
        *[([status], 1) for status in (200, 204, 302, 400, 404, 410)],
        *[([status], 2) for status in (500, 503, 429)],
        ([500] * 9, 3),
    ],
)
async def test_a_denial_is_sent_three_times_at_most(
    callback: Callback, statuses: list[int], tries: int
) -> None:
    callback.denial_answers.extend(map(Answer, statuses))
    told = Told()
    async with denying() as denials:
        denials.announce(ended(callback.url), told)
        await until(lambda: told.ids == ["1"], "the end of the tries")
    assert len(callback.denials) == tries


async def test_a_refused_callback_is_not_requested(callback: Callback) -> None:
    told = Told()
    async with denying(allow_loopback=False) as denials:
        denials.announce(ended(callback.url), told)
        await until(lambda: told.ids == ["1"], "the refusal")
    assert callback.requests == []


async def test_a_dropped_denial_is_not_sent(callback: Callback) -> None:
    callback.denial_answers.append(Answer(500))
    told = Told()
    async with denying(waits_s=(0.05, 0.05)) as denials:
        first, second = ended(callback.url), ended(callback.url, id="2", topic="other")
        denials.announce(first, told)
        await until(lambda: len(callback.denials) == 1, "the first try")
        denials.drop(first.identity)
        assert not denials.is_pending(first.identity)
        denials.announce(second, told)
        await until(lambda: told.ids == ["2"], "the other denial")
        # The second try of one that came later is due later than that of the first would be.
        callback.denial_answers.append(Answer(500))
        denials.announce(ended(callback.url, id="3", topic="third"), told)
        await until(lambda: told.ids == ["2", "3"], "the second try of the third")
    topics = [one.query["hub.topic"] for one in callback.denials]
    assert topics[1:] == ["other", "third", "third"] and len(set(topics)) == 3


async def test_a_waiting_denial_can_be_dropped(callback: Callback) -> None:
    callback.denial_answers.append(Answer(hang=True))
    told = Told()
    async with denying(waits_s=(), verify_timeout_s=0.2) as denials:
        slow, dropped, last = (ended(callback.url, id=one, topic=one) for one in "abc")
        for one in (slow, dropped, last):
            denials.announce(one, told)
        denials.drop(dropped.identity)
        await until(lambda: "c" in told.ids, "the last denial")
    assert told.ids == ["a", "c"]
    assert [one.query["hub.topic"] for one in callback.denials] == ["a", "c"]


async def test_a_denial_can_be_repeated_later(callback: Callback) -> None:
    callback.denial_answers.append(Answer(500))
    told, not_told = Told(), Told()
    async with denying(waits_s=(0.0, 60.0)) as denials:
        one = ended(callback.url)
        denials.announce(one, told)
        denials.announce(one, not_told)
        await until(lambda: told.ids == ["1"], "the denial")
        denials.announce(one, told)
        await until(lambda: told.ids == ["1", "1"], "the other denial")
    assert len(callback.denials) == 3 and not_told.ids == []


async def test_a_dead_target_delays_no_other(callback: Callback) -> None:
    told = Told()
    async with denying(waits_s=()) as denials:
        with Callback() as dead:
            dead.denial_answers.extend([Answer(hang=True)] * 100)
            for number in range(100):
                denials.announce(ended(dead.url, id=f"dead{number}", topic=str(number)), told)
            denials.announce(ended(callback.url, id="other"), told)
            await until(lambda: "other" in told.ids, "the other one's denial")
            assert len(dead.denials) <= 1  # one at a time
            denials.stop()


async def test_an_unexpected_error_stops_no_denial(
    callback: Callback, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = Verifier.notify

    async def tell(self: Verifier, called: str, url: str, auth: str | None) -> int:
        if called.endswith("/bad"):
            raise RuntimeError("unheard of")
        return await asked(self, called, url, auth)

    monkeypatch.setattr(Verifier, "notify", tell)
    told = Told()
    async with denying() as denials:
        denials.announce(ended(callback.url + "/bad", id="bad"), told)
        denials.announce(ended(callback.url, id="good"), told)
        await until(lambda: told.ids == ["good"], "the other one")
    assert "unheard of" in caplog.text
