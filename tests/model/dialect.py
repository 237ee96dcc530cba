"""Where RabbitMQ 3.10 and Warren differ on purpose; docs/differences.md says why of each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """What the model is to expect. Each field has its row in docs/differences.md."""

    expires_anywhere: bool = True
    """Messages with a short time to live expire behind others with a long one."""
    requeued_zero_ttl_is_delivered: bool = True
    """A requeued message with TTL 0 goes to a consumer that can take it at once."""
    limits_requeued_first: bool = False
    """Requeued messages meet limit and deadline before the consumers that wait for them."""
    numbers_by_value: bool = True
    """10 and 10.0 are the same argument."""
    last_death_headers: bool = True
    """Dead letters carry x-last-death-reason, -queue and -exchange."""
    settles_by_consumer: bool = False
    """Rejecting many at once takes those of one consumer after those of another."""
    limits_count_the_expired: bool = False
    """A queue over its limit drops its head before it looks what has expired."""
    commits_at_once: bool = True
    """What a commit requeues is there before what it publishes goes to a consumer."""
    single_active_by_priority: bool = False
    """The next single active consumer is the one of the highest priority, not the eldest."""
    immediate: bool = True
    """A message that no consumer could take at once is returned when it was published so."""
    quorum_as_classic: bool = True
    """Quorum queues keep order, deadlines and limits as classic ones do."""
    batches_by_priority: bool = True
    """Of messages that come together a waiting consumer gets the one of highest priority first."""
    policies_change_deadlines: bool = True
    """A message-ttl that comes or goes by policy is for the messages that are there, too."""
    policies_limit_first: bool = False
    """A policy's max-length drops what is too much before its overflow says to refuse instead."""
    empty_name_is_looked_up: bool = True
    """A passive declare without a name asks for the queue that the channel declared last."""
    channel_limit_counts_gets: bool = False
    """Unacked messages that came by basic.get use up a channel's prefetch that is set after them,
    for as long as it is set."""
    consumer_limit_ends_channel_limit: bool = False
    """A prefetch for new consumers takes the channel's own away."""


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
