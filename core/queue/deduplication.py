"""Message deduplication: drops a message whose id is among the last ones seen.

The id is the value of a header; messages without it are never dropped. An id expires after the TTL
of the message (header `x-cache-ttl`), or else of the queue or exchange, and in any case when newer
ids displace it. A durable queue or exchange keeps the ids of persistent messages over crashes and
restarts: they are committed together with the messages.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

from ..definitions.facts import DeduplicationIds, SeenId
from ..errors import precondition_failed
from ..message.deduplication import CACHE_TTL_MAX_MS, TTL, Deduplication
from ..message.equivalence import type_name, value_text
from ..message.model import FieldValue
from ..wire.identity import header, identity

if TYPE_CHECKING:
    from ..clock import Clock
    from ..definitions.facts import Facts
    from ..message.batch import Batch


class _Context(Protocol):
    @property
    def clock(self) -> Clock: ...
    @property
    def now_ms(self) -> int: ...
    @property
    def facts(self) -> Facts: ...


class SeenIds:
    """The message ids that one queue or exchange has seen, the oldest first.

    `owner` is the key under which they are stored, None if it is not durable.
    """

    __slots__ = ("_facts", "_over_ms", "_rules", "_time")

    def __init__(self, rules: Deduplication, time: _Context, owner: bytes | None) -> None:
        self._rules = rules
        self._time = time
        self._facts = None if owner is None else DeduplicationIds(time.facts, owner)
        self._over_ms: OrderedDict[bytes, int | None] = OrderedDict()
        """When each id expires, in monotonic milliseconds; None for when newer ids displace it."""
        if self._facts is not None:
            self._load(self._facts)

    def _load(self, facts: DeduplicationIds) -> None:
        now_ms, steady_ms = self._time.now_ms, self._time.clock.steady_ms()
        for found, seen in facts.load().items():
            over_ms = None
            if seen.expires_ms:
                # The clock may have been set since: the time left is from 0 to the whole TTL.
                left_ms = seen.expires_ms - steady_ms
                over_ms = now_ms + max(0, min(left_ms, seen.expires_ms - seen.came_ms))
            self._over_ms[found] = over_ms

    def __len__(self) -> int:
        return len(self._over_ms)

    def check(self, properties: bytes) -> None:
        """Raises `ChannelError` 406 if the message's `x-cache-ttl` is invalid."""
        value = header(properties, TTL)
        if value is not None and _as_ttl_ms(value) is None:
            raise precondition_failed(
                f"invalid header '{TTL}' '{value_text(value)}' of type {type_name(value)}: whole "
                f"milliseconds from 0 to {CACHE_TTL_MAX_MS} are needed"
            )

    def has_seen(self, batch: Batch) -> bool:
        """Returns whether the id of this single message was seen, so that it is dropped."""
        found = self._identity(batch)
        if found is None or found not in self._over_ms:
            return False
        over_ms = self._over_ms[found]
        if over_ms is None or over_ms > self._time.now_ms:
            return True
        self._forget(found)
        return False

    def remember(self, batch: Batch) -> None:
        """Adds the id of an accepted message; called inside `store.together()`, so that both are
        committed as one."""
        found = self._identity(batch)
        ttl_ms = self._ttl_ms(batch.properties(0))
        if found is None or ttl_ms == 0:
            return
        self._make_room()
        self._over_ms[found] = None if ttl_ms is None else self._time.now_ms + ttl_ms
        if self._facts is not None and batch.attributes.persistent:
            came_ms = self._time.clock.steady_ms()
            self._facts.store(found, SeenId(came_ms, 0 if ttl_ms is None else came_ms + ttl_ms))

    def _identity(self, batch: Batch) -> bytes | None:
        value = header(batch.properties(0), self._rules.header)
        return None if value is None else identity(value)

    def _ttl_ms(self, properties: bytes) -> int | None:
        """Returns the TTL, None for no limit; an invalid one in a dead letter is ignored."""
        own_ms = _as_ttl_ms(header(properties, TTL))
        return self._rules.ttl_ms if own_ms is None else own_ms

    def _make_room(self) -> None:
        """Removes the oldest ids that have expired, and one more if the cache is full."""
        now_ms = self._time.now_ms
        while self._over_ms:
            oldest, over_ms = next(iter(self._over_ms.items()))
            is_over = over_ms is not None and over_ms <= now_ms
            if not is_over and len(self._over_ms) < self._rules.size:
                return
            self._forget(oldest)

    def _forget(self, found: bytes) -> None:
        del self._over_ms[found]
        if self._facts is not None:
            self._facts.drop(found)


def _as_ttl_ms(value: FieldValue) -> int | None:
    """Returns a valid TTL, None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= CACHE_TTL_MAX_MS else None
