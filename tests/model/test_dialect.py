"""Where the model expects something else of RabbitMQ, docs/differences.md says so."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from .dialect import RABBITMQ, WARREN

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"
ROWS = {
    "expires_anywhere": "a message with a short time to live behind others with a long one",
    "requeued_zero_ttl_is_delivered": "a message with TTL 0 is requeued",
    "limits_requeued_first": "requeued messages, a length limit, consumers that wait",
    "limits_count_the_expired": "a queue at its limit with expired messages",
    "numbers_by_value": "a number 10 and 10.0 as arguments",
    "last_death_headers": "dead letters",
    "settles_by_consumer": "many messages rejected at once",
    "commits_at_once": "a commit requeues and publishes",
    "single_active_by_priority": "the next single active consumer",
    "batches_by_priority": "messages of several priorities come at once, a consumer waits",
    "policies_change_deadlines": "a `message-ttl` that comes or goes by policy",
    "policies_limit_first": "a policy brings `max-length` and an `overflow` that refuses",
    "quorum_as_classic": "quorum queues",
    "immediate": "`immediate`",
    "empty_name_is_looked_up": "passive declare without a name",
    "consumer_limit_ends_channel_limit": "a prefetch for new consumers behind a channel's own",
    "channel_limit_counts_gets": "a channel's prefetch is set, messages of `basic.get` are unacked",
}
"""The field of the model, and how its row begins."""


def test_each_difference_has_its_row() -> None:
    different = {
        field.name
        for field in fields(WARREN)
        if getattr(WARREN, field.name) != getattr(RABBITMQ, field.name)
    }
    assert different == set(ROWS)
    page = PAGE.read_text()
    assert [row for row in ROWS.values() if f"| {row} |" not in page] == []
