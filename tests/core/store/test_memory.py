"""The store in memory, and queues that wait for a store."""

from __future__ import annotations

import pytest

from tests.core.messages import batch
from tests.core.queue.support import FakeContext, Session, add, publish, ready, sequences, take
from tests.support.amqp import Client, make_broker, take_turns
from tests.support.manual_store import ManualStore
from warrenmq.core.message.batch import Batch
from warrenmq.core.message.queue_entry import QueueEntry
from warrenmq.core.queue.queue import Queue
from warrenmq.core.store.memory import MemoryStore
from warrenmq.core.wire.properties import PERSISTENT

# -- the stores themselves


def test_sequence_numbers_are_handed_out_once() -> None:
    store = MemoryStore(7)
    assert [store.reserve(count) for count in (3, 1, 5, 1)] == [7, 10, 11, 16]


def test_a_later_process_hands_out_higher_ones() -> None:
    assert 0 < MemoryStore().reserve(1_000_000) < MemoryStore().reserve(1)


def test_memory_store_commits_at_once_and_evicts_nothing() -> None:
    store, one = MemoryStore(), batch(2)
    called: list[str] = []
    store.progress.on_change(lambda: called.append("commit"))
    assert (store.append(one, []), store.progress.committed, one.resident) == (0, 0, True)
    with pytest.raises(NotImplementedError):
        store.batches.fetch(one, lambda: None)
    assert called == []


# -- a queue waits


def late_context() -> tuple[FakeContext, ManualStore]:
    store = ManualStore(1)
    return FakeContext(store=store), store


def write(context: FakeContext, queue: Queue, count: int, body_bytes: int = 4) -> Batch:
    """A read's messages that are on disk only."""
    made = batch(count, context.store.reserve(count), PERSISTENT, body_bytes)
    entry = QueueEntry(made, None)
    context.store.append(made, [(queue, entry)])
    queue.enqueue(entry)
    return made


def test_delivery_resumes_when_its_messages_are_read() -> None:
    (context, store), session = late_context(), Session()
    queue = context.queue()
    add(queue, session)
    write(context, queue, 3)
    write(context, queue, 2)
    context.turn()
    assert (session.numbers(), store.reads, queue.is_paging_in) == ([], 2, True)
    context.turn()
    write(context, queue, 1)
    context.turn()
    while store.arrive():
        context.turn()
    assert session.numbers() == [1, 2, 3, 4, 5, 6]
    assert (store.reads, queue.is_paging_in, queue.ready_count) == (0, False, 0)


def test_a_returned_message_that_has_left_memory_is_still_the_first() -> None:
    (context, store), session = late_context(), Session()
    queue = context.queue()
    write(context, queue, 2)
    queue.when_head_ready(lambda: None)
    store.arrive()
    held = queue.dequeue(1)
    assert held is not None
    write(context, queue, 1)
    add(queue, session)
    store.evict_all()
    queue.requeue(held)
    context.turn()
    assert session.numbers() == []
    while store.arrive():
        context.turn()
    assert session.numbers() == [1, 2, 3]


def test_a_get_waits_for_its_message() -> None:
    context, store = late_context()
    queue = context.queue()
    write(context, queue, 1)
    write(context, queue, 2)
    got: list[int] = []

    def get() -> None:
        messages = queue.dequeue(1)
        if messages is None and queue.is_paging_in:
            queue.when_head_ready(get)
        elif messages is not None:
            got.extend(sequences(messages))

    queue.when_head_ready(get)
    queue.when_head_ready(get)
    assert (got, store.reads) == ([], 2)
    store.arrive()
    assert (got, store.reads) == ([1, 2], 0)
    queue.when_head_ready(get)
    assert got == [1, 2, 3]
    queue.when_head_ready(lambda: got.append(0))
    assert got == [1, 2, 3, 0]


def test_a_get_that_waits_is_answered_when_the_queue_is_purged() -> None:
    context, store = late_context()
    queue = context.queue(durable=True)
    write(context, queue, 1)
    answers: list[bool] = []
    queue.when_head_ready(lambda: answers.append(queue.dequeue(1) is None))
    assert queue.purge() == 1
    assert answers == []
    store.arrive()
    assert (answers, queue.is_paging_in) == ([True], False)
    context.turn()
    publish(context, queue)
    assert sequences(*take(queue, 1)) == [2]


def test_length_limit_drops_messages_on_disk() -> None:
    context, store = late_context()
    queue = context.queue(max_length=3)
    sized = context.queue(max_length_bytes=30)
    for _ in range(3):
        write(context, queue, 2)
        write(context, sized, 2, body_bytes=10)
    context.turn()
    assert (ready(queue), ready(sized)) == ([6, 9, 10], [8, 11, 12])
    assert sized.ready_bytes == 30
    assert context.dead_letters[:2] == [(1, "maxlen"), (3, "maxlen")]
    # The first to go needs no data: the republisher asks for it if there is a letter to write.
    assert store.reads == 0


def test_messages_expire_on_disk() -> None:
    (context, store), session = late_context(), Session()
    queue = context.queue(message_ttl=50, max_length_bytes=1_000)
    add(queue, session)
    write(context, queue, 2)
    context.turn()
    context.wait(51)
    assert (ready(queue), queue.ready_bytes) == ([], 0)
    assert context.dead_letters == [(1, "expired"), (2, "expired")]
    store.arrive()
    context.turn()
    assert session.numbers() == []


# -- the broker waits


class Late:
    """A broker on a late store, with one client."""

    def __init__(self) -> None:
        self.store = ManualStore()
        self.broker = make_broker(self.store)
        self.client = Client(self.broker)

    def arrive(self) -> int:
        """What is under way arrives, and the broker takes its turns."""
        count = self.store.arrive()
        take_turns(self.broker)
        return count

    def publish(self, queue: str, *contents: bytes) -> None:
        for body in contents:
            self.client.publish(body, {"delivery_mode": 2}, routing_key=queue)


@pytest.fixture
def late() -> Late:
    return Late()


LETTERS: dict[str, object] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def dead_letters(late: Late) -> list[tuple[bytes, str]]:
    """Bodies and reasons of all letters, in order, as they come from the disk."""
    late.client.declare("dead", durable=True)
    replies = late.client.consume("dead", "letters", no_ack=True)
    while late.arrive():
        replies += late.client.come()
    return [
        (reply.body, reply.headers["x-death"][0]["reason"])
        for reply in replies
        if reply.name == "Basic.Deliver"
    ]


def test_dead_letters_are_published_when_their_messages_are_read(late: Late) -> None:
    late.client.declare("dead", durable=True)
    late.client.declare("q", durable=True, arguments={**LETTERS, "x-max-length": 2})
    late.publish("q", b"a", b"b", b"c", b"d")
    assert (late.client.messages("q"), late.client.messages("dead")) == (2, 0)
    assert dead_letters(late) == [(b"a", "maxlen"), (b"b", "maxlen")]
    assert late.client.messages("q") == 2


def test_expired_messages_that_have_left_memory(late: Late) -> None:
    late.client.declare("dead", durable=True)
    late.client.declare("q", durable=True, arguments={**LETTERS, "x-message-ttl": 0})
    late.publish("q", b"a", b"b")
    assert dead_letters(late) == [(b"a", "expired"), (b"b", "expired")]


def test_a_queue_is_purged_and_deleted_without_reading(late: Late) -> None:
    late.client.declare("q", durable=True)
    late.publish("q", b"a", b"b")
    assert late.client.send("Queue.Purge", queue="q") == []
    late.store.commit()
    take_turns(late.broker)
    (purged,) = late.client.come()
    assert purged["message_count"] == 2
    late.publish("q", b"c")
    assert late.client.call("Queue.Delete", queue="q")["message_count"] == 1
    assert late.store.reads == 0
