"""Strict order: the message that each subscription waits for, its failures, and when it is due.

The message itself is requeued, so that it is not unacknowledged for hours; its failures are kept
here, and in SQL in case of a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.clock import Clock
from ...core.errors import ConfigError
from ..engine.port import Delivery
from ..errors import StorageFailed
from ..lazy import Lazy
from ..storage.storage import Storage
from ..subscriptions.active import ActiveSubscription
from .envelope import Envelope
from .failure_state import Blocking

if TYPE_CHECKING:
    from .blocked import BlockedTable

AWAY_S = 0.1  # usually the outcome that a message waits for is durable by then

log = logging.getLogger(__name__)


class StrictOrder:
    """The blocking messages of subscriptions in strict order. If the database fails, deliveries
    continue; a crash then loses the count of failures."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._table: Lazy[BlockedTable] = Lazy(self._open)
        self._loaded: dict[str, Blocking] = {}
        self._first: dict[ActiveSubscription, Delivery] = {}
        self._away: set[ActiveSubscription] = set()
        """Subscriptions whose blocking message is not requeued yet."""
        self._overtaking: set[Delivery] = set()
        """Messages that were taken before the blocking message was requeued."""

    async def load(self) -> None:
        """Reads the blocking messages, before subscriptions are served. Raises `StorageFailed`."""
        if not self._storage.is_empty():
            self._loaded = await (await self._table.get()).load()

    def adopt(self, active_subscriptions: Iterable[ActiveSubscription]) -> None:
        """Gives each subscription the blocking message that was loaded for it."""
        for active in active_subscriptions:
            self._take_loaded(active)

    def take(self, active: ActiveSubscription, delivery: Delivery) -> bool:
        """Returns whether no other message of the subscription is in flight; `done` follows. After
        a pause the next message arrives while an earlier one may still be in flight."""
        return self._first.setdefault(active, delivery) is delivery

    def done(self, active: ActiveSubscription, delivery: Delivery) -> None:
        """Forgets the message, if it was taken: it was answered or requeued."""
        self._overtaking.discard(delivery)
        if self._first.get(active) is delivery:
            del self._first[active]

    def wait_s(self, active: ActiveSubscription, delivery: Delivery, envelope: Envelope) -> float:
        """Returns how long this message has to wait, 0 if it may be delivered, and raises the
        envelope's failures to those on record. Another message than the blocking one is first
        only if the blocking one has left the queue.
        """
        self._take_loaded(active)
        # An operator has resumed it: the blocking message must not be overtaken.
        if active in self._away or delivery in self._overtaking:
            return AWAY_S
        blocking = active.blocking
        if blocking is None or blocking.webhook_id != envelope.message_id:
            return 0.0
        envelope.failures = max(envelope.failures, blocking.failures)
        if blocking.due_ms is None:
            blocking = self._timed(blocking)
            active.block(blocking)
        return max(0.0, ((blocking.due_ms or 0) - self._clock.now_ms()) / 1000)

    def _timed(self, blocking: Blocking) -> Blocking:
        """Returns the message with its time by the monotonic clock, which does not step."""
        left_s = blocking.not_before - self._clock.wall_s()
        return replace(blocking, due_ms=self._clock.now_ms() + round(left_s * 1000))

    async def block(self, active: ActiveSubscription, blocking: Blocking) -> None:
        """Stores the blocking message; `requeued` follows. Durable if the database works."""
        active.block(blocking)
        self._away.add(active)
        try:
            await (await self._table.get()).put(active.subscription.id, blocking)
        except (StorageFailed, ConfigError) as error:
            self._report(active, error)
        except BaseException:
            self._away.discard(active)  # the dispatcher requeues it
            raise

    def requeued(self, active: ActiveSubscription) -> None:
        """Notes that the blocking message was requeued at the head of its queue."""
        self._away.discard(active)
        first = self._first.get(active)
        if first is not None:
            self._overtaking.add(first)

    async def clear(self, active: ActiveSubscription) -> None:
        """Forgets the blocking message, if there is one."""
        if active.blocking is None:
            return
        active.unblock()
        try:
            await (await self._table.get()).drop(active.subscription.id)
        except (StorageFailed, ConfigError) as error:
            self._report(active, error)  # the row names a message that never comes again

    def _take_loaded(self, active: ActiveSubscription) -> None:
        loaded = self._loaded.pop(active.subscription.id, None) if self._loaded else None
        if loaded is not None:
            active.block(loaded)

    def _report(self, active: ActiveSubscription, error: Exception) -> None:
        name = active.subscription.id
        log.warning("subscription %s: blocking message not stored: %s", name, error)

    async def _open(self) -> BlockedTable:
        database = await self._storage.database()
        from .blocked import BlockedTable

        return BlockedTable(database)
