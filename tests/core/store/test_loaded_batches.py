"""Queues that read the same record share its batch."""

from __future__ import annotations

from tests.core.messages import batch
from warrenmq.core.message.queue_entry import QueueEntry
from warrenmq.core.store.segment import Segment


def test_a_batch_is_found_while_an_entry_has_it() -> None:
    segment = Segment(1)
    part, one = segment.part(7), batch(1)
    for ordinal in range(100):
        part.attach(ordinal, QueueEntry(one, None))
        segment.loaded.add(48 + ordinal, part, ordinal)
    assert segment.loaded.get(50) is one
    assert segment.loaded.get(47) is None
    for ordinal in range(99):
        part.mark_dead(ordinal)
    assert segment.loaded.get(50) is None
    for ordinal in range(100, 200):
        part.attach(ordinal, QueueEntry(one, None))
        segment.loaded.add(48 + ordinal, part, ordinal)
        part.mark_dead(ordinal)
    assert segment.loaded.get(48 + 99) is one
    assert len(segment.loaded) < 10
