"""What the log tells of webhooks that fail."""

from __future__ import annotations

import logging

import pytest

from tests.hub.support import NEWS, House, attempts_of, deliveries, request, subscriptions_of, until
from tests.support.http import Answer, Callback

SECRET = "never-in-the-log"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("warrenmq.hub.delivery.breaker.THRESHOLD", 3)
    monkeypatch.setattr("warrenmq.hub.delivery.breaker.FIRST_COOL_DOWN_S", 0.1)


def told(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [message for message in caplog.messages if words in message]


async def subscribed(house: House, callback: Callback) -> str:
    url = f"{callback.url}?token={SECRET}"
    await house.hub.subscriptions.subscribe(request(NEWS, url, lease_seconds="600", secret=SECRET))
    [subscription] = subscriptions_of(house.hub)
    return subscription.id


async def test_log_lines_of_failures(
    house: House, callback: Callback, caplog: pytest.LogCaptureFixture
) -> None:
    name = await subscribed(house, callback)
    host = callback.url.split("/")[2]
    callback.script(500, 500, 500)
    for number in range(3):
        await house.publish("eu", str(number).encode())
    await deliveries(callback, 6)  # each a second time
    await until(lambda: bool(told(caplog, "accepts messages again")), "closed breaker")
    [line] = told(caplog, "attempt 1")
    assert line.startswith(f"subscription {name}: attempt 1 at {host} failed: status 500; the next")
    [line] = told(caplog, "are suspended")
    assert line.startswith(f"subscription {name}: deliveries to {host} are suspended for 0 s")
    await house.restart(max_attempts=1)
    callback.script(503)
    await house.publish("eu", b"last")
    await until(lambda: bool(told(caplog, "is a dead letter")), "dead letter")
    [line] = told(caplog, "is a dead letter")
    assert f"for {host} is a dead letter: 1 attempt, the last: status 503" in line
    assert SECRET not in caplog.text


@pytest.mark.parametrize("limit", [2_048, 3, 0])
async def test_attempts_have_url_and_answer(house: House, callback: Callback, limit: int) -> None:
    await house.restart(attempt_body_bytes=limit)
    await subscribed(house, callback)
    body = b"\xffno" + b"x" * 10_000
    callback.default = Answer(200, body=body)
    await house.publish("eu", b"a")
    [attempt] = await attempts_of(house, 1)
    assert attempt.callback == f"{callback.url}?token={SECRET}"
    assert attempt.body == body[:limit].decode(errors="replace")
