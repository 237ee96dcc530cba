"""The rules of a queue: limits, expiry, dead-lettering and so on, from arguments and policies.

A plain queue has no `Rules` at all, so it pays for none. `core/policy` merges policies into the
rules of the arguments; `Queue.apply` puts the result into force.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..message.deduplication import Deduplication

__all__ = ["PLAIN", "Deduplication", "RetryDelay", "Rules"]


@dataclass(frozen=True, slots=True)
class RetryDelay:
    """The delay of a returned message: `min_ms` times the number of its returns, at most
    `max_ms`."""

    kind: str
    min_ms: int
    max_ms: int

    def covers(self, *, failed: bool) -> bool:
        """Returns whether the delay applies to messages that failed (rejected, or unacked when the
        channel closed), or to those that were returned."""
        return self.kind == "all" or self.kind == ("failed" if failed else "returned")


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one queue; None stands for "no such rule"."""

    message_ttl_ms: int | None = None
    expires_ms: int | None = None
    max_length: int | None = None
    max_length_bytes: int | None = None
    overflow: str = "drop-head"
    dead_letter_exchange: str | None = None
    dead_letter_routing_key: str | None = None
    at_least_once: bool = False
    """Whether its dead letters are enqueued even where a publish would be refused."""
    max_priority: int | None = None
    single_active: bool = False
    delivery_limit: int | None = None
    """How often a message may be returned; negative: returns are counted, but not limited."""
    retry_delay: RetryDelay | None = None
    consumer_timeout_ms: int | None = None
    """0: no timeout; None: the server's."""
    deduplication: Deduplication | None = None
    max_age_ms: int | None = None
    segment_bytes: int | None = None
    filter_bytes: int | None = None
    archive: str | None = None
    """The archive of a stream without which retention drops nothing."""

    @property
    def limited(self) -> bool:
        return self.max_length is not None or self.max_length_bytes is not None

    @property
    def checks_each_message(self) -> bool:
        """Whether each message in the queue must be read, also after a restart.

        Priorities don't need that: messages with a priority are never in paged-out ranges.
        """
        return self.message_ttl_ms is not None or self.max_length_bytes is not None

    @property
    def checks_publishes(self) -> bool:
        """Whether a publish may be refused or dropped, so that each has to be checked."""
        return self.deduplication is not None or (self.limited and self.overflow != "drop-head")


PLAIN: Final = Rules()
