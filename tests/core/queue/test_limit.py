"""x-max-length and x-max-length-bytes, by both ways of overflow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.core.messages import Sent, scattered
from warrenmq.core.message.queue_entry import QueueEntry

from .support import FakeContext, Session, add, publish, ready, take


def test_consumers_are_served_before_the_limit(context: FakeContext, session: Session) -> None:
    queue = context.queue(max_length=10)
    add(queue, session)
    publish(context, queue, 5_000)
    context.turn(budget=100)
    assert (len(session.numbers()), context.dead_letters) == (5_000, [])


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20), st.data())
def test_ready_bytes_agree(sizes: list[int], data: st.DataObject) -> None:
    context = FakeContext()
    queue = context.queue(max_length_bytes=10_000)
    bodies = dict(enumerate(sizes, 1))
    batch = scattered([Sent(bytes(size)) for size in sizes])
    context.store.reserve(len(sizes))
    queue.enqueue(QueueEntry(batch, None))
    outstanding = list(take(queue, data.draw(st.integers(0, len(sizes)))))
    assert queue.ready_bytes == sum(bodies[number] for number in ready(queue))
    for messages in outstanding:
        (queue.requeue if data.draw(st.booleans()) else queue.return_undelivered)(messages)
        assert queue.ready_bytes == sum(bodies[number] for number in ready(queue))
    publish(context, queue, 3, body_bytes=7)
    assert queue.ready_bytes == sum(sizes) + 21
    queue.purge()
    assert queue.ready_bytes == 0
