"""The backlog against a model of it: a list of sequence numbers, kept sorted."""

from __future__ import annotations

import pytest

from tests.core.messages import batch
from warrenmq.core.message.queue_entry import MessageRange, PagedOut, QueueEntry
from warrenmq.core.queue.backlog import AHEAD_RANGES, Backlog

from .support import head, sequences


def numbers(backlog: Backlog) -> list[int]:
    return sequences(*backlog)


def filled(*counts: int) -> Backlog:
    backlog, sequence = Backlog(), 1
    for count in counts:
        backlog.append(QueueEntry(batch(count, sequence), None))
        sequence += count
    return backlog


def take(backlog: Backlog, limit: int) -> MessageRange:
    return backlog.take(head(backlog), limit)


@pytest.mark.parametrize("backwards", [False, True])
def test_requeued_messages_join_again(backwards: bool) -> None:
    backlog = filled(1_000)
    pieces = [take(backlog, 1) for _ in range(1_000)]
    for piece in reversed(pieces) if backwards else pieces:
        backlog.requeue(piece)
    assert numbers(backlog) == list(range(1, 1_001))
    assert len(list(backlog)) == 1


def test_requeue_returns_the_joined_range() -> None:
    backlog = filled(5)
    first, second, third = (take(backlog, 1) for _ in range(3))
    messages = backlog.requeue(first)
    assert messages is first
    assert backlog.requeue(second) is first
    assert (first.low, first.high) == (0, 2)
    assert backlog.requeue(third) is first
    assert backlog.head() is first


# -- paged-out ranges


def test_the_first_paged_out_range_is_found_anywhere() -> None:
    backlog = filled(*[1] * (2 * AHEAD_RANGES))
    returned = [take(backlog, 1) for _ in range(3)]
    assert backlog.first_paged_out() is None
    first, second = PagedOut(5, None), PagedOut(7, None)
    backlog.append_range(first)
    backlog.append(QueueEntry(batch(2, 900), None))
    backlog.append_range(second)
    for messages in returned:
        backlog.requeue(messages)
    assert backlog.first_paged_out() is first
    assert backlog.paged_out_within(1_000) == []
    assert (backlog.count, backlog.paged_out_ranges) == (2 * AHEAD_RANGES + 14, 2)
