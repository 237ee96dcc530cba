"""Every difference that the model expects has a row in docs/differences.md."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from .dialect import RABBITMQ, WARREN

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"
ROWS = {
    "expires_anywhere": "a message with a short TTL behind messages with a longer one",
    "requeued_zero_ttl_is_delivered": "a message with TTL 0 is requeued",
    "limits_requeued_first": "requeued messages, a length limit and waiting consumers",
    "limits_count_the_expired": "a full queue contains expired messages",
    "numbers_by_value": "the numbers 10 and 10.0 as arguments",
    "last_death_headers": "dead letters",
    "settles_by_consumer": "many messages are rejected at once",
    "commits_at_once": "a transaction requeues and publishes",
    "single_active_by_priority": "the next single active consumer",
    "batches_by_priority": "messages of several priorities arrive while a consumer waits",
    "policies_change_deadlines": "a policy adds or removes `message-ttl`",
    "policies_limit_first": "a policy sets `max-length` with an `overflow` that rejects publishes",
    "quorum_as_classic": "quorum queues",
    "immediate": "`immediate`",
    "empty_name_is_looked_up": "passive declare without a name",
    "consumer_limit_ends_channel_limit": "prefetch limits for the channel and for new consumers",
    "channel_limit_counts_gets": "the channel's prefetch limit and messages of `basic.get`",
}
"""The field of the model, and the first column of its row."""


def test_each_difference_has_its_row() -> None:
    different = {
        field.name
        for field in fields(WARREN)
        if getattr(WARREN, field.name) != getattr(RABBITMQ, field.name)
    }
    assert different == set(ROWS)
    page = PAGE.read_text()
    assert [row for row in ROWS.values() if f"| {row} |" not in page] == []
