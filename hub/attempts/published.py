"""Publishes attempts to an exchange, for whoever counts deliveries (setting `publish_attempts`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..engine.errors import REFUSED_BY_QUEUE
from ..engine.own import ATTEMPTS
from ..engine.port import BatchPart, Engine, Properties
from ..limited_log import LimitedLog
from ..subscriptions.subscription import Subscription
from .attempt import Attempt, AttemptOutcome

ENCODED_AT_ONCE = 250
"""Attempts that are encoded in one iteration of the event loop: about a millisecond."""
_PROPERTIES = Properties(content_type="application/json", delivery_mode=2)
_encode = msgspec.json.Encoder().encode

log = logging.getLogger(__name__)

_Bodies = dict[AttemptOutcome, list[bytes]]


class PublishedAttempts:
    """Publishes attempts in the virtual host of their subscriptions, with the outcome as routing
    key.

    While memory or disk is short nothing is published, and what the engine refuses is left out: no
    delivery waits for a statistic.
    """

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._declared: set[str] = set()
        self._log = LimitedLog(log, clock)

    async def start(self) -> None:
        """Declares the exchange in each virtual host, so that queues can be bound to it; in one
        that is made later it is declared with its first attempt."""
        for vhost in self._engine.vhosts():
            await self._publish(vhost, {})

    async def publish(self, attempts: Sequence[Attempt]) -> None:
        """Publishes the attempts that have a subscription; on disk when it returns. Errors are
        logged."""
        by_vhost: dict[str, _Bodies] = {}
        for number, attempt in enumerate(attempts, start=1):
            if number % ENCODED_AT_ONCE == 0:
                await asyncio.sleep(0)
            subscription = attempt.subscription
            if subscription is not None:
                bodies = by_vhost.setdefault(subscription.source.vhost, {})
                bodies.setdefault(attempt.outcome, []).append(_body(attempt, subscription))
        for vhost, bodies in by_vhost.items():
            await self._publish(vhost, bodies)

    async def _publish(self, vhost: str, bodies: _Bodies) -> None:
        shortage = self._engine.shortage()
        if shortage and bodies:
            self._report(vhost, bodies, shortage)
            return
        parts = [BatchPart(outcome, _PROPERTIES, found) for outcome, found in bodies.items()]
        try:
            if vhost not in self._declared:
                await self._engine.declare_exchange(vhost, ATTEMPTS)
                self._declared.add(vhost)
            if parts:
                outcome = await self._engine.publish_batch(None, vhost, ATTEMPTS.name, parts)
                if not outcome.is_durable:
                    self._report(vhost, bodies, "the disk is full")
                elif outcome.rejected:
                    self._report(vhost, bodies, REFUSED_BY_QUEUE)
        except WarrenError as error:
            self._declared.discard(vhost)
            self._report(vhost, bodies, str(error))

    def _report(self, vhost: str, bodies: _Bodies, reason: str) -> None:
        self._log.write(
            logging.WARNING, vhost, "%d attempts are not published to '%s' in vhost '%s': %s",
            sum(map(len, bodies.values())), ATTEMPTS.name, vhost, reason,
        )  # fmt: skip


def _body(attempt: Attempt, subscription: Subscription) -> bytes:
    source = subscription.source
    return _encode(
        {
            "subscription": attempt.subscription_id,
            "vhost": source.vhost,
            "resource_type": source.word,
            "resource_name": source.name,
            "topic": subscription.topic,
            "callback_host": subscription.host,
            "webhook_id": attempt.webhook_id,
            "number": attempt.number,
            "outcome": attempt.outcome,
            "status": attempt.status,
            "latency_ms": attempt.latency_ms,
            "age_s": int(attempt.age_s * 1000) / 1000,  # faster than `round`
            "at": datetime.fromtimestamp(attempt.at, UTC),
        }
    )
