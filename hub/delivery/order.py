"""Strict order: which message each subscription waits for, how often it has failed, until when.

The message itself goes back to its queue, so that it is never held unacked for hours; what is
known of it is kept here, and in SQL against a crash.
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

AWAY_S = 0.1  # a message waits so long for an outcome to be durable, as a rule

log = logging.getLogger(__name__)


class StrictOrder:
    """A database that fails now costs a crash its memory of failures, and no delivery."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._table: Lazy[BlockedTable] = Lazy(self._open)
        self._loaded: dict[str, Blocking] = {}
        self._first: dict[ActiveSubscription, Delivery] = {}
        self._away: set[ActiveSubscription] = set()
        """Those whose blocking message is not back in its queue yet."""
        self._overtaking: set[Delivery] = set()
        """Messages that were taken while the one before them was away, and not looked at yet."""

    async def load(self) -> None:
        """Before subscriptions are served. Raises `StorageFailed`."""
        if not self._storage.is_empty():
            self._loaded = await (await self._table.get()).load()

    def adopt(self, active_subscriptions: Iterable[ActiveSubscription]) -> None:
        """Gives each what was loaded for it."""
        for active in active_subscriptions:
            self._take_loaded(active)

    def take(self, active: ActiveSubscription, delivery: Delivery) -> bool:
        """Whether no other message of it is on its way; `done` follows.

        One that was paused and resumed gets its next message while the last one still is.
        """
        return self._first.setdefault(active, delivery) is delivery

    def done(self, active: ActiveSubscription, delivery: Delivery) -> None:
        """The message is answered, or goes back; any that was not taken does not count."""
        self._overtaking.discard(delivery)
        if self._first.get(active) is delivery:
            del self._first[active]

    def wait_s(self, active: ActiveSubscription, delivery: Delivery, envelope: Envelope) -> float:
        """How long this message has to wait, 0 for one that may go out.

        Raises the envelope's failures to what is known of it. A message that nobody waits for
        is first in the queue only if the one that was waited for has left it.
        """
        self._take_loaded(active)
        # It was resumed by hand: what blocks must not be overtaken.
        if active in self._away or delivery in self._overtaking:
            return AWAY_S
        blocking = active.blocking
        if blocking is None or blocking.webhook_id != envelope.message_id:
            return 0.0
        envelope.failures = max(envelope.failures, blocking.failures)
        if blocking.due_ms is None:
            blocking = active.blocking = self._timed(blocking)
        return max(0.0, ((blocking.due_ms or 0) - self._clock.now_ms()) / 1000)

    def _timed(self, blocking: Blocking) -> Blocking:
        """What was loaded has its time by the wall clock; from now on no step of that counts."""
        left_s = blocking.not_before - self._clock.wall_s()
        return replace(blocking, due_ms=self._clock.now_ms() + round(left_s * 1000))

    async def block(self, active: ActiveSubscription, blocking: Blocking) -> None:
        """Durable when it returns, if the database works; `came_back` follows."""
        active.blocking = blocking
        self._away.add(active)
        try:
            await (await self._table.get()).put(active.subscription.id, blocking)
        except (StorageFailed, ConfigError) as error:
            self._report(active, error)
        except BaseException:
            self._away.discard(active)  # the dispatcher requeues it
            raise

    def came_back(self, active: ActiveSubscription) -> None:
        """The blocking message is at the head of its queue again."""
        self._away.discard(active)
        first = self._first.get(active)
        if first is not None:
            self._overtaking.add(first)

    async def clear(self, active: ActiveSubscription) -> None:
        """Nothing blocks it any more."""
        if active.blocking is None:
            return
        active.blocking = None
        try:
            await (await self._table.get()).drop(active.subscription.id)
        except (StorageFailed, ConfigError) as error:
            self._report(active, error)  # a row too many names a message that never comes again

    def _take_loaded(self, active: ActiveSubscription) -> None:
        loaded = self._loaded.pop(active.subscription.id, None) if self._loaded else None
        if loaded is not None:
            active.blocking = loaded

    def _report(self, active: ActiveSubscription, error: Exception) -> None:
        name = active.subscription.id
        log.warning("subscription %s: what its order waits for is not kept: %s", name, error)

    async def _open(self) -> BlockedTable:
        database = await self._storage.database()
        from .blocked import BlockedTable

        return BlockedTable(database)
