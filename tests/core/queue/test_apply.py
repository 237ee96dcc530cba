"""Rules that change while a queue has messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.life import PERSISTENT, TRANSIENT, Life, numbered
from tests.core.messages import Sent, scattered
from tests.support.amqp import publish
from warrenmq.core.message.queue_entry import MessageRange, PagedOut, QueueEntry
from warrenmq.core.queue.queue import Queue
from warrenmq.core.queue.rules import Rules

from .support import FakeContext, ready, take
from .support import publish as enqueue

# -- lengths


@given(
    st.lists(st.tuples(st.sampled_from("tpagfbd"), st.integers(1, 4)), max_size=25),
    st.integers(0, 99),
)
def test_ready_bytes_agree_while_limits_change(steps: list[tuple[str, int]], limit: int) -> None:
    context = FakeContext()
    queue = context.queue()
    messages: list[MessageRange] = []
    for step, number in steps:
        match step:
            case "p":
                sent = [Sent(bytes(size)) for size in range(number)]
                batch = scattered(sent, sequence=context.store.reserve(number))
                queue.enqueue(QueueEntry(batch, None))
                batch.evict()
                batch.resident = True  # Sizes are asked of what is on disk, too.
            case "t":
                messages += take(queue, number)
            case "g" if messages:
                queue.requeue(messages.pop())
            case "a" if messages:
                queue.settle(messages.pop(0))
            case "b":
                queue.apply(Rules(max_length_bytes=1_000 + limit))
            case "f":
                queue.apply(Rules(max_length=1_000))
            case "d":
                queue.apply(None)
    queue.apply(Rules(max_length_bytes=2_000))
    assert queue.ready_bytes == sum(
        messages.entry.batch.body_bytes(messages.entry.index(at))
        for messages in queue.backlog
        if isinstance(messages, MessageRange)
        for at in range(messages.low, messages.high)
    )


# -- delivery limits


def returned(queue: Queue, times: int = 1) -> None:
    for _ in range(times):
        for messages in list(take(queue, 100)):
            queue.requeue(messages)


def test_a_cleared_delivery_limit_forgets_its_counts(context: FakeContext) -> None:
    queue = context.queue()
    queue.apply(Rules(delivery_limit=1))
    enqueue(context, queue)
    returned(queue)
    queue.apply(None)
    returned(queue, 5)
    (messages,) = take(queue, 1)
    assert queue.with_headers(messages) is messages
    queue.requeue(messages)
    queue.apply(Rules(delivery_limit=1))
    returned(queue)
    assert ready(queue) == [1]


# -- on disk


def fill(life: Life, count: int, *, first: int = 0, transient: bool = False) -> list[bytes]:
    """Of different sizes, in reads of ten messages; written when this returns."""
    properties = TRANSIENT if transient else PERSISTENT
    some = [body * (1 + at % 3) for at, body in enumerate(numbered(count, first))]
    for at in range(0, count, 10):
        data = [publish(1, body, properties, routing_key="q") for body in some[at : at + 10]]
        life.client.feed(b"".join(data))
    life.write()
    life.client.come()
    return some


def paged_out_by(life: Life, count: int = 300) -> list[bytes]:
    some = fill(life, count)
    life.page_out()
    assert life.queue("q").paged_out_count == count
    return some


def apply(life: Life, rules: Rules | None, *, turns: int = 30) -> None:
    life.queue("q").apply(rules)
    life.turns(turns)


def test_a_ttl_pages_all_messages_in(life: Life) -> None:
    some = paged_out_by(life)
    apply(life, Rules(message_ttl_ms=60_000))
    assert life.queue("q").paged_out_count == 0
    life.page_out()
    assert life.queue("q").paged_out_count == 0
    life.turns(1, each_ms=30_000)
    assert life.bodies() == some


def test_rules_change_while_a_range_is_paged_in(life: Life) -> None:
    some = paged_out_by(life)
    queue = life.classic("q")
    life.broker.tick()
    queue.when_head_ready(lambda: None)
    assert queue.is_paging_in
    apply(life, Rules(max_length_bytes=1_000_000))
    assert (queue.paged_out_count, queue.ready_bytes) == (0, sum(map(len, some)))
    assert life.bodies() == some


def test_a_compacted_range_is_requested_again(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    some = paged_out_by(life)
    queue = life.queue("q")
    page_in = life.store.page_in.request
    asked: list[PagedOut] = []

    def moved(
        paged_out: PagedOut, done: Callable[[Sequence[MessageRange]], None], **how: bool
    ) -> None:
        asked.append(paged_out)
        if len(asked) == 1:
            done(())
        else:
            page_in(paged_out, done, **how)

    monkeypatch.setattr(life.store.page_in, "request", moved)
    apply(life, Rules(message_ttl_ms=60_000))
    assert queue.paged_out_count == 0
    assert asked[0] is asked[1]
    assert life.bodies() == some
