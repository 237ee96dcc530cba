"""Errors are told also after a restart, until a delivery succeeds."""

from __future__ import annotations

from tests.hub.support import NEWS, House, deliveries, until
from tests.support.http import Answer, Callback
from warrenmq.hub.attempts.attempt import AttemptFilter, AttemptOutcome


async def test_failures_survive_a_restart(house: House, callback: Callback) -> None:
    for name in ("fails", "works", "ended"):
        await house.subscribe(NEWS, f"{callback.url}/{name}", name)
    callback.script(Answer(200))
    await house.publish("works", b"x")
    await deliveries(callback, 1)
    callback.default = Answer(503)
    for key in ("fails", "ended"):
        await house.publish(key, b"x")

    async def is_written() -> bool:
        found = await house.hub.attempts.find(AttemptFilter(outcome=AttemptOutcome.RETRIED))
        return len({kept.attempt.subscription_id for kept in found}) == 2

    await until(is_written, "two failures")
    await house.hub.subscriptions.remove(NEWS, "ended", f"{callback.url}/ended")
    await house.restart()
    errors = {
        active.subscription.topic: active.failure_state
        and (active.error_count > 0, active.failure_state.last_error)
        for active in house.hub.subscription_store.all()
    }
    assert errors == {"fails": (True, "status 503"), "works": None}
