"""The store in memory, and how queues and the broker wait for a store that is late."""

from __future__ import annotations

from itertools import chain

import pytest

from tests.core.messages import batch
from tests.core.queue.support import House, Session, add, publish, ready, sequences, take
from tests.support.amqp import Client, bodies, make_broker, take_turns
from tests.support.manual_store import ManualStore
from warrenmq.core.message.batch import Batch, QueueEntry
from warrenmq.core.queue.queue import Queue
from warrenmq.core.store.memory import MemoryStore
from warrenmq.core.wire.properties import PERSISTENT

# -- the stores themselves


@pytest.mark.parametrize("make", [MemoryStore, ManualStore])
def test_sequence_numbers_are_handed_out_once(make: type[MemoryStore]) -> None:
    store = make(7)
    assert [store.reserve(3), store.reserve(1), store.reserve(5), store.reserve(1)] == [
        7,
        10,
        11,
        16,
    ]


def test_a_later_process_hands_out_higher_ones() -> None:
    assert 0 < MemoryStore().reserve(1_000_000) < MemoryStore().reserve(1)


def test_memory_commits_at_once_and_keeps_everything() -> None:
    store, one = MemoryStore(), batch(2)
    called: list[str] = []
    store.on_commit(lambda: called.append("commit"))
    assert (store.append(one, []), store.committed, one.resident) == (0, 0, True)
    with pytest.raises(AssertionError, match="resident"):
        store.fetch(one, lambda: None)
    assert called == []


def test_a_late_store_commits_when_it_is_told() -> None:
    store, seen = ManualStore(), list[int]()
    store.on_commit(lambda: seen.append(store.committed))
    assert [store.append(batch(1), []), store.append(batch(1), [])] == [1, 2]
    assert (store.committed, seen) == (0, [])
    store.commit()
    assert store.append(batch(1), []) == 3
    assert (store.committed, seen) == (2, [2])


def test_a_late_store_takes_the_data_away_and_brings_it_back() -> None:
    store, one, arrived = ManualStore(), batch(2), list[str]()
    data = one.data
    store.append(one, [])
    assert (one.resident, one.data) == (False, b"")
    store.fetch(one, lambda: arrived.append("first"))
    store.fetch(one, lambda: arrived.append("second"))
    assert (store.reads, one.resident) == (2, False)
    assert (store.arrive(), store.reads, arrived) == (2, 0, ["first", "second"])
    assert (one.resident, one.data) == (True, data)
    store.evict_all()
    assert (one.resident, one.data) == (False, b"")


def test_a_late_store_that_does_not_page() -> None:
    store, one = ManualStore(), batch(2)
    store.paging = False
    store.append(one, [])
    assert one.resident
    store.evict_all()
    assert not one.resident


# -- a queue waits


def late_house() -> tuple[House, ManualStore]:
    store = ManualStore(1)
    return House(store=store), store


def write(house: House, queue: Queue, count: int, body_bytes: int = 4) -> Batch:
    """A read's messages that are on disk only."""
    made = batch(count, house.store.reserve(count), PERSISTENT, body_bytes)
    entry = QueueEntry(made, None)
    house.store.append(made, [(queue, entry)])
    queue.enqueue(entry)
    return made


def test_a_delivery_waits_and_goes_on() -> None:
    (house, store), session = late_house(), Session()
    queue = house.queue()
    add(queue, session)
    write(house, queue, 3)
    write(house, queue, 2)
    house.turn()
    assert (session.numbers(), store.reads, queue.is_paging_in) == ([], 2, True)
    house.turn()
    write(house, queue, 1)
    house.turn()
    while store.arrive():
        house.turn()
    assert session.numbers() == [1, 2, 3, 4, 5, 6]
    assert (store.reads, queue.is_paging_in, queue.ready_count) == (0, False, 0)


def test_nobody_loses_his_turn_while_messages_are_under_way() -> None:
    (house, store), session = late_house(), Session()
    queue = house.queue()
    consumers = [add(queue, session, str(at)) for at in range(3)]
    for _ in range(9):
        write(house, queue, 1)
        house.turn()
    while store.arrive():
        house.turn()
    taken = [session.numbers(consumer) for consumer in consumers]
    assert sorted(chain(*taken)) == list(range(1, 10))
    assert list(map(len, taken)) == [3, 3, 3]


def test_a_returned_message_that_has_left_memory_is_still_the_first() -> None:
    (house, store), session = late_house(), Session()
    queue = house.queue()
    write(house, queue, 2)
    queue.get(lambda: None)
    store.arrive()
    held = queue.dequeue(1)
    assert held is not None
    write(house, queue, 1)
    add(queue, session)
    store.evict_all()
    queue.requeue(held)
    house.turn()
    assert session.numbers() == []
    while store.arrive():
        house.turn()
    assert session.numbers() == [1, 2, 3]


def test_a_get_waits_for_its_message() -> None:
    house, store = late_house()
    queue = house.queue()
    write(house, queue, 1)
    write(house, queue, 2)
    got: list[int] = []

    def get() -> None:
        messages = queue.dequeue(1)
        if messages is None and queue.is_paging_in:
            queue.get(get)
        elif messages is not None:
            got.extend(sequences(messages))

    queue.get(get)
    queue.get(get)
    assert (got, store.reads) == ([], 2)
    store.arrive()
    assert (got, store.reads) == ([1, 2], 0)
    queue.get(get)
    assert got == [1, 2, 3]
    queue.get(lambda: got.append(0))
    assert got == [1, 2, 3, 0]


def test_a_get_that_waits_is_answered_when_the_queue_is_purged() -> None:
    house, store = late_house()
    queue = house.queue(durable=True)
    write(house, queue, 1)
    answers: list[bool] = []
    queue.get(lambda: answers.append(queue.dequeue(1) is None))
    assert queue.purge() == 1
    assert answers == []
    store.arrive()
    assert (answers, queue.is_paging_in) == ([True], False)
    house.turn()
    publish(house, queue)
    assert sequences(*take(queue, 1)) == [2]


def test_a_queue_over_its_limits_drops_what_is_on_disk() -> None:
    house, store = late_house()
    queue = house.queue(max_length=3)
    sized = house.queue(max_length_bytes=30)
    for _ in range(3):
        write(house, queue, 2)
        write(house, sized, 2, body_bytes=10)
    house.turn()
    assert (ready(queue), ready(sized)) == ([6, 9, 10], [8, 11, 12])
    assert sized.ready_bytes == 30
    assert house.dead_letters[:2] == [(1, "maxlen"), (3, "maxlen")]
    # The first to go needs no data: the republisher asks for it if there is a letter to write.
    assert store.reads == 0


def test_messages_expire_on_disk() -> None:
    (house, store), session = late_house(), Session()
    queue = house.queue(message_ttl=50, max_length_bytes=1_000)
    add(queue, session)
    write(house, queue, 2)
    house.turn()
    house.wait(51)
    assert (ready(queue), queue.ready_bytes) == ([], 0)
    assert house.dead_letters == [(1, "expired"), (2, "expired")]
    store.arrive()
    house.turn()
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


def test_consumers_get_what_was_on_disk(late: Late) -> None:
    late.client.declare("q", durable=True)
    late.publish("q", b"a", b"b")
    assert late.client.consume("q") == []
    assert (late.arrive(), late.client.bodies()) == (2, [b"a", b"b"])
    assert late.arrive() == 0


def test_basic_get_is_answered_late(late: Late) -> None:
    late.client.declare("q", durable=True)
    late.publish("q", b"a", b"b")
    assert late.client.send("Basic.Get", queue="q") == []
    late.arrive()
    assert bodies(late.client.come()) == [b"a"]


def test_confirms_wait_for_the_disk(late: Late) -> None:
    late.client.declare("q", durable=True)
    late.client.send("Confirm.Select")
    late.publish("q", b"a", b"b")
    assert late.client.come() == []
    late.store.commit()
    take_turns(late.broker)
    (ack,) = late.client.come()
    assert (ack.name, ack["delivery_tag"], ack["multiple"]) == ("Basic.Ack", 2, True)


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


def test_letters_are_written_when_their_messages_have_arrived(late: Late) -> None:
    late.client.declare("dead", durable=True)
    late.client.declare("q", durable=True, arguments={**LETTERS, "x-max-length": 2})
    late.publish("q", b"a", b"b", b"c", b"d")
    assert (late.client.messages("q"), late.client.messages("dead")) == (2, 0)
    assert dead_letters(late) == [(b"a", "maxlen"), (b"b", "maxlen")]
    assert late.client.messages("q") == 2


def test_rejected_messages_that_have_left_memory(late: Late) -> None:
    late.client.declare("dead", durable=True)
    late.client.declare("q", durable=True, arguments=LETTERS)
    late.publish("q", b"a", b"b", b"c")
    late.client.consume("q")
    while late.arrive():
        pass
    assert late.client.bodies() == [b"a", b"b", b"c"]
    late.store.evict_all()
    late.client.send("Basic.Nack", delivery_tag=2, multiple=True, requeue=False)
    assert late.client.messages("dead") == 0
    assert dead_letters(late) == [(b"a", "rejected"), (b"b", "rejected")]


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


def test_a_queue_that_is_deleted_while_it_waits(late: Late) -> None:
    late.client.declare("q", durable=True)
    late.publish("q", b"a")
    late.client.consume("q")
    late.client.send("Queue.Delete", queue="q")
    late.arrive()
    assert late.client.come() == []
