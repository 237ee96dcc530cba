"""A lookup that fails for this hub's own reasons is no attempt."""

from __future__ import annotations

import logging

import pytest

from tests.hub.support import INBOX, House, attempts_of, deliveries, until
from tests.support.dns import dns
from tests.support.http import Callback
from warrenmq.hub.attempts.attempt import AttemptOutcome


async def test_a_name_server_failure_does_not_count_as_an_attempt(
    house: House, callback: Callback, caplog: pytest.LogCaptureFixture
) -> None:
    url = callback.url.replace("127.0.0.1", "target.example")
    with dns({"target.example": ["127.0.0.1"]}) as zone:
        server = zone.server
        await house.restart(dns_servers=(server,))
        await house.subscribe(INBOX, url)
    await house.restart(dns_servers=(server,))  # nothing is known of the name any more
    caplog.set_level(logging.WARNING)
    await house.post("in", "k", b"news")
    await until(lambda: "requeued: NotResolved" in caplog.text, "message that is held back")
    with dns({"target.example": ["127.0.0.1"]}, zone.port):
        await deliveries(callback, 1)
    [attempt] = await attempts_of(house, 1)
    assert (attempt.number, attempt.outcome) == (1, AttemptOutcome.DELIVERED)
