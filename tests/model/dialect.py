"""Intended differences from RabbitMQ 3.10; docs/differences.md gives the reasons."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """The behaviour that the model expects. Each field has a row in docs/differences.md."""

    expires_anywhere: bool = True
    """Messages with a short TTL expire behind messages with a longer one."""
    requeued_zero_ttl_is_delivered: bool = True
    """A requeued message with TTL 0 goes to a consumer that can take it at once."""
    limits_requeued_first: bool = False
    """Limit and TTL apply to requeued messages before waiting consumers are served."""
    numbers_by_value: bool = True
    """The arguments 10 and 10.0 are equal."""
    last_death_headers: bool = True
    """Dead letters carry x-last-death-reason, -queue and -exchange."""
    settles_by_consumer: bool = False
    """Messages that are rejected together are dead-lettered consumer by consumer."""
    limits_count_the_expired: bool = False
    """A queue over its limit drops its head before it removes expired messages."""
    commits_at_once: bool = True
    """Messages that a commit requeues are delivered before messages that it publishes."""
    single_active_by_priority: bool = False
    """The next single active consumer has the highest priority; else it is the oldest."""
    immediate: bool = True
    """An immediate message that no consumer can take at once is returned."""
    quorum_as_classic: bool = True
    """Quorum queues keep order, TTL and limits as classic queues do."""
    batches_by_priority: bool = True
    """A waiting consumer gets the highest priority of messages that arrive together first."""
    policies_change_deadlines: bool = True
    """Adding or removing message-ttl by policy applies to messages already in the queue."""
    policies_limit_first: bool = False
    """A policy's max-length drops messages before its overflow begins to reject publishes."""
    empty_name_is_looked_up: bool = True
    """A passive declare without a name refers to the queue that the channel declared last."""
    channel_limit_counts_gets: bool = False
    """Unacknowledged messages of basic.get count towards a channel limit that is set afterwards,
    as long as that limit is set."""
    consumer_limit_ends_channel_limit: bool = False
    """A prefetch limit for new consumers removes the channel's limit."""


WARREN = Dialect()
RABBITMQ = Dialect(
    expires_anywhere=False,
    requeued_zero_ttl_is_delivered=False,
    limits_requeued_first=True,
    numbers_by_value=False,
    last_death_headers=False,
    settles_by_consumer=True,
    limits_count_the_expired=True,
    policies_change_deadlines=False,
    policies_limit_first=True,
    batches_by_priority=False,
    single_active_by_priority=True,
    immediate=False,
    quorum_as_classic=False,
    commits_at_once=False,
    empty_name_is_looked_up=False,
    channel_limit_counts_gets=True,
    consumer_limit_ends_channel_limit=True,
)
