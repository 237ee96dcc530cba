"""What makes a queue more than plain: asked for by its arguments and by policies.

A plain queue has no `Rules` at all, so it pays for none. `core/policy` merges what policies
say into the rules of the arguments; `Queue.apply` puts the outcome into force.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..message.deduplication import Deduplication

__all__ = ["PLAIN", "Deduplication", "RetryDelay", "Rules"]


@dataclass(frozen=True, slots=True)
class RetryDelay:
    """How long a message that came back waits before it goes out again: as many times `min_ms` as
    it came back, at most `max_ms`."""

    kind: str
    min_ms: int
    max_ms: int

    def covers(self, *, failed: bool) -> bool:
        """Whether it is meant for messages that were rejected or lost with their channel, or for
        those that were given back."""
        return self.kind == "all" or self.kind == ("failed" if failed else "returned")


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything that makes a queue more than plain; None stands for "no such rule"."""

    message_ttl_ms: int | None = None
    expires_ms: int | None = None
    max_length: int | None = None
    max_length_bytes: int | None = None
    overflow: str = "drop-head"
    dead_letter_exchange: str | None = None
    dead_letter_routing_key: str | None = None
    at_least_once: bool = False
    """Whether queues take its dead letters although they would refuse a publish."""
    max_priority: int | None = None
    single_active: bool = False
    delivery_limit: int | None = None
    """Times that a message may come back; negative: counted, but never too often."""
    retry_delay: RetryDelay | None = None
    consumer_timeout_ms: int | None = None
    """0: no timeout; None: the server's."""
    deduplication: Deduplication | None = None
    max_age_ms: int | None = None
    segment_bytes: int | None = None
    filter_bytes: int | None = None

    @property
    def limited(self) -> bool:
        return self.max_length is not None or self.max_length_bytes is not None

    @property
    def checks_each_message(self) -> bool:
        """Whether what is in the queue must be known message by message, also after a restart.

        Priorities need not: messages that have one are never a part of paged-out ranges.
        """
        return self.message_ttl_ms is not None or self.max_length_bytes is not None

    @property
    def checks_publishes(self) -> bool:
        """Whether a publish may be refused or dropped, so that each has to be asked about."""
        return self.deduplication is not None or (self.limited and self.overflow != "drop-head")


PLAIN = Rules()
