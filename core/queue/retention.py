"""Retention of a stream: drops its oldest messages over the limits of size, count and age."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .cursor import Cursor
from .rules import Rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..timers import Timer
    from .context import QueueContext
    from .stream_chunks import StreamChunk
    from .stream_log import StreamLog

LOOK_MIN_MS, LOOK_MAX_MS = 1_000, 60_000
STEP_BYTES, STEP_MESSAGES = 262_144, 4_096
WHOLE: Final = 1 << 62
"""More bytes than a chunk has: it is dropped as a whole."""
STEP_SHARE: Final = 64
"""An exceeded limit is undercut by `STEP_BYTES` or `STEP_MESSAGES`, or by this part of it if less:
each drop writes to the log, and should not follow every message."""


class Retention:
    """Applies limits to one stream log; `again` is called when there may be more to drop."""

    def __init__(self, log: StreamLog, broker: QueueContext, again: Callable[[], None]) -> None:
        self._log = log
        self._broker = broker
        self._again = again
        self._timer: Timer | None = None
        self._learning: Cursor | None = None

    def by_size(self, limit: int) -> None:
        """Drops the oldest messages over `limit` bytes, except the last chunk."""
        log = self._log
        if not log.compute_sizes(self._again) or log.size_bytes <= limit:
            return
        target = limit - min(limit // STEP_SHARE, STEP_BYTES)
        log.dropping.begin(lambda: max(0, log.size_bytes - target), self._again)

    def by_count(self, messages: int) -> None:
        """Drops the oldest chunks over `messages` messages; at least that many stay."""
        log = self._log

        def has_more_than(count: int) -> bool:
            oldest = log.oldest()
            return oldest is not None and log.end - oldest.end >= count

        if has_more_than(messages + min(messages // STEP_SHARE, STEP_MESSAGES)):
            log.dropping.begin(lambda: WHOLE * has_more_than(messages), self._again)

    def by_age(self, age_ms: int) -> None:
        """Drops whole chunks of messages that arrived more than `age_ms` ago."""
        log, born_ms = self._log, self._broker.now_ms - age_ms

        def over() -> int:
            oldest = log.oldest()
            newest_ms = None if oldest is None else oldest.newest_ms
            return WHOLE * (newest_ms is not None and newest_ms < born_ms)

        log.dropping.begin(over, self._again)
        oldest = log.oldest() or log.oldest_kept_by_archive()
        if oldest is not None and oldest.newest_ms is None:
            self._learn(oldest)
        if oldest is not None:
            self._look_again(min(LOOK_MAX_MS, max(LOOK_MIN_MS, age_ms // 10)))

    def exceeded(self, rules: Rules) -> str | None:
        """Returns which limit is exceeded because of the log's floor, None if none is."""
        oldest, now_ms = self._log.oldest_kept_by_archive(), self._broker.now_ms
        if oldest is None:
            return None
        size, limit, age_ms = self._log.size_bytes, rules.max_length_bytes, rules.max_age_ms
        if limit is not None and size > limit:
            return f"it has {size} bytes, over its limit of {limit}"
        newest_ms = oldest.newest_ms
        if age_ms is not None and newest_ms is not None and newest_ms < now_ms - age_ms:
            old_s = (now_ms - newest_ms) // 1000
            return f"it has messages of {old_s} s, over its limit of {age_ms // 1000} s"
        return None

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look_again(self, after_ms: int) -> None:
        timer = self._timer
        if timer is None or timer.action is None:
            self._timer = self._broker.timers.at(self._broker.now_ms + after_ms, self._again)

    def _learn(self, chunk: StreamChunk) -> None:
        """Reads when the last message of a recovered chunk arrived."""
        if self._learning is not None:
            return
        cursor = self._learning = Cursor(
            self._log, self._broker.store, chunk.end - 1, lambda: self._learned(cursor, chunk)
        )
        self._learned(cursor, chunk)

    def _learned(self, cursor: Cursor, chunk: StreamChunk) -> None:
        messages = cursor.next()
        if messages is None and cursor.is_reading:
            return
        self._learning = None
        # If it can't be read, the next message that can is taken; without one it counts as new.
        now_ms = self._broker.now_ms
        chunk.newest_ms = now_ms if messages is None else messages.entry.batch.arrived_ms
        self._again()
